/**
 * The record of `watchdog retry` as `--result-file` holds it: its shape and how it is filled. Pure.
 */
import type { BackoffEnd } from "./backoff.ts";
import type { CircuitState } from "./circuit.ts";
import type { OutcomeName, OutcomeReason } from "./outcome.ts";
import { type AgainReason, type AttemptEnd, type DoneReason, statusOf } from "./retry.ts";
import { nameSignal } from "./signals.ts";
import type { WallAt } from "./time.ts";

/** The first ones and the last ones are kept; those between are counted. */
export const MOST_FIRST_ATTEMPTS = 50;
export const MOST_LAST_ATTEMPTS = 50;

/** What follows from an attempt, and why. */
export type AttemptReason = DoneReason | AgainReason | BackoffEnd;

export interface RecordedAttempt {
  /** From 1, as WATCHDOG_ATTEMPT. */
  readonly attempt: number;
  /** Wall clock, UTC. */
  readonly started_at: string;
  readonly duration_ms: number;
  /** Null where a signal or the limit has ended it, or it was not started. */
  readonly exit_code: number | null;
  /** `TERM`. */
  readonly signal: string | null;
  /** As a shell shows it: 124 at the limit, 128+N for signal N. */
  readonly status: number;
  readonly because: AttemptReason;
  /** Before it. */
  readonly waited_ms: number;
}

export interface RetryRecord {
  readonly format: 1;
  readonly state: "running" | "ended";
  readonly outcome: OutcomeName | null;
  readonly because: OutcomeReason | BackoffEnd | null;
  readonly exit_status: number | null;
  readonly status_of: "command" | "watchdog" | null;
  readonly command: readonly string[];
  /** Base64, where `command` would not give the bytes back. */
  readonly command_bytes?: readonly string[];
  readonly pid: number;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly duration_ms: number | null;
  /** All that were begun. */
  readonly attempt_count: number;
  /** At most the first 50 and the last 50. */
  readonly attempts: readonly RecordedAttempt[];
  /** The circuit as it was left; null: without `--breaker`. */
  readonly circuit: { readonly name: string; readonly state: CircuitState["kind"] } | null;
  readonly watchdog: { readonly version: string; readonly commit: string };
}

export interface AttemptNotes {
  readonly attempt: number;
  readonly startedWallAt: WallAt;
  readonly durationMs: number;
  readonly waitedMs: number;
  readonly end: AttemptEnd;
  readonly because: AttemptReason;
}

export function recordAttempt(notes: AttemptNotes): RecordedAttempt {
  const { end } = notes;
  return {
    attempt: notes.attempt,
    started_at: new Date(notes.startedWallAt).toISOString(),
    duration_ms: Math.round(notes.durationMs),
    exit_code: end.kind === "exited" ? end.code : null,
    signal: end.kind === "signaled" ? nameSignal(end.signal) : null,
    status: statusOf(end),
    because: notes.because,
    waited_ms: Math.round(notes.waitedMs),
  };
}

/** One more attempt, and of all the first ones and the last ones. */
export function keepAttempts(
  kept: readonly RecordedAttempt[],
  next: RecordedAttempt,
): readonly RecordedAttempt[] {
  const last = [...kept.slice(MOST_FIRST_ATTEMPTS), next].slice(-MOST_LAST_ATTEMPTS);
  return kept.length < MOST_FIRST_ATTEMPTS
    ? [...kept, next]
    : [...kept.slice(0, MOST_FIRST_ATTEMPTS), ...last];
}
