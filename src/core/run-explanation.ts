/**
 * Why a run did not start, or how it ended, as sentences: from its record to what a person reads.
 * Pure; the record is the one that the result file and the journal hold.
 *
 * Always: says what was seen and by whom, and nothing that the record does not bear out; a reason
 * that it does not know is shown as it is.
 */
import { describeCheck, describeSuspicion } from "./check-words.ts";
import { describeHolder } from "./in-the-way.ts";
import type { Fate } from "./run-report.ts";
import type { NamedProcess, RecordedDependency, RunRecord, SentSignal } from "./run-record.ts";

export interface RunExplanation {
  /** One sentence without a full stop. */
  readonly sentence: string;
  /** A label and a text each, in the order in which a person needs them. */
  readonly evidence: readonly (readonly [label: string, text: string])[];
}

const SENTENCES: Readonly<Record<string, string>> = {
  terminated: "it was asked to end by TERM",
  interrupted: "it was interrupted by INT",
  quit: "it was ended by QUIT",
  "hung-up": "its terminal went away",
  idle: "it was idle for longer than --idle-timeout, and was ended",
  "not-after": "the time of --not-after came, and it was ended",
  "command-not-found": "the command was not found",
  "command-not-executable": "the command was found, but cannot be executed",
  "command-not-started": "the system did not let the command be started",
  "tree-not-ended": "processes of it outlived KILL, its main command among them",
  "output-not-written": "the command ended well, but its output could not be written",
  "lease-held": "its lease was held by another run, so that it was not started",
  "lease-unknowable": "nobody can tell whether its lease is free, so that it was not started",
  "lease-unusable": "the system did not let its lease be had, so that it was not started",
  "lease-not-ours": "the record of its lease named another run, and it was stopped",
  "probe-unusable": "what was to be probed cannot be, so that it was not started",
  "circuit-opened": "a dependency failed too often, and it was stopped",
  "circuit-open": "the circuit of a dependency was open, so that it was not started",
  "trial-failed": "a dependency failed its trial, so that it was not started",
  "startup-wait": "a dependency did not answer within --probe-startup-wait, so it was not started",
  "max-attempts": "a dependency did not answer within the attempts that it was given",
  "max-elapsed": "a dependency did not answer within the time that it was given",
  "watchdog-killed": "its watchdog was killed",
  "file-missing": "it said that all went well, but an expected file is not there",
  "file-empty": "it said that all went well, but an expected file is empty",
  "file-unchanged": "it said that all went well, but an expected file is that of before its start",
  "file-too-small": "it said that all went well, but an expected file is too small",
  "file-shrunk": "it said that all went well, but an expected file has shrunk",
  "file-unread": "it said that all went well, but an expected file could not be looked at",
  "no-output": "it said that all went well, but has printed nothing",
  "match-missing": "it said that all went well, but its output lacks what it must hold",
  "match-forbidden": "it said that all went well, but its output holds what it must not",
  "match-abandoned": "it said that all went well, but its output could not be looked at as a whole",
  "too-short": "it said that all went well, but was done too soon",
  suspicious: "it said that all went well, but is far from what is usual for it",
  "all-done": "all went well: all of its steps are done",
  "only-done":
    "the one step that was asked for (--only) is done; that says nothing about the job as a whole",
  "step-failed": "a step of it has failed",
  "step-stopped": "a step of it was stopped on request, and is not done",
  "step-artifacts":
    "a step of it said that all went well, but its artifacts are not as they must be",
  "step-unknown": "nobody knows whether a step of it has happened: a person must decide",
  "step-not-ended": "processes of a step outlived KILL, and nothing was started beside them",
  "job-refused": "it cannot be gone on with as it was asked to, so that no step was started",
  "job-lost": "nobody can tell which of its steps have happened, so that no step was started",
  "job-state-unwritten": "what became of its steps could not be written down, and it was stopped",
  "job-broken-off": "its runner came to grief in the middle",
  "too-many-failed": "too many of its items have failed",
  "too-many-failed-in-row": "too many of its items have failed in a row",
};

/** So many of each kind are named; the record has all of them. */
const MOST_NAMED = 5;

/** Steps of a job by what has become of them; those of a kind that has none are not told. */
export interface CountedSteps {
  readonly total: number;
  readonly done: number;
  readonly failed: readonly string[];
  readonly unknown: readonly string[];
  /** Begun, and nobody carries them to an end any more. */
  readonly interrupted?: readonly string[];
  readonly running?: readonly string[];
}

/** `1 of 4 done; failed: pack; unknown: upload` */
export function describeCount(steps: CountedSteps): string {
  const { total, done, failed, unknown, interrupted = [], running = [] } = steps;
  const named = Object.entries({ failed, unknown, interrupted, running });
  const parts = named.flatMap(([word, names]) =>
    names.length === 0 ? [] : `${word}: ${nameFew(names)}`,
  );
  return [`${done} of ${total} done`, ...parts].join("; ");
}

function nameFew(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return [...names.slice(0, MOST_NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}

/** @param abandonedBy  who has written that it was abandoned; null: it was not */
export function explainRun(
  record: RunRecord,
  fate: Fate,
  abandonedBy: string | null,
): RunExplanation {
  return { sentence: explainEnd(record, fate, abandonedBy), evidence: listEvidence(record) };
}

function explainEnd(record: RunRecord, fate: Fate, abandonedBy: string | null): string {
  if (fate === "running") return `it runs, as pid ${record.pid}`;
  if (fate === "unfinished") {
    return "its watchdog is not seen here, and nobody has written down how it ended";
  }
  const { because, exit_code, signal } = record;
  if (because === "exited") {
    const text = `the command ended by itself with status ${exit_code}`;
    return fate === "good" ? `all went well: ${text}` : text;
  }
  if (because === "killed-by-signal") return explainSignal(record, signal);
  if (because === "timeout") return `it ran into --timeout, and was ended`;
  const known = SENTENCES[because ?? ""] ?? because ?? "no reason was written down";
  if (record.outcome !== "abandoned") return known;
  return abandonedBy === null ? known : `${known}; ${WRITERS[abandonedBy] ?? abandonedBy} says so`;
}

const WRITERS: Readonly<Record<string, string>> = {
  guard: "its guard",
  "next-run": "the next run",
  repair: "watchdog repair",
};

/** Who has sent a signal is told by the record alone: what it does not name came from elsewhere. */
function explainSignal(record: RunRecord, signal: string | null): string {
  const name = signal ?? "a signal";
  const isOurs = record.signals.some((sent) => sent.signal === name);
  if (isOurs) return `the command died of ${name}, which watchdog had sent or passed on`;
  const hint = name === "KILL" ? " (a person, or the kernel where memory ran out)" : "";
  return `the command died of ${name}, which watchdog has not sent${hint}`;
}

type Evidence = readonly [label: string, text: string];

function listEvidence(record: RunRecord): Evidence[] {
  const { limits, output, suspended_ms, paused_ms, degraded } = record;
  const lastAt = output.last_output_at;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["held by", describeRefusal(record.held_by)],
    ...record.dependencies.map((one) => ["dependency", describeDependency(one)] as const),
    ...record.checks.map((check) => ["check", describeCheck(check)] as const),
    ...record.suspicions.map((one) => ["suspicious", describeSuspicion(one)] as const),
    ["items", describeItems(record.items)],
    ["steps", record.steps === null ? undefined : describeCount(record.steps)],
    ["limits", describeLimits(limits)],
    ...record.signals.slice(0, MOST_NAMED).map((sent) => ["signal", describeSignal(sent)] as const),
    ["leftovers", nameSome(record.leftovers)],
    ["left alone", nameSome(record.left_alone)],
    ["not ended", nameSome(record.unsignalable)],
    ["kept", nameSome(record.kept)],
    ["output", lastAt === null ? undefined : `last at ${lastAt}`],
    ["not written", output.write_error ?? undefined],
    ["suspended", describeSeconds(suspended_ms)],
    ["paused", describeSeconds(paused_ms)],
    ["without", degraded.length === 0 ? undefined : degraded.join(", ")],
  ];
  return rows.flatMap(([label, text]) => (text === undefined ? [] : [[label, text] as const]));
}

function describeRefusal(holder: RunRecord["held_by"]): string | undefined {
  if (holder === null) return undefined;
  const since = holder.since === null ? "" : `, since ${holder.since}`;
  return `${describeHolder(holder)}${since}`;
}

function describeItems(items: RunRecord["items"]): string | undefined {
  if (items === null) return undefined;
  const { ok, failed, total, checkpoint, last_message } = items;
  const all = total === null ? "" : ` of ${total}`;
  const last = last_message === null ? "" : `; last message: ${last_message}`;
  const at = checkpoint === null ? "" : `, at ${checkpoint}`;
  return `${ok} good and ${failed} failed${all}${at}${last}`;
}

function describeDependency(one: RecordedDependency): string {
  const isWell = one.state === "closed" || one.state === "ready" || one.last_detail === null;
  const detail = isWell ? "" : `: ${one.last_detail}`;
  return `${one.name} ${one.state} (${one.failed_probes} of ${one.probes} probes failed)${detail}`;
}

function describeSeconds(ms: number): string | undefined {
  return ms > 0 ? `for ${Math.round(ms / 100) / 10} s` : undefined;
}

function describeLimits({ timeout_ms, idle_timeout_ms, not_after }: RunRecord["limits"]) {
  const parts = [
    timeout_ms === null ? [] : `--timeout ${timeout_ms / 1_000} s`,
    idle_timeout_ms === null ? [] : `--idle-timeout ${idle_timeout_ms / 1_000} s`,
    not_after === null ? [] : `--not-after ${not_after}`,
  ].flat();
  return parts.length === 0 ? undefined : parts.join(", ");
}

function describeSignal({ signal, at_ms, to, count, why }: SentSignal): string {
  const whom = to === "tree" ? `${count} of the tree` : "the command";
  return `${signal} to ${whom} after ${Math.round(at_ms / 100) / 10} s (${why})`;
}

function nameSome(processes: readonly NamedProcess[]): string | undefined {
  if (processes.length === 0) return undefined;
  const named = processes.slice(0, MOST_NAMED).map(({ pid, command }) => `${pid} ${command}`);
  const more = processes.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}
