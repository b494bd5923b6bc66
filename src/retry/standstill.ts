/**
 * The time in which this process could do anything: CLOCK_MONOTONIC without the spans in which it
 * stood still, because the run around it has frozen its tree. Such a call has waited for a server
 * that was away, and must still get its attempt when it is back.
 *
 * Non-guarantee: standing still is told from a gap between two looks, so that one below GAP_MS
 * counts as time, and a machine that is busier than that as none. State after a crash: none.
 */
import type { MonotonicAt } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { tickEvery, type Timer } from "../os/timers.ts";

const LOOK_MS = 500;
const GAP_MS = 2_000;

export class MovingClock {
  readonly #read: () => MonotonicAt;
  readonly #timer: Timer | undefined;
  #lookedAt: MonotonicAt;
  #stoodStillMs = 0;

  /** @param isWatching  no: it is CLOCK_MONOTONIC, and nothing is looked at */
  constructor(isWatching: boolean, read: () => MonotonicAt = monotonicNow) {
    this.#read = read;
    this.#lookedAt = read();
    this.#timer = isWatching ? tickEvery(LOOK_MS, () => this.#look()) : undefined;
  }

  now(): MonotonicAt {
    this.#look();
    return (this.#lookedAt - this.#stoodStillMs) as MonotonicAt;
  }

  end(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const at = this.#read();
    const gapMs = at - this.#lookedAt;
    if (this.#timer !== undefined && gapMs > GAP_MS) this.#stoodStillMs += gapMs - LOOK_MS;
    this.#lookedAt = at;
  }
}
