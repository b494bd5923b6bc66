/**
 * What becomes of a step that may do harm when it runs twice, and of which nobody knows whether it
 * has happened: its `settle` is asked, else a person. Pure.
 *
 * Always: only the answers 0 and 1 of `settle` count, and 0 only with the artifacts that the step
 * must leave and where nothing was changed since; all else is `unknown`.
 */
import { isSameState, NOT_RUN, type PlannedStep, UNTOUCHED } from "./job-plan.ts";
import type { Change } from "./job-plan.ts";
import type { StepSpec } from "./job-spec.ts";
import { isDeathShown, type StepArtifacts, type StepEnd } from "./step-outcome.ts";
import { STEP_REASONS } from "./step-reasons.ts";
import type { StepReason, StepRecord } from "./step-record.ts";

/** Which run writes it, and what has changed since the step was started. */
export interface UnclearStep {
  readonly changed: Change | undefined;
  readonly runId: string;
  readonly generation: number;
}

const NOT_STARTED: readonly StepReason[] = [
  "not-found",
  "not-executable",
  "not-started",
  "settled-not-happened",
];

/**
 * Whether a failed step has told itself that it has not done its work, or never ran: only then it
 * may run again although it is unsafe.
 */
export function hasSaidSo({ because, exitCode }: StepRecord): boolean {
  if (because === "exited") return exitCode !== null && exitCode !== 0 && !isDeathShown(exitCode);
  return because !== null && NOT_STARTED.includes(because);
}

/** Whether a step may have done its work although nobody calls it done. */
export function mayHaveHappened(record: StepRecord, isUnsafe: boolean): boolean {
  switch (record.state) {
    case "unknown":
      return true;
    case "running":
    case "interrupted":
      return isUnsafe;
    case "failed":
      return isUnsafe && record.because !== "accepted-fail" && !hasSaidSo(record);
    case "pending":
    case "done":
      return false;
  }
}

/**
 * Also for a step that is interrupted while its job runs on: then with its record as `interrupted`,
 * because only a resume takes `running` for one whose watchdog was killed.
 */
export function decideUnclear(
  step: StepSpec,
  record: StepRecord,
  { changed, runId, generation }: UnclearStep,
): PlannedStep {
  const isRunning = record.state === "running";
  const because = isRunning ? "watchdog-killed" : record.because;
  const change =
    step.settle === undefined
      ? {
          state: "unknown" as const,
          because: "no-settle" as const,
          detail: STEP_REASONS[because ?? "stopped"],
        }
      : { state: "interrupted" as const, because };
  const next = { ...record, runId, generation, ...change };
  return {
    ...UNTOUCHED,
    record: next,
    because: next.because,
    isChanged: !isSameState(record, next),
    todo: step.settle === undefined ? "person" : "settle",
    endsAttempt: isRunning,
    changed,
  };
}

export type SettleAnswer =
  | { readonly kind: "happened"; readonly artifacts: StepArtifacts }
  | { readonly kind: "not-happened" }
  /** @param detail  for people: how `settle` ended */
  | { readonly kind: "unclear"; readonly detail: string };

/**
 * What the end of `settle` says; where it is `happened` the artifacts are to be hashed. That they
 * are complete is what `settle` answers for: nobody else was there.
 */
export function readSettleEnd(end: StepEnd): SettleAnswer["kind"] {
  if (end.kind !== "exited") return "unclear";
  if (end.code === 0) return "happened";
  return end.code === 1 ? "not-happened" : "unclear";
}

/** @param planned  whose `todo` is `settle` */
export function decideSettled(planned: PlannedStep, answer: SettleAnswer): PlannedStep {
  const { record, changed } = planned;
  const settled = (change: Partial<StepRecord>, more: Partial<PlannedStep>): PlannedStep => {
    const next = { ...record, detail: null, ...change };
    const base = { ...UNTOUCHED, record: next, because: next.because };
    return { ...base, isChanged: true, ...more };
  };
  const unknown = (because: StepReason | null, detail: string | null): PlannedStep =>
    settled({ state: "unknown", because, detail }, { todo: "person" });
  switch (answer.kind) {
    case "unclear":
      return unknown("settle-unclear", answer.detail);
    case "not-happened": {
      const because = "settled-not-happened";
      const change = { ...NOT_RUN, state: "pending" as const, because: because as StepReason };
      return settled(change, { todo: "run", removesArtifacts: true });
    }
    case "happened": {
      if (changed !== undefined) return unknown(changed.because, changed.detail);
      const { artifacts } = answer;
      if (artifacts.kind === "bad") return unknown(artifacts.because, artifacts.detail);
      const change = { state: "done" as const, because: "settled-happened" as const };
      return settled(change, { artifacts: artifacts.artifacts });
    }
  }
}
