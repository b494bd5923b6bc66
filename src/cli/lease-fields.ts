/**
 * The fields of a lease in JSON: a part of the table of cli/answer-fields.ts.
 */

import type { Meanings } from "./dependency-fields.ts";

export function verdictFields(): Meanings {
  return {
    key: "the key, as kind:name",
    verdict: "`free`, `held`, `stalled`, `orphaned`, `dead`, `elsewhere` or `unknowable`",
    rule: "the rule that gave the verdict, `R1` to `R8`",
    because: "the reason within that rule",
    lock: "what the kernel says of the lock file: `held`, `free` or `unaskable`",
    trouble: "why the lock cannot be asked or the record not be read, null: both are fine",
  };
}

/** As of the last grant; where no record can be read, what the beat or the journal tells of it. */
export function recordFields(): Meanings {
  return {
    kind: "kind of the key",
    name: "name of the key",
    generation: "number of the last grant; null where it is not known, as with each field below",
    state: "`held` from the grant on, `released` once it was given back",
    run_id: "id of the run that it was granted to",
    run_path: "ids of the runs around that run, outermost first, `/` between them, its own last",
    job: "name of that run",
    runner: "who started it, as user@host",
    host: "its host",
    machine_id: "its machine (/etc/machine-id), null where there is none",
    boot_id: "the boot in which it ran",
    pid: "pid of its watchdog",
    pid_start_time: "start of its watchdog, in ticks since boot",
    pid_namespace: "inode of the pid namespace of its watchdog",
    time_namespace: "inode of the time namespace of its watchdog, null: not known",
    lock_inode: "the lock file that it locked, as device:inode",
    uid: "user id of its watchdog",
    session_started_at: "when its watchdog was started (wall clock, UTC)",
    acquired_at: "when it was granted the lease (wall clock, UTC)",
    released_at: "when it gave the lease back (wall clock, UTC), null: it has not",
    heartbeat_interval_ms: "--heartbeat-interval",
    stale_after_ms: "--stale-after",
    lane: "--lane, null without one",
    task_id: "--task, null without one",
    worktree: "top of the tree of --worktree, null without one",
    branch: "branch of that tree at the grant, null: none or not known",
    command: "the command line, for people, cut where it is long",
    cgroup: "path of the cgroup of its watchdog, null where it has none",
  };
}

export function previousFields(): Meanings {
  return {
    previous: "the grant before this one as the newcomer found it, null: there was none",
    "previous.generation": "its number",
    "previous.run_id": "id of its run, null: not known",
    "previous.how_it_ended":
      "`released`, `repaired` by watchdog repair, or the verdict that the newcomer acted on",
    "previous.evidence": "rule and reason of that verdict",
    "previous.repair":
      "the last repair in this boot that has ended a living owner of the key, with the fields of " +
      "`repair`; null: none has",
  };
}

export function repairMarkFields(): Meanings {
  return {
    repair: "what a repair has settled of this grant, null: none has",
    "repair.plan_id": "the plan that was carried out",
    "repair.action":
      "`ended-owner`: its living owner was ended with approval; `marked`: it was dead already",
    "repair.at": "when (wall clock, UTC)",
    "repair.boot_id": "in which boot",
    "repair.time_namespace": "inode of the time namespace of the repair, null: not known",
    "repair.monotonic_ms": "when, by the clock of that boot, in milliseconds",
    "repair.by": "who did it, as user@host",
  };
}

export function beatFields(): Meanings {
  return {
    heartbeat_at: "when it last beat (wall clock, UTC)",
    heartbeat_seq: "number of that beat",
    main_loop_seq: "how often the main loop had counted by then; every 1 to 5 s, as beats go",
    run_state: "`starting`, `running`, `paused`, `stopping` or `ending`, as of that beat",
    children: "members of the tree as of that beat, the command first; of very many only some",
    "children[].pid": "its pid",
    "children[].start_time": "its start, in ticks since boot",
    member_count: "all members as of that beat, and those that may be",
    progress: "what its run shows of the work of its job; null: nothing yet",
    "progress.ok": "items that went well, null: the job has reported nothing",
    "progress.failed": "items that failed",
    "progress.done": "both together",
    "progress.total": "how many there are to do, null: it has not said",
    "progress.checkpoint": "the last one that it has named, cut where it is long",
    "progress.last_message": "the last one that it has told, cut where it is long",
    "progress.rate_per_minute": "items per minute over the last minutes, null: too short to tell",
    "progress.time_left_ms": "how long the rest takes at that rate, null: nobody can tell",
    "progress.reported_at": "when the counts last changed (wall clock, UTC)",
    "progress.last_output_at": "when the job last wrote something (wall clock, UTC), null: never",
    "progress.files_changed_at":
      "when a file of --expect-file was last seen to have changed (wall clock, UTC), null: never",
    "progress.cpu_ms": "CPU time of its tree so far, null: not measured yet",
    "progress.cpu_percent": "of one core, between the last two measurements",
    "progress.io_bytes": "bytes that its tree has read and written so far",
    "progress.io_bytes_per_minute": "the same, between the last two measurements",
    "progress.measured_at": "when its tree was last measured (wall clock, UTC)",
    heartbeat_age_ms: "age of that beat by the clock of this boot, null: it cannot be told",
    main_loop_age_ms: "how long the main loop had not counted as of that beat",
    is_main_loop_blocked: "true: it beats and its main loop stands still; null: it cannot be told",
    is_repair_at_work: "true: watchdog repair has the lock at this moment",
    repairer_pid: "its pid, null: it cannot be told, or no repair has the lock",
    waiting_start_pid:
      "pid of a start that has the lock and waits for its dependencies, null: none was seen",
  };
}

/** Looked for only where the verdict depends on it. */
export function treeFields(): Meanings {
  return {
    fence_taken:
      "whether somebody has the fence, so that nobody is granted the key: `yes`, `no`, `unread`; " +
      "null: not asked, its owner has the key",
    fenced_by: "who has it, as far as that can be told",
    "fenced_by[].pid": "its pid",
    "fenced_by[].command": "its command line, cut where it is long",
    survivors:
      "living processes that are proven to be of the run of a dead watchdog; " +
      "null: not looked for, or not readable",
    ...processFields("survivors"),
    suspects: "living processes that may be of that run and are not proven to be; null: as above",
    ...processFields("suspects"),
  };
}

export function processFields(whole: string): Meanings {
  return {
    [`${whole}[].pid`]: "its pid",
    [`${whole}[].start_time`]: "its start, in ticks since boot",
    [`${whole}[].command`]: "its command line, cut where it is long",
    [`${whole}[].is_signalable`]: "whether whoever asks may signal it",
  };
}
