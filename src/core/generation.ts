/**
 * The number of the next grant of a key: larger than all that is known of earlier ones, so that it
 * can serve as a fencing token. Pure.
 *
 * Always: never smaller than any number that was taken before and is still known from one place of
 * four. By more than one it grows only where an acquirer died on its way and took a number along.
 */
import { WatchdogError } from "./errors.ts";

/**
 * The largest number that a person may give: far above all counting, and far enough below the end
 * that none is ever used up by it.
 */
export const MOST_GIVEN_GENERATION = 1_000_000_000_000_000;

export interface KnownGenerations {
  /** Of lease.json; undefined: missing or unreadable. */
  readonly record: number | undefined;
  /** The numbers in the names of the slot files, whatever is in the files. */
  readonly slots: readonly number[];
  /** Of the lease directories that were removed; 0: none. */
  readonly floor: number;
  /** Undefined: it knows nothing of the key, or did not answer in time. */
  readonly journal: number | undefined;
}

/**
 * One more than the largest of them. What is no whole number was never granted by anybody and is
 * passed over.
 *
 * @throws WatchdogError "lease.refused" where the numbers are used up (2^53 − 1): no counting gets
 *   there, so that somebody has written it
 */
export function decideGeneration(known: KnownGenerations): number {
  const all = [known.record ?? 0, ...known.slots, known.floor, known.journal ?? 0];
  const largest = all.filter(Number.isSafeInteger).reduce((most, one) => Math.max(most, one), 0);
  if (largest < Number.MAX_SAFE_INTEGER) return largest + 1;
  throw new WatchdogError("lease.refused", `the generation ${largest} has no next one`, {
    hint: "watchdog lease list",
  });
}
