/**
 * Whether a dependency wants work now: ready and unready by answers in a row. Pure. There is no
 * circuit in it: nothing is shared, nothing waits longer, nothing gives up.
 *
 * Always: it changes only at an answer that reaches its threshold, and an answer of the other kind
 * begins the count anew. Ready until the opposite was found: at a start nobody has asked yet.
 */
import type { ProbeSettings } from "./probe-settings.ts";

export interface ReadinessState {
  readonly isReady: boolean;
  /** Answers in a row that speak against it. */
  readonly against: number;
}

export const FIRST_READINESS: ReadinessState = { isReady: true, against: 0 };

export type ReadinessDecision =
  | { readonly kind: "kept"; readonly state: ReadinessState }
  | {
      readonly kind: "changed";
      readonly because: "failure-threshold" | "success-threshold";
      readonly state: ReadinessState;
    };

export type ReadinessThresholds = Pick<ProbeSettings, "failureThreshold" | "successThreshold">;

export function decideReadiness(
  { isReady, against }: ReadinessState,
  isGood: boolean,
  { failureThreshold, successThreshold }: ReadinessThresholds,
): ReadinessDecision {
  if (isGood === isReady) return { kind: "kept", state: { isReady, against: 0 } };
  const threshold = isReady ? failureThreshold : successThreshold;
  if (against + 1 < threshold) {
    return { kind: "kept", state: { isReady, against: against + 1 } };
  }
  const because = isReady ? "failure-threshold" : "success-threshold";
  return { kind: "changed", because, state: { isReady: !isReady, against: 0 } };
}
