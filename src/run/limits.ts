/**
 * The clocks of `--timeout` and `--not-after`. A timer only wakes us; whether a limit is reached is
 * decided by the clock that the limit is defined on: for spans CLOCK_MONOTONIC (stands still in
 * suspend) without the time in which the tree was paused (pause-clock.ts), the wall clock for a
 * time of the day.
 */
import type { LimitName } from "../core/run-state.ts";
import type { RunOptions, TimeOfDay } from "../core/run-options.ts";
import { type MonotonicAt, spanMs, type WallAt } from "../core/time.ts";
import { nextWallTime, wallNow } from "../os/clock.ts";
import { LONGEST_WAIT_MS, type Timer, wakeAfter } from "../os/timers.ts";
import { neverPaused, type PauseClock } from "./pause-clock.ts";

/** Instants at which the limits of a run are reached, fixed at its start. */
export interface Deadlines {
  /** On the clock that it was set with. */
  readonly timeoutAt: MonotonicAt | undefined;
  readonly notAfterAt: WallAt | undefined;
}

/** A timer stands still in suspend, a time of the day does not: looked at again this often. */
const WALL_LOOK_MS = 1_000;

/** @param askedAt  when watchdog was started: a wait does not move a time of the day to the next */
export function setDeadlines(
  options: RunOptions,
  askedAt: WallAt,
  clock: PauseClock = neverPaused(),
): Deadlines {
  const { timeoutMs, notAfter } = options;
  return {
    timeoutAt: timeoutMs === undefined ? undefined : ((clock.now() + timeoutMs) as MonotonicAt),
    notAfterAt: notAfter === undefined ? undefined : findNotAfter(notAfter, askedAt),
  };
}

function findNotAfter({ hour, minute, second }: TimeOfDay, askedAt: WallAt): WallAt {
  return nextWallTime(askedAt, hour, minute, second);
}

/** `--wait`, and no longer than until `--not-after`: what may not run then need not wait either. */
export function limitWait(options: RunOptions, askedAt: WallAt): number | undefined {
  const { waitMs, notAfter } = options;
  if (waitMs === undefined || notAfter === undefined) return waitMs;
  return Math.max(0, Math.min(waitMs, findNotAfter(notAfter, askedAt) - wallNow()));
}

/** Calls back once, with the limit that was reached first; re-arms itself until then. */
export function watchDeadlines(
  deadlines: Deadlines,
  onReached: (limit: LimitName) => void,
  clock: PauseClock = neverPaused(),
): Timer {
  const watch = new DeadlineWatch(deadlines, onReached, clock);
  watch.look();
  return watch;
}

class DeadlineWatch implements Timer {
  readonly #deadlines: Deadlines;
  readonly #onReached: (limit: LimitName) => void;
  readonly #clock: PauseClock;
  readonly #resumption: Timer;
  #timer: Timer | undefined;

  constructor(deadlines: Deadlines, onReached: (limit: LimitName) => void, clock: PauseClock) {
    this.#deadlines = deadlines;
    this.#onReached = onReached;
    this.#clock = clock;
    this.#resumption = clock.onResumed(() => this.look());
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#resumption.cancel();
  }

  look(): void {
    this.#timer?.cancel();
    const remaining = readRemaining(this.#deadlines, this.#clock);
    const reached = remaining.find((one) => one.remainingMs <= 0);
    if (reached !== undefined) {
      this.cancel();
      return this.#onReached(reached.limit);
    }
    if (remaining.length > 0) this.#timer = wakeAfter(this.#waitMs(remaining), () => this.look());
  }

  /** While the clock stands still what is left on it says nothing about when to look again. */
  #waitMs(remaining: readonly Remaining[]): number {
    const runs = remaining.filter((one) => one.limit !== "timeout" || !this.#clock.standsStill);
    const next = Math.min(LONGEST_WAIT_MS, ...runs.map((one) => one.remainingMs));
    return this.#deadlines.notAfterAt === undefined ? next : Math.min(next, WALL_LOOK_MS);
  }
}

interface Remaining {
  readonly limit: LimitName;
  readonly remainingMs: number;
}

function readRemaining(deadlines: Deadlines, clock: PauseClock): Remaining[] {
  const remaining: Remaining[] = [];
  if (deadlines.timeoutAt !== undefined) {
    remaining.push({ limit: "timeout", remainingMs: spanMs(clock.now(), deadlines.timeoutAt) });
  }
  if (deadlines.notAfterAt !== undefined) {
    remaining.push({ limit: "not-after", remainingMs: deadlines.notAfterAt - wallNow() });
  }
  return remaining;
}
