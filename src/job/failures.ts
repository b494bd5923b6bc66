/**
 * What becomes of a step whose command has not ended well: written down, tried again, or asked
 * about where nobody knows. What is decided is decided in core/step-outcome.ts and
 * core/job-settle.ts.
 *
 * Always: the end is written before anything else follows from it. Clock: MONOTONIC. State after a
 * crash: what the journal says.
 */
import type { BackoffState } from "../core/backoff.ts";
import type { JobEvent } from "../core/job-next.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import { decideSettled, decideUnclear, type SettleAnswer } from "../core/job-settle.ts";
import type { StepSpec } from "../core/job-spec.ts";
import { decideNotHappened, type EndedStep, type StepDecision } from "../core/step-outcome.ts";
import type { ArtifactRecord, StepRecord } from "../core/step-record.ts";
import type { JobStore, StoreResult } from "../journal/job-store.ts";
import { monotonicNow } from "../os/clock.ts";
import { throwDice } from "../os/dice.ts";
import { say } from "../os/say.ts";
import { messages } from "./messages.ts";
import type { EndedAttempt } from "./step-attempt.ts";
import type { StopAsked } from "./stop-asked.ts";
import { eventOf, type Turn } from "./turns.ts";

export interface FailureParts {
  readonly store: JobStore;
  readonly stop: StopAsked;
  readonly run: { readonly runId: string; readonly generation: number };
  readonly settle: (step: StepSpec) => Promise<SettleAnswer>;
  /** By step: what was tried, of which the next attempt is one. */
  readonly attempts: Map<string, BackoffState>;
  readonly recordOf: (step: string) => StepRecord;
  /** False: it could not be written, and the job stops. */
  readonly write: (step: StepSpec, writing: Promise<StoreResult>) => Promise<boolean>;
  readonly keep: (record: StepRecord, artifacts?: readonly ArtifactRecord[]) => void;
  readonly note: (event: JobEvent) => void;
  readonly wait: (step: StepSpec, turn: Promise<Turn>) => void;
}

export class Failures {
  readonly #parts: FailureParts;

  constructor(parts: FailureParts) {
    this.#parts = parts;
  }

  async take(
    ended: EndedAttempt & { readonly told: EndedStep },
    decision: Exclude<StepDecision, { kind: "done" }>,
  ): Promise<void> {
    const { step, record } = ended;
    const { store } = this.#parts;
    const { because } = decision;
    const detail = "detail" in decision ? (decision.detail ?? null) : (ended.reason ?? null);
    const state = decision.kind === "interrupted" ? "interrupted" : "failed";
    const told: StepRecord = { ...record, state, because, detail };
    if (!(await this.#parts.write(step, store.endStep(told)))) return;
    this.#parts.keep(told);
    switch (decision.kind) {
      case "retry":
        return this.#waitForRetry(step, decision);
      case "failed":
        return this.#parts.note({ kind: "step-failed", step: step.name, status: decision.status });
      case "interrupted":
        return this.#takeInterruption(step, told, ended.told);
    }
  }

  #waitForRetry(step: StepSpec, retry: Extract<StepDecision, { kind: "retry" }>): void {
    const { delayMs, attempts } = retry;
    if (this.#parts.stop.isAsked) {
      return this.#parts.note({ kind: "step-interrupted", step: step.name });
    }
    this.#parts.attempts.set(step.name, attempts);
    say(messages.retries(step.name, this.#parts.recordOf(step.name).attempt + 1, delayMs));
    const waited = this.#parts.stop.wait(delayMs);
    this.#parts.wait(
      step,
      waited.then(() => ({ kind: "waited", step })),
    );
  }

  /** Of an unsafe step nobody knows: its `settle` is asked, unless nothing may be started. */
  async #takeInterruption(step: StepSpec, record: StepRecord, ended: EndedStep): Promise<void> {
    const { run, stop } = this.#parts;
    const { name, sideEffects } = step;
    if (sideEffects !== "unsafe" || stop.isAsked) {
      const kind = stop.isAsked ? "step-interrupted" : "step-stopped";
      return this.#parts.note({ kind, step: name });
    }
    const unclear = decideUnclear(step, record, { changed: undefined, ...run });
    if (unclear.todo !== "settle") return this.takeSettled(step, unclear, ended);
    const answer = this.#parts.settle(step);
    const settled = answer.then((one) => decideSettled(unclear, one));
    this.#parts.wait(
      step,
      settled.then((planned) => ({ kind: "settled", step, planned, ended })),
    );
  }

  async takeSettled(step: StepSpec, planned: PlannedStep, ended: EndedStep): Promise<void> {
    // One that was ended on request has said nothing: whoever goes on asks it again.
    if (this.#parts.stop.isAsked && planned.because === "settle-unclear") {
      return this.#parts.note({ kind: "step-interrupted", step: step.name });
    }
    if (planned.because === "settled-not-happened") return this.#takeNotHappened(step, ended);
    const { record: settled, artifacts } = planned;
    const change = artifacts === undefined ? { record: settled } : { record: settled, artifacts };
    if (!(await this.#parts.write(step, this.#parts.store.changeSteps([change])))) return;
    this.#parts.keep(settled, artifacts ?? []);
    if (settled.state === "done") say(messages.happened(step.name));
    this.#parts.note(eventOf(settled));
  }

  /** As if its command had said so by its status: it is tried again where it may be. */
  async #takeNotHappened(step: StepSpec, ended: EndedStep): Promise<void> {
    const decision = decideNotHappened(ended, { nowMs: monotonicNow(), random: throwDice() });
    const because = "settled-not-happened" as const;
    const failed: StepRecord = { ...this.#parts.recordOf(step.name), state: "failed", because };
    if (!(await this.#parts.write(step, this.#parts.store.changeSteps([{ record: failed }]))))
      return;
    this.#parts.keep(failed);
    if (decision.kind === "retry") return this.#waitForRetry(step, decision);
    const { status } = decision;
    this.#parts.note({ kind: "step-failed", step: step.name, status });
  }
}
