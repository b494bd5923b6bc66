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
