/**
 * Which runs say nothing about their job: of a job of many steps one step alone was asked for
 * (`--only`), and went well. Pure.
 *
 * Always: such a run is no success of the job and no failure, whoever counts, compares or tells
 * them; one that went badly is a failure as any other.
 */
import type { OutcomeReason } from "./outcome.ts";

export const ONE_STEP = "only-done" satisfies OutcomeReason;

export function isOfOneStep({ because }: { readonly because: string | null }): boolean {
  return because === ONE_STEP;
}
