/**
 * The one sentence of a notice: what has happened to which job, where. Pure text; a person reads it
 * on a small screen, so what matters stands first.
 */
import type { NoticeEvent } from "./notice.ts";
import type { DecidedNotice } from "./told-state.ts";

export interface EndWords {
  readonly outcome: string | null;
  readonly because: string | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly duration_ms: number | null;
}

export interface Place {
  readonly job: string | null;
  readonly host: string;
}

/** A run that ended, or began. */
export function sentenceOfRun(
  { job, host }: Place,
  words: EndWords,
  decided: DecidedNotice,
): string {
  const subject = `${job ?? "a job"} on ${host}`;
  const { event, isReminder, failuresInRow } = decided;
  if (event === "start") return `${subject} has started`;
  const after = words.duration_ms === null ? "" : ` after ${showSpan(words.duration_ms)}`;
  if (event === "recovered") {
    return `${subject} is well again${after}, ${countFailures(failuresInRow)} before it`;
  }
  const what = `${subject} ${describeEnd(words)}${after}`;
  return isReminder ? `${what}; it still fails, ${failuresInRow} times in a row` : what;
}

function countFailures(count: number): string {
  return count === 1 ? "with 1 failure" : `with ${count} failures`;
}

function describeEnd({ outcome, because, exit_code, signal }: EndWords): string {
  const why = because === null ? "" : ` (${because})`;
  switch (outcome) {
    case "ok":
      return "ended well";
    case "failed":
      return `failed with status ${exit_code ?? "unknown"}`;
    case "signaled":
      return `died of signal ${signal ?? "unknown"}`;
    case "stopped":
      return `was stopped on request${why}`;
    default:
      return `${SENTENCES[outcome ?? ""] ?? `ended as ${outcome ?? "unknown"}`}${why}`;
  }
}

const SENTENCES: Readonly<Partial<Record<string, string>>> = {
  timeout: "was ended at its time limit",
  idle_timeout: "was ended because it was idle",
  bad_output: "has not done its work",
  dependency_down: "was stopped or not started: a dependency is down",
  locked: "was not started: its lease cannot be had",
  lease_lost: "was stopped: its lease was no longer its own",
  not_found: "could not be started: there is no such command",
  not_executable: "could not be started: the command cannot be executed",
  wrapper_error: "could not be run",
  config_error: "could not be started: a person must change something",
  refused: "was not started: a right or an approval is missing",
  unknown: "has a step whose outcome nobody knows",
  abandoned: "was lost: its watchdog was killed",
};

/** What is no end of a run. */
export function sentenceOfEvent(
  { job, host }: Place,
  event: NoticeEvent,
  {
    because,
    about,
    isReminder,
  }: {
    readonly because: string | null;
    readonly about: string;
    readonly isReminder: boolean;
  },
): string {
  const subject = `${job ?? "a job"} on ${host}`;
  const what = about === "" ? "" : ` ${about}`;
  const why = because === null ? "" : ` (${because})`;
  const sentence = `${subject}: ${(EVENTS[event] ?? event).replace("%", what)}${why}`;
  return isReminder ? `${sentence}; it still lasts` : sentence;
}

const EVENTS: Readonly<Partial<Record<NoticeEvent, string>>> = {
  failure: "it still fails",
  stalled: "it shows no sign of life",
  overdue: "it is overdue",
  lock_restored: "its lock file was taken away, and is there again",
  suspended: "the machine was suspended while it ran",
  circuit_open: "the dependency% is down",
  circuit_closed: "the dependency% is back",
  leftovers: "it has left processes behind",
  reclaimed: "its lease was taken over from a run that is dead",
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** `2h 5m`, `3m 12s`, `1.5s`. */
export function showSpan(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.round(ms / 100) / 10}s`;
  const [unit, big, small, smallMs] =
    ms < HOUR_MS
      ? ([MINUTE_MS, "m", "s", SECOND_MS] as const)
      : ([HOUR_MS, "h", "m", MINUTE_MS] as const);
  const whole = Math.floor(ms / unit);
  const rest = Math.floor((ms - whole * unit) / smallMs);
  return rest === 0 ? `${whole}${big}` : `${whole}${big} ${rest}${small}`;
}
