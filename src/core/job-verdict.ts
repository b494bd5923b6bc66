/**
 * What the runner of a job tells the watchdog around it about the end: plain data, and its text.
 * The exit status alone would not do: a step may have the same number for a reason of its own.
 */
import type { Outcome, OutcomeName } from "./outcome.ts";
import { isCount, isObject, isText } from "./shapes.ts";

/** Why a job of steps has ended as it has. */
export type JobReason =
  /** All are done. */
  | "all-done"
  /** `--only`: the step that was asked for is, and nothing is said of the job as a whole. */
  | "only-done"
  /** A step has failed, by its own status. */
  | "step-failed"
  /** Somebody has stopped a step alone, and nothing else went wrong. */
  | "step-stopped"
  /** It said that all is well, and its artifacts are not there. */
  | "step-artifacts"
  /** Whether a step has happened is for a person to say. */
  | "step-unknown"
  /** Processes of a step have outlived KILL: what was left to do was not begun beside them. */
  | "step-not-ended"
  /** What is to be done cannot be as it is: another file, a step that does not exist. */
  | "job-refused"
  /** What was known of the job is lost: nobody can tell which of its steps have happened. */
  | "job-lost"
  /** The journal did not take what must be written before the next step. */
  | "job-state-unwritten"
  /** Trouble of the runner's own, in the middle. */
  | "job-broken-off";

/** Steps by their state at the end. */
export interface JobSteps {
  readonly job_id: string | null;
  readonly total: number;
  readonly done: number;
  /** Of those, how many were not run because nothing had changed. */
  readonly unchanged: number;
  readonly failed: readonly string[];
  readonly unknown: readonly string[];
}

export interface JobVerdict {
  readonly outcome: OutcomeName;
  readonly because: Outcome["because"];
  readonly statusOf: Outcome["statusOf"];
  readonly status: number;
  readonly steps: JobSteps | null;
}

/** In the order in which they count where several have gone wrong. */
const OUTCOMES: readonly OutcomeName[] = [
  "ok",
  "failed",
  "unknown",
  "bad_output",
  "dependency_down",
  "lease_lost",
  "config_error",
  "wrapper_error",
  "timeout",
];

/** Names beyond these are counted, and not told. */
const MOST_NAMED = 20;

export function renderVerdict({ steps, ...verdict }: JobVerdict): string {
  const named = (names: readonly string[]): readonly string[] => names.slice(0, MOST_NAMED);
  const told =
    steps === null
      ? null
      : { ...steps, failed: named(steps.failed), unknown: named(steps.unknown) };
  return JSON.stringify({ ...verdict, steps: told });
}

/** @returns undefined: the runner was killed before it could tell, or is no runner */
export function parseVerdict(text: string): JobVerdict | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { outcome, because, statusOf, status, steps } = value;
  if (!isText(outcome) || !OUTCOMES.some((name) => name === outcome)) return undefined;
  if (!isText(because) || !isCount(status) || status > 255) return undefined;
  if (statusOf !== "command" && statusOf !== "watchdog") return undefined;
  if (steps !== null && !isSteps(steps)) return undefined;
  return value as unknown as JobVerdict;
}

function isSteps(value: unknown): value is JobSteps {
  if (!isObject(value)) return false;
  const { job_id, total, done, unchanged, failed, unknown } = value;
  const isNames = (names: unknown): boolean => Array.isArray(names) && names.every(isText);
  const isId = job_id === null || isText(job_id);
  return isId && [total, done, unchanged].every(isCount) && isNames(failed) && isNames(unknown);
}
