/**
 * The fields of the answers about dependencies in JSON: `circuit list`, `circuit show`, `probe`.
 * A part of the table in answer-fields.ts; never loaded by an answer.
 */

import { PROBE_FAILURES, PROBE_STAGES } from "../core/probe-result.ts";

/** What each field means, a whole before its parts. */
export type Meanings = Readonly<Record<string, string>>;

export function nameAll(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

export function circuitFields(): Meanings {
  return {
    name: "its name",
    state: "`closed`, `open`, `half-open` or `permanent`",
    because: "of a permanent one which bound was reached, `max-attempts` or `max-elapsed`, or null",
    changed_at: "when it last changed its state (wall clock, UTC)",
    open_for_ms: "how long it has not been closed, null: it is closed",
    retry_in_ms: "how long until the next trial, 0: it may be made now; null: none is waited for",
    consecutive_failures: "failures in a row, null: it is not closed",
    failures_in_window: "failures among the last answers, null: not counted, or it is not closed",
    attempts: "trials since it opened, and the one that is waited for; null: it is closed",
    successes: "good trials in a row, null: it is not half-open",
    is_trial_out: "whether a trial is being made, so that nobody else is let through",
    trial_pid: "pid of whoever makes it, null: nobody does, or it is not known",
    is_probed: "whether somebody probes it now, null: it cannot be told, or was not asked",
    probes: "all probes of it since it was made or reset",
    good_probes: "the good ones among them",
    last_good_age_ms: "age of the last good answer, null: there was none",
    last_probe: "the last probe, null: there was none",
    "last_probe.because": "as in `probe`",
    "last_probe.detail": "what was found and expected, for people",
    "last_probe.at": "when it was begun (wall clock, UTC)",
    "last_probe.age_ms": "how long ago that is",
  };
}

export function circuitSettingFields(): Meanings {
  return {
    target:
      "what is probed, without credentials and query, of a `cmd:` the first word alone; null: no " +
      "probe has its name",
    job: "the job whose probe has given the settings, null: none",
    settings_hash: "hash of the settings of that probe, null: none, or they were forgotten",
    settings: "how its answers are counted",
    "settings.failure_threshold": "failures in a row that open it",
    "settings.failure_window":
      "failures among the last answers that open it too, null: not counted",
    "settings.failure_window.failures": "so many failures",
    "settings.failure_window.size": "among so many answers",
    "settings.success_threshold": "good trials in a row that close it",
    "settings.backoff": "when trials are made",
    "settings.backoff.initial_ms": "the longest first wait",
    "settings.backoff.cap_ms": "the longest wait",
    "settings.backoff.factor": "what the longest wait grows by each time",
    "settings.backoff.max_attempts": "so many trials at most, then it is permanent",
    "settings.backoff.max_elapsed_ms": "for so long at most, then it is permanent",
  };
}

export function probeFields(): Meanings {
  return {
    is_good: "whether all of them are",
    probes: "the targets, as they were given",
    "probes[].target":
      "what was asked, without credentials and query, of a `cmd:` the first word alone",
    "probes[].kind": "`http`, `https`, `tcp`, `unix` or `cmd`",
    "probes[].circuit": "the circuit that a run with this probe shares",
    "probes[].is_good": "whether the answer is the one that is expected",
    "probes[].because": nameAll(["good", ...PROBE_FAILURES]),
    "probes[].expected": "what a good answer is, for people",
    "probes[].found": "what was found, for people",
    "probes[].status": "status of HTTP, null: there was none",
    "probes[].address": "address or socket that it was connected to, null: it was not connected",
    "probes[].timeout_ms": "the limit for all of it",
    "probes[].total_ms": "how long all of it took",
    "probes[].stages": "the stages that it came to; where it is not good it ended in the last one",
    "probes[].stages[].stage": nameAll(PROBE_STAGES),
    "probes[].stages[].ms": "how long it took",
  };
}
