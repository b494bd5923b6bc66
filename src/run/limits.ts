/**
 * The clocks of `--timeout` and `--not-after`. A timer only wakes us; whether a limit is reached is
 * decided by the clock that the limit is defined on: CLOCK_MONOTONIC for spans (stands still in
 * suspend), the wall clock for a time of the day.
 */
import type { LimitName } from "../core/run-state.ts";
import type { RunOptions } from "../core/run-options.ts";
import { type MonotonicAt, spanMs, type WallAt } from "../core/time.ts";
import { monotonicNow, nextWallTime, wallNow } from "../os/clock.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";

/** Instants at which the limits of a run are reached, fixed at its start. */
export interface Deadlines {
  readonly timeoutAt: MonotonicAt | undefined;
  readonly notAfterAt: WallAt | undefined;
}

/** A timer stands still in suspend, a time of the day does not: looked at again this often. */
const WALL_LOOK_MS = 1_000;

export function setDeadlines(options: RunOptions): Deadlines {
  const { timeoutMs, notAfter } = options;
  return {
    timeoutAt: timeoutMs === undefined ? undefined : ((monotonicNow() + timeoutMs) as MonotonicAt),
    notAfterAt:
      notAfter === undefined
        ? undefined
        : nextWallTime(wallNow(), notAfter.hour, notAfter.minute, notAfter.second),
  };
}

/** Calls back once, with the limit that was reached first; re-arms itself until then. */
export function watchDeadlines(deadlines: Deadlines, onReached: (limit: LimitName) => void): Timer {
  let timer: Timer | undefined;
  const look = (): void => {
    const remaining = readRemaining(deadlines);
    const reached = remaining.find((one) => one.remainingMs <= 0);
    if (reached !== undefined) return onReached(reached.limit);
    const next = Math.min(...remaining.map((one) => one.remainingMs));
    const longest = deadlines.notAfterAt === undefined ? next : WALL_LOOK_MS;
    if (Number.isFinite(next)) timer = wakeAfter(Math.min(next, longest), look);
  };
  look();
  return { cancel: () => timer?.cancel() };
}

function readRemaining(deadlines: Deadlines): { limit: LimitName; remainingMs: number }[] {
  const remaining: { limit: LimitName; remainingMs: number }[] = [];
  if (deadlines.timeoutAt !== undefined) {
    remaining.push({ limit: "timeout", remainingMs: spanMs(monotonicNow(), deadlines.timeoutAt) });
  }
  if (deadlines.notAfterAt !== undefined) {
    remaining.push({ limit: "not-after", remainingMs: deadlines.notAfterAt - wallNow() });
  }
  return remaining;
}
