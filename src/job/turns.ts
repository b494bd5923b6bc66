/**
 * What the runner of a job waits for: steps that count as running, each in a stage of its own.
 * Pure.
 */
import type { JobEvent } from "../core/job-next.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import type { StepSpec } from "../core/job-spec.ts";
import type { EndedStep } from "../core/step-outcome.ts";
import type { StepRecord } from "../core/step-record.ts";
import type { EndedAttempt, Prepared, Unprepared } from "./step-attempt.ts";

/** What a step has come to that counts as running: nobody waits for another one meanwhile. */
export type Turn = { readonly step: StepSpec } &
  /** Undefined: the end was asked for. */
  (
    | { readonly kind: "prepared"; readonly prepared: Prepared | Unprepared | undefined }
    | { readonly kind: "ended"; readonly ended: EndedAttempt }
    | {
        readonly kind: "settled";
        readonly planned: PlannedStep;
        /** How it has ended, where `settle` says that it has not happened. */
        readonly ended: EndedStep;
      }
    /** For its next attempt. */
    | { readonly kind: "waited" }
  );

/** Of a step that its `settle` calls done, or of which nobody knows. */
export function eventOf({ step, state }: StepRecord): JobEvent {
  return { kind: state === "done" ? "step-done" : "step-unknown", step };
}
