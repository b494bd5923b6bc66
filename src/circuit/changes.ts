/**
 * Whether a store was changed, for each of several circuits that look at the same one: its answer
 * is about the time since it was last asked, whoever asked.
 */
import type { CircuitStore } from "../core/shared-circuit.ts";

const counts = new WeakMap<CircuitStore, number>();

/** Another number than before: somebody else may have changed something. */
export function changesOf(store: CircuitStore): number {
  const count = (counts.get(store) ?? 0) + (store.hasChanged() ? 1 : 0);
  counts.set(store, count);
  return count;
}
