/**
 * How often the main loop is counted in the slot, and how long it may stand still there before a
 * reader calls it blocked. Writer and reader derive both from the interval of the record, so that
 * they agree. Pure; milliseconds.
 *
 * Always: more than two whole periods are missed before a loop is called blocked, or exactly two at
 * the usual interval; and a loop that blocks is called so by the second beat from then on, or after
 * SHORTEST_SILENCE_MS where beats are quicker than that.
 */

/** An idle run wakes up for little else, and each count costs what a wake-up of a runtime costs. */
const LONGEST_PERIOD_MS = 5_000;
const SHORTEST_PERIOD_MS = 1_000;
const SHORTEST_SILENCE_MS = 5_000;

/** @param intervalMs  of the heartbeat */
export function countPeriodMs(intervalMs: number): number {
  return Math.min(Math.max(intervalMs / 2, SHORTEST_PERIOD_MS), LONGEST_PERIOD_MS);
}

/** Silent for longer than this, as of a beat, the main loop is blocked. */
export function blockedAfterMs(intervalMs: number): number {
  return Math.max(2 * countPeriodMs(intervalMs), SHORTEST_SILENCE_MS);
}
