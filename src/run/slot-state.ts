/** Where a run stands, in the words of the beat slot. Pure. */
import type { SlotRunState } from "../core/lease-record.ts";
import type { RunState } from "../core/run-state.ts";

/**
 * `stopping`: watchdog is ending the tree; `ending`: the tree is gone, output is delivered;
 * `paused`: the tree stands still, and nothing else is wrong.
 */
export function slotStateOf(state: RunState): SlotRunState {
  if (state.phase !== "running") return "ending";
  const { isKilling, limit, stop, dependency, itemsFailure, hasLostLease, isPaused } = state;
  const reasons = [limit, stop, dependency, itemsFailure];
  if (isKilling || hasLostLease || reasons.some((one) => one !== undefined)) return "stopping";
  return isPaused ? "paused" : "running";
}
