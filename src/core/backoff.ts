/**
 * How long to wait before something that failed is tried again, and when to give up: exponential,
 * with a cap and full jitter, bounded by attempts and by time. Pure; clock and dice are handed in.
 *
 * Full jitter: each wait is uniform between 0 and min(cap, initial × factor^n), which spreads those
 * who wait for the same thing best (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).
 *
 * Always: a wait is finite, not negative, not above the cap, and does not reach beyond the total
 * time; there are never more attempts than allowed. Instants are of one clock; if it has gone back,
 * no time is over.
 */
import type { MonotonicAt } from "./time.ts";

export interface Backoff {
  /** The bound of the first wait. */
  readonly initialMs: number;
  /** The bound of every wait. */
  readonly capMs: number;
  /** At least 1. */
  readonly factor: number;
  /** All of them, the first one too. */
  readonly maxAttempts: number;
  /** From startBackoff on. */
  readonly maxElapsedMs: number;
}

export interface BackoffState {
  readonly startedAt: MonotonicAt;
  /** Those that were made, and the one that was last waited for. */
  readonly attempts: number;
  /** The exponent of the next one. */
  readonly waits: number;
}

export interface Chance {
  readonly nowMs: MonotonicAt;
  /** 0 ≤ random < 1, uniform. */
  readonly random: number;
}

export type BackoffEnd = "max-attempts" | "max-elapsed";

export type NextAttempt =
  | { readonly kind: "wait"; readonly delayMs: number; readonly state: BackoffState }
  | { readonly kind: "exhausted"; readonly because: BackoffEnd };

/**
 * @param attempts  made already and counted: 1 where the first one failed at once, 0 where it is
 *   waited for too
 */
export function startBackoff(nowMs: MonotonicAt, attempts: number): BackoffState {
  return { startedAt: nowMs, attempts, waits: 0 };
}

/**
 * Called after a failure; the state that it gives counts the attempt that is waited for. Where the
 * total time would end within the wait, the last attempt is made just then.
 */
export function decideNextAttempt(
  backoff: Backoff,
  state: BackoffState,
  { nowMs, random }: Chance,
): NextAttempt {
  const { startedAt, attempts, waits } = state;
  if (attempts >= backoff.maxAttempts) return { kind: "exhausted", because: "max-attempts" };
  const restMs = backoff.maxElapsedMs - Math.max(0, nowMs - startedAt);
  if (!(restMs > 0)) return { kind: "exhausted", because: "max-elapsed" };
  const delayMs = Math.min(random * boundMs(backoff, waits), restMs);
  return { kind: "wait", delayMs, state: { startedAt, attempts: attempts + 1, waits: waits + 1 } };
}

/**
 * The bound of wait number n, the first being 0. Where the power is no longer a number it is above
 * any cap; nothing times infinity would be none.
 */
export function boundMs({ initialMs, capMs, factor }: Backoff, n: number): number {
  return Math.min(capMs, initialMs * Math.min(factor ** n, Number.MAX_VALUE));
}

export type BackoffRelation =
  | "initial-not-positive"
  | "cap-below-initial"
  | "factor-below-1"
  | "attempts-below-1"
  | "elapsed-not-positive"
  | "elapsed-below-initial"
  | "beyond-limits";

export interface BrokenRelation {
  readonly because: BackoffRelation;
  /** A clause: `a cap of 500 ms below a first delay of 1000 ms`. */
  readonly found: string;
  readonly expected: string;
}

/** Beyond these a number is a slip, and sums of them would no longer be exact. */
export const LONGEST_SPAN_MS = 3_650 * 86_400_000;
export const LARGEST_FACTOR = 1_000;
export const MOST_ATTEMPTS = 1_000_000;

/** All that is wrong, in a fixed order; what is no number breaks each relation that it is in. */
export function checkBackoff(values: Backoff): readonly BrokenRelation[] {
  const { initialMs, capMs, factor, maxAttempts, maxElapsedMs } = values;
  const broken: BrokenRelation[] = [];
  const want = (holds: boolean, relation: BrokenRelation): void => {
    if (!holds) broken.push(relation);
  };
  want(initialMs > 0, {
    because: "initial-not-positive",
    found: `a first delay of ${initialMs} ms`,
    expected: "more than 0",
  });
  want(capMs >= initialMs, {
    because: "cap-below-initial",
    found: `a cap of ${capMs} ms below a first delay of ${initialMs} ms`,
    expected: "a cap of at least the first delay",
  });
  want(factor >= 1, {
    because: "factor-below-1",
    found: `a factor of ${factor}`,
    expected: "at least 1: a wait never gets shorter",
  });
  want(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1, {
    because: "attempts-below-1",
    found: `a bound of ${maxAttempts} attempts`,
    expected: "a whole number, at least 1",
  });
  want(maxElapsedMs > 0, {
    because: "elapsed-not-positive",
    found: `a total time of ${maxElapsedMs} ms`,
    expected: "more than 0",
  });
  want(!(maxElapsedMs > 0) || maxElapsedMs >= initialMs, {
    because: "elapsed-below-initial",
    found: `a total time of ${maxElapsedMs} ms below a first delay of ${initialMs} ms`,
    expected: "a total time of at least the first delay",
  });
  const isWithin = Math.max(initialMs, capMs, maxElapsedMs) <= LONGEST_SPAN_MS;
  want(isWithin && !(factor > LARGEST_FACTOR) && !(maxAttempts > MOST_ATTEMPTS), {
    because: "beyond-limits",
    found: `${initialMs} ms to ${capMs} ms, factor ${factor}, ${maxAttempts} attempts`,
    expected: `10 years, a factor of ${LARGEST_FACTOR} and ${MOST_ATTEMPTS} attempts at most`,
  });
  return broken;
}
