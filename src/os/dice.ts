/** Chance: for waits that are to be spread, never for names or secrets. */

/** Uniform, 0 ≤ x < 1. */
export function throwDice(): number {
  return Math.random();
}
