/**
 * Timers of the main loop. A timer is only a wake-up call: whoever asked looks at the clock again,
 * so a timer that comes early, late or out of a suspend never decides anything by itself.
 */

import { monotonicNow } from "./clock.ts";

/**
 * The longest single wait: `setTimeout` overflows at 2^31 ms (24.8 days), and a wall clock may be
 * stepped.
 */
export const LONGEST_WAIT_MS = 30_000;

export interface Timer {
  cancel(): void;
}

/**
 * Calls back after at most `waitMs` (cut to LONGEST_WAIT_MS); the caller re-arms until its clock
 * agrees.
 */
export function wakeAfter(waitMs: number, wake: () => void): Timer {
  const handle = setTimeout(wake, Math.min(Math.max(0, Math.ceil(waitMs)), LONGEST_WAIT_MS));
  return { cancel: () => clearTimeout(handle) };
}

/** Calls back once so long a span is over by CLOCK_MONOTONIC, however long it is. */
export function wakeWhenOver(spanMs: number, wake: () => void): Timer {
  const began = monotonicNow();
  let timer: Timer;
  const look = (): void => {
    const restMs = spanMs - (monotonicNow() - began);
    if (restMs <= 0) return wake();
    timer = wakeAfter(restMs, look);
  };
  timer = wakeAfter(spanMs, look);
  return { cancel: () => timer.cancel() };
}

/** Calls back again and again, `periodMs` apart, until cancelled. Keeps the process alive. */
export function wakeEvery(periodMs: number, wake: () => void): Timer {
  const handle = setInterval(wake, periodMs);
  return { cancel: () => clearInterval(handle) };
}

/** The same, but as long as something else keeps the process alive. */
export function tickEvery(periodMs: number, tick: () => void): Timer {
  const handle = setInterval(tick, periodMs);
  handle.unref();
  return { cancel: () => clearInterval(handle) };
}

/**
 * Stands still for some milliseconds: nothing else of this thread happens meanwhile. For the short
 * pause before a second look at something that is just being written, never to wait for an event.
 */
export function pauseThread(pauseMs: number): void {
  Bun.sleepSync(pauseMs);
}
