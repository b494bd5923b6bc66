/** Which steps of a job are what, and of which nobody can tell. Pure. */
import type { JobOrder } from "../core/job-order.ts";
import type { JobSpec } from "../core/job-spec.ts";
import type { StepRecord } from "../core/step-record.ts";
import type { RunnerEnd } from "./runner.ts";

/**
 * Interrupted ones are asked at the next resume, if somebody has asked for the end, or for another
 * step alone.
 */
export function isUnclear(record: StepRecord, { spec, asked }: JobOrder, end: RunnerEnd): boolean {
  const { step, state } = record;
  if (state === "unknown") return true;
  if (state !== "interrupted" || isStopped(record, spec.steps)) return false;
  if (asked.only !== undefined && step !== asked.only) return false;
  return end.kind === "finished" && end.finish.state === "unknown";
}

/** It can run a second time: nobody need decide about it. */
export function isStopped({ step, state }: StepRecord, steps: JobSpec["steps"]): boolean {
  if (state !== "interrupted") return false;
  return steps.find(({ name }) => name === step)?.sideEffects === "none";
}

export function countDone(records: readonly StepRecord[]): number {
  return records.filter(({ state }) => state === "done").length;
}

export function isUnchanged({ state, because }: StepRecord): boolean {
  return state === "done" && because === "unchanged";
}

export function named(
  records: readonly StepRecord[],
  isMeant: (record: StepRecord) => boolean,
): readonly string[] {
  return records.filter(isMeant).map(({ step }) => step);
}
