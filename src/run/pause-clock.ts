/**
 * The clock of `--timeout` and `--idle-timeout`: CLOCK_MONOTONIC, which stands still while the tree
 * is paused, unless paused time counts (`--count-paused`). Refuses to know who is paused, and why.
 *
 * Always: it never goes back; an instant that was taken before, during or after a pause is told in
 * its numbers by `at`, so that two of them can be subtracted. Its instants are those of this run
 * alone: nothing stores them. State after a crash: none.
 */
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";

interface Pause {
  readonly fromAt: MonotonicAt;
  readonly untilAt: MonotonicAt;
  /** All of those before it. */
  readonly before: number;
}

/**
 * More pauses are not kept apart; of an instant before the oldest of them it is forgotten that
 * there were others: it may look older than it is.
 */
export const MOST_PAUSES = 1_000;

export class PauseClock {
  readonly #countsPaused: boolean;
  readonly #readMonotonic: () => MonotonicAt;
  readonly #onResumed = new Set<() => void>();
  #pauses: Pause[] = [];
  #pausedMs = 0;
  #pausedSince: MonotonicAt | undefined;

  /** @param countsPaused  this clock goes on in a pause; `pausedMs` tells of it all the same */
  constructor(countsPaused: boolean, readMonotonic: () => MonotonicAt = monotonicNow) {
    this.#countsPaused = countsPaused;
    this.#readMonotonic = readMonotonic;
  }

  /** Safe to repeat. */
  pause(): void {
    this.#pausedSince ??= this.#readMonotonic();
  }

  /** Safe to repeat. */
  resume(): void {
    const fromAt = this.#pausedSince;
    if (fromAt === undefined) return;
    const untilAt = this.#readMonotonic();
    this.#pauses = [...this.#pauses, { fromAt, untilAt, before: this.#pausedMs }].slice(
      -MOST_PAUSES,
    );
    this.#pausedMs += spanMs(fromAt, untilAt);
    this.#pausedSince = undefined;
    for (const listener of this.#onResumed) listener();
  }

  /** Whether this clock does not go on at the moment. */
  get standsStill(): boolean {
    return this.#pausedSince !== undefined && !this.#countsPaused;
  }

  /** How long the tree was paused until now, in milliseconds, whether that counts or not. */
  get pausedMs(): number {
    const since = this.#pausedSince;
    return this.#pausedMs + (since === undefined ? 0 : spanMs(since, this.#readMonotonic()));
  }

  now(): MonotonicAt {
    return this.at(this.#readMonotonic());
  }

  /** What this clock showed at an instant of CLOCK_MONOTONIC. */
  at(instant: MonotonicAt): MonotonicAt {
    if (this.#countsPaused) return instant;
    return (instant - this.#pausedBefore(instant)) as MonotonicAt;
  }

  /** Whoever waits on this clock looks at it again then: its timer knew nothing of the pause. */
  onResumed(listener: () => void): { cancel(): void } {
    this.#onResumed.add(listener);
    return { cancel: () => this.#onResumed.delete(listener) };
  }

  #pausedBefore(instant: MonotonicAt): number {
    const since = this.#pausedSince;
    if (since !== undefined && instant > since) return this.#pausedMs + spanMs(since, instant);
    const last = this.#pauses.findLast(({ fromAt }) => fromAt <= instant);
    if (last === undefined) return this.#pauses[0]?.before ?? 0;
    const { fromAt, untilAt, before } = last;
    return before + spanMs(fromAt, instant < untilAt ? instant : untilAt);
  }
}

/** For those who know of no pauses. */
export function neverPaused(): PauseClock {
  return new PauseClock(true);
}
