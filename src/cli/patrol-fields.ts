/**
 * The fields of `patrol --json`. A part of the table in answer-fields.ts; never loaded by an
 * answer.
 */

import type { FindingKind } from "../core/patrol.ts";
import type { OverdueReason } from "../core/overdue.ts";
import { type Meanings, nameAll } from "./dependency-fields.ts";

const KINDS: Readonly<Record<FindingKind, true>> = {
  lease: true,
  circuit: true,
  room: true,
  outbox: true,
  journal: true,
};
const REASONS: Readonly<Record<OverdueReason, true>> = {
  "never-started": true,
  "not-started": true,
  failing: true,
  "started-late": true,
  "running-too-long": true,
};

export function patrolFields(): Meanings {
  return {
    at: "when it was looked (wall clock, UTC)",
    findings: "what is wrong now, without the jobs",
    ...findingFields("findings"),
    opened: "those of them that the patrol before has not found, each with the same fields",
    ...findingFields("opened"),
    closed: "what the patrol before has found and is gone, each with the same fields",
    ...findingFields("closed"),
    marked: "keys whose dead owner this patrol has marked",
    abandoned:
      "ids of runs whose watchdog and guard were killed while the command lives on: they are " +
      "written down as abandoned, nobody is ended",
    newly_overdue: "jobs that are overdue and were not as of the patrol before",
    no_longer_overdue: "jobs that were overdue then and are not now",
    last_patrol_at: "when the patrol before was here, null: there was none",
    ...seenFields(),
    ...jobFields(),
  };
}

function findingFields(whole: string): Meanings {
  return {
    [`${whole}[].kind`]: nameAll(Object.keys(KINDS)),
    [`${whole}[].subject`]: "the key, the name of the circuit, else the kind once more",
    [`${whole}[].state`]: "the verdict on the key; `open`, `low`, `dead`, `spool` of the others",
    [`${whole}[].because`]: "the reason",
    [`${whole}[].run_id`]: "the run that it is about, null: none, or not known",
    [`${whole}[].job`]: "its job, null: none, or not known",
  };
}

function seenFields(): Meanings {
  return {
    verdicts: "every lease; `watchdog lease show` has more of each",
    "verdicts[].key": "the key, as kind:name",
    "verdicts[].verdict": "as in `lease show`",
    "verdicts[].rule": "as in `lease show`",
    "verdicts[].because": "as in `lease show`",
    "verdicts[].run_id": "the run that holds it, or else had it last, null: not known",
    "verdicts[].job": "the job of that run, null: not known",
    "verdicts[].heartbeat_age_ms": "as in `lease show`",
    open_circuits: "circuits that are not closed; `watchdog circuit show` has more of each",
    "open_circuits[].name": "its name",
    "open_circuits[].state": "`open`, `half-open` or `permanent`",
    "open_circuits[].target": "what is probed, null: nothing, calls alone have opened it",
    "open_circuits[].job": "the job that has probed it last, null: none",
    "open_circuits[].since": "since when (wall clock, UTC)",
    outbox: "the notices of the outbox before this patrol delivers, null: it cannot be read",
    "outbox.waiting": "how many wait",
    "outbox.dead": "how many were given up",
    room: "the file system of the state directory, null: it has no limit, or cannot be asked",
    "room.free_bytes": "what an ordinary user may still write",
    "room.total_bytes": "its size",
    "room.is_low": "whether that is too little to go on for long",
  };
}

function jobFields(): Meanings {
  return {
    jobs: "jobs that have declared when they are expected, by name",
    "jobs[].job": "its name",
    "jobs[].state": "`fine`, `overdue`, or `unsure`: it cannot be told",
    "jobs[].because":
      `why it is overdue: ${nameAll(Object.keys(REASONS))}; why it is unsure: ` +
      "`clock-set-back`, `no-calendar` or `no-more-times`; null: it is fine",
    "jobs[].due_at": "when a run is expected next, measured from the last success",
    "jobs[].late_at": "when it will be overdue, null: it is",
    "jobs[].overdue_since": "null: it is not",
    "jobs[].every_ms": "--every, null without one",
    "jobs[].schedule": "--schedule, null without one",
    "jobs[].time_zone": "the time zone of that",
    "jobs[].declared_at": "when it was declared like this first",
    "jobs[].declared_by": "the last run that has declared it, or `configuration`: it never ran",
    "jobs[].running_since": "start of the run that goes on, null: none does",
    "jobs[].last_start_at": "start of the last run, null: none was ever started",
    "jobs[].last_success_at":
      "end of the last run that was `ok` and not of one step alone, null: none",
    "jobs[].last_failure_at": "end of the last run that was not, null: none",
    "jobs[].last_failure": "its outcome",
    "jobs[].last_refusal_at": "the last try whose command was not started, null: none",
    "jobs[].last_refusal": "its outcome",
  };
}
