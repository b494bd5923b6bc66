/**
 * Instants and spans. A monotonic instant and a wall-clock instant are two branded types that never
 * mix; a span is a plain number whose name ends in `Ms`.
 */

/**
 * Milliseconds on CLOCK_MONOTONIC: comparable within one boot, stands still while the machine is
 * suspended.
 */
export type MonotonicAt = number & { readonly clock: "monotonic" };

/**
 * Milliseconds since 1970 on CLOCK_REALTIME: for people and calendars only, never for measuring a
 * span.
 */
export type WallAt = number & { readonly clock: "wall" };

/** The span between two monotonic instants, in milliseconds. */
export function spanMs(from: MonotonicAt, until: MonotonicAt): number {
  return until - from;
}

/** The last instant that a date can hold (ECMA-262, 21.4.1.1). */
const FARTHEST_MS = 8.64e15;

/**
 * An instant of the wall clock as text (UTC); null: no calendar goes so far. A file may have any
 * time, and so may a row that was damaged.
 */
export function renderIso(at: number): string | null {
  return Math.abs(at) <= FARTHEST_MS ? new Date(at).toISOString() : null;
}
