/**
 * Timers of the main loop. A timer is only a wake-up call: whoever asked looks at the clock again,
 * so a timer that comes early, late or out of a suspend never decides anything by itself.
 */

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

/** Calls back again and again, `periodMs` apart, until cancelled. Keeps the process alive. */
export function wakeEvery(periodMs: number, wake: () => void): Timer {
  const handle = setInterval(wake, periodMs);
  return { cancel: () => clearInterval(handle) };
}
