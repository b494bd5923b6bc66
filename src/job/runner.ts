/**
 * Carries a job from its first step to its last: starts what can be started, writes down what has
 * become of it, and stops where it cannot be written. A list of steps; what is decided is decided
 * in core/job-next.ts and core/step-outcome.ts.
 *
 * Always: a step is started only when the journal says that it runs, and called done only when the
 * journal says that it is; whatever cannot be written stops the job before the next effect, and so
 * does what has outlived KILL. Clock: MONOTONIC. State after a crash: what the journal says; a step
 * that it calls running may have happened.
 */
import { type BackoffState, startBackoff } from "../core/backoff.ts";
import { assert } from "../core/errors.ts";
import { orderSteps } from "../core/job-graph.ts";
import {
  beginProgress,
  decideNextSteps,
  type FinishReason,
  type JobEvent,
  type JobNext,
  type JobProgress,
  noteEvent,
  OVER_FOR_ONE_STEP,
} from "../core/job-next.ts";
import type { JobOrder } from "../core/job-order.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import type { SettleAnswer } from "../core/job-settle.ts";
import type { StepSpec } from "../core/job-spec.ts";
import { decideStepEnd } from "../core/step-outcome.ts";
import type { ArtifactRecord, StepRecord } from "../core/step-record.ts";
import type { JobStore, StoreResult } from "../journal/job-store.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { throwDice } from "../os/dice.ts";
import { faultPoint } from "../os/faults.ts";
import { say } from "../os/say.ts";
import type { ArtifactHandle } from "./artifact-handle.ts";
import { Failures } from "./failures.ts";
import { messages } from "./messages.ts";
import {
  type AttemptParts,
  carryOut,
  type EndedAttempt,
  prepareAttempt,
  type Prepared,
  type Unprepared,
} from "./step-attempt.ts";
import type { StepRunRequest } from "./step-run.ts";
import type { StopAsked } from "./stop-asked.ts";
import type { Turn } from "./turns.ts";

export interface RunnerParts extends AttemptParts {
  readonly order: JobOrder;
  /** The job was begun for one step alone, and is over with it. */
  readonly isForOneStep: boolean;
  /** As they were decided and written. */
  readonly planned: readonly PlannedStep[];
  readonly store: JobStore;
  readonly stop: StopAsked;
  /**
   * Looks at what steps find before they start: what has ended must not wait for that, because
   * it is not written down as long.
   */
  readonly looking: ArtifactHandle;
  readonly requestOf: (step: StepSpec) => Omit<StepRunRequest, "step" | "attempt">;
  readonly settle: (step: StepSpec) => Promise<SettleAnswer>;
}

export type RunnerEnd =
  | {
      readonly kind: "finished";
      readonly finish: Extract<JobNext, { kind: "finish" }>;
      readonly records: ReadonlyMap<string, StepRecord>;
    }
  | {
      readonly kind: "stuck";
      readonly result: Exclude<StoreResult, { kind: "written" }>;
      readonly records: ReadonlyMap<string, StepRecord>;
    };

type Unwritten = Exclude<StoreResult, { kind: "written" }>;

export class JobRunner {
  readonly #parts: RunnerParts;
  readonly #specs: ReadonlyMap<string, StepSpec>;
  readonly #records: Map<string, StepRecord>;
  readonly #removing: Set<string>;
  /** By step: what it has left. */
  readonly #left = new Map<string, readonly ArtifactRecord[]>();
  readonly #attempts = new Map<string, BackoffState>();
  readonly #turns = new Map<string, Promise<Turn>>();
  readonly #failures: Failures;
  #progress: JobProgress;
  #stuck: Unwritten | undefined;

  /** @param left  artifacts of the steps that are done already */
  constructor(parts: RunnerParts, left: ReadonlyMap<string, readonly ArtifactRecord[]>) {
    this.#parts = parts;
    const { spec, asked } = parts.order;
    this.#specs = new Map(spec.steps.map((step) => [step.name, step]));
    this.#records = new Map(parts.planned.map(({ record }) => [record.step, record]));
    this.#removing = new Set(
      parts.planned.filter((one) => one.removesArtifacts).map(({ record }) => record.step),
    );
    for (const [step, artifacts] of left) this.#left.set(step, artifacts);
    const order = orderSteps(spec.steps);
    assert(order.kind === "ordered", "a job with a cycle of needs was not refused");
    this.#failures = new Failures({
      ...parts,
      attempts: this.#attempts,
      recordOf: (name) => this.#recordOf(name),
      write: (step, writing) => this.#write(step, writing),
      keep: (record, artifacts) => this.#keep(record, artifacts),
      note: (event) => this.#note(event),
      wait: (step, turn) => this.#await(step, turn),
    });
    const isDoubted = parts.planned.some(isDoubtedStep);
    this.#progress = beginProgress(order.steps, this.#records, { only: asked.only, isDoubted });
  }

  async run(): Promise<RunnerEnd> {
    const { stop, store, order } = this.#parts;
    for (;;) {
      if (stop.signal !== undefined) this.#note({ kind: "stop-asked", signal: stop.signal });
      if (stop.isHeldBack) this.#note({ kind: "step-not-ended" });
      if (this.#stuck !== undefined) return this.#leaveStuck(this.#stuck);
      const next = decideNextSteps(this.#progress, order.maxParallel);
      if (next.kind === "finish") return await this.#finish(next, store);
      if (next.kind === "start") this.#start(next);
      else await this.#takeTurn();
    }
  }

  /** Others that run are waited for: what they do is done, whether it can be written or not. */
  async #leaveStuck(result: Unwritten): Promise<RunnerEnd> {
    if (result.kind !== "fenced") {
      while (this.#turns.size > 0) await this.#takeTurn();
    }
    return { kind: "stuck", result, records: this.#records };
  }

  async #finish(finish: Extract<JobNext, { kind: "finish" }>, store: JobStore): Promise<RunnerEnd> {
    const { state, exitStatus } = finish;
    faultPoint("job.finish", { state });
    const because = this.#isOverForOneStep(finish) ? OVER_FOR_ONE_STEP : finish.because;
    const result = await store.finish({ state, because, exitStatus });
    if (result.kind !== "written") return { kind: "stuck", result, records: this.#records };
    return { kind: "finished", finish, records: this.#records };
  }

  /** What is not known, was told to stop or was kept back is gone on with all the same. */
  #isOverForOneStep({ state, because }: Extract<JobNext, { kind: "finish" }>): boolean {
    if (!this.#parts.isForOneStep || GONE_ON_WITH.includes(because)) return false;
    return state !== "done" && state !== "unknown";
  }

  #note(event: JobEvent): void {
    this.#progress = noteEvent(this.#progress, event);
  }

  #start({ steps, progress }: Extract<JobNext, { kind: "start" }>): void {
    this.#progress = progress;
    for (const name of steps) {
      this.#attempts.set(name, startBackoff(monotonicNow(), 1));
      this.#begin(this.#specOf(name));
    }
  }

  /** One attempt. */
  #begin(step: StepSpec): void {
    faultPoint("step.next", { step: step.name, generation: this.#parts.run.generation });
    const prepared = this.#prepare(step);
    this.#await(
      step,
      prepared.then((one) => ({ kind: "prepared", step, prepared: one })),
    );
  }

  #await(step: StepSpec, turn: Promise<Turn>): void {
    this.#turns.set(step.name, turn);
  }

  /** The journal first. */
  async #takePrepared(step: StepSpec, prepared: Prepared | Unprepared | undefined): Promise<void> {
    const { stop, store } = this.#parts;
    // Nothing of it has happened, and the journal says nothing else.
    if (prepared === undefined || stop.isAsked || this.#stuck !== undefined) {
      return this.#note({ kind: "step-interrupted", step: step.name });
    }
    if (prepared.kind === "unprepared") return this.#takeUnprepared(step, prepared);
    if (!(await this.#write(step, store.startStep(prepared.record)))) return;
    // Somebody else may have had the journal for half a minute.
    if (stop.isAsked) await this.#takeBack(prepared);
    else this.#launch(prepared);
  }

  /** It was called running and has not been started: whoever goes on may begin it. */
  async #takeBack({ step, record }: Prepared): Promise<void> {
    const { stop } = this.#parts;
    const told: StepRecord = {
      ...record,
      state: "failed",
      because: "not-started",
      endedAt: wallNow(),
      detail: stop.isHeldBack ? messages.keptBack : "the end of the job was asked for",
    };
    if (!(await this.#write(step, this.#parts.store.endStep(told)))) return;
    this.#records.set(step.name, told);
    this.#note({ kind: "step-interrupted", step: step.name });
  }

  /** @returns undefined: the end was asked for */
  async #prepare(step: StepSpec): Promise<Prepared | Unprepared | undefined> {
    const { stop, looking: artifacts } = this.#parts;
    if (stop.isAsked) return undefined;
    const record = this.#recordOf(step.name);
    const removesArtifacts = this.#removing.has(step.name);
    const needs = step.needs.flatMap((need) => this.#left.get(need) ?? []);
    const preparing = { step, record, removesArtifacts, needs };
    return stop.during(prepareAttempt(preparing, { ...this.#parts, artifacts }));
  }

  async #takeUnprepared(step: StepSpec, { path, reason }: Unprepared): Promise<void> {
    say(messages.unremoved(step.name, path, reason));
    const failed = { ...this.#recordOf(step.name), ...this.#parts.run, state: "failed" } as const;
    const because = "artifact-unreadable" as const;
    const detail = `${path}: ${reason}`;
    const changed: StepRecord = { ...failed, because, detail, endedAt: wallNow() };
    if (!(await this.#write(step, this.#parts.store.changeSteps([{ record: changed }])))) return;
    this.#records.set(step.name, changed);
    this.#note({ kind: "step-failed", step: step.name, status: UNREMOVED_STATUS });
  }

  #launch(prepared: Prepared): void {
    const { step, record, missing } = prepared;
    this.#records.set(step.name, record);
    this.#left.delete(step.name);
    // From now on there may be something to remove.
    this.#removing.add(step.name);
    if (this.#parts.order.tells === "all") {
      say(messages.starts(step.name, record.attempt));
      if (missing !== undefined) say(messages.missing(step.name, missing));
    }
    const ended = carryOut(prepared, this.#parts.requestOf(step), this.#parts);
    this.#await(
      step,
      ended.then((one) => ({ kind: "ended", step, ended: one })),
    );
  }

  async #takeTurn(): Promise<void> {
    const turn = await Promise.race(this.#turns.values());
    const { step } = turn;
    this.#turns.delete(step.name);
    switch (turn.kind) {
      case "prepared":
        return this.#takePrepared(step, turn.prepared);
      case "ended":
        return this.#takeEnd(turn.ended);
      case "settled":
        return this.#failures.takeSettled(step, turn.planned, turn.ended);
      case "waited":
        if (!this.#parts.stop.isAsked && this.#stuck === undefined) return this.#begin(step);
        return this.#note({ kind: "step-interrupted", step: step.name });
    }
  }

  async #takeEnd(ended: EndedAttempt): Promise<void> {
    const { step, end, reason } = ended;
    const { stop, order } = this.#parts;
    const { sideEffects, backoff } = step;
    const isStopped = stop.note(ended.signals);
    const attempts = this.#attempts.get(step.name) ?? startBackoff(monotonicNow(), 1);
    const chance = { nowMs: monotonicNow(), random: throwDice() };
    const { artifacts } = ended;
    const told = { end, isStopped, sideEffects, artifacts, backoff, attempts };
    const decision = decideStepEnd(told, chance);
    if (ended.unended.length > 0) {
      say(messages.unended(step.name, ended.unended));
      stop.holdBack();
    }
    if (decision.kind === "done") {
      if (order.tells === "all") say(messages.done(step.name));
      return this.#complete(ended, decision.artifacts);
    }
    if (artifacts?.kind === "bad") say(messages.artifacts(step.name, artifacts.detail));
    else say(messages.failed(step.name, end, reason));
    await this.#failures.take({ ...ended, told }, decision);
  }

  /** The next ones in the same transaction where nobody is harmed by their running twice. */
  async #complete(ended: EndedAttempt, artifacts: readonly ArtifactRecord[]): Promise<void> {
    const { step, record } = ended;
    const done: StepRecord = { ...record, state: "done", because: "exited" };
    const after = noteEvent(this.#progress, { kind: "step-done", step: step.name });
    this.#left.set(step.name, artifacts);
    const next = await this.#prepareNext(step, after);
    const { store } = this.#parts;
    const written = await this.#write(
      step,
      next === undefined
        ? store.completeStep(done, artifacts)
        : store.completeAndStart(done, artifacts, [next.prepared.record]),
    );
    if (!written) return;
    this.#records.set(step.name, done);
    this.#progress = next?.progress ?? after;
    if (next === undefined) return;
    if (this.#parts.stop.isAsked) await this.#takeBack(next.prepared);
    else this.#launch(next.prepared);
  }

  /**
   * The one step that can be started next, and whose start may be written together with the end of
   * the one before: a crash right after it leaves it running without having begun, which is no
   * matter where it may run twice. What takes long to prepare must not keep the end unwritten: a
   * crash meanwhile would leave what was done undone, or unknown.
   */
  async #prepareNext(
    before: StepSpec,
    after: JobProgress,
  ): Promise<{ readonly prepared: Prepared; readonly progress: JobProgress } | undefined> {
    const { stop, order } = this.#parts;
    const isOver = stop.isAsked || this.#stuck !== undefined;
    if (isOver || before.sideEffects !== "none" || order.maxParallel > 1) return undefined;
    const next = decideNextSteps(after, order.maxParallel);
    if (next.kind !== "start" || next.steps.length !== 1) return undefined;
    const step = this.#specOf(next.steps[0] ?? "");
    // What must be removed first may not be removable: that is a step of its own.
    if (step.sideEffects !== "none" || this.#removing.has(step.name)) return undefined;
    if (step.inputs !== undefined && step.inputs.length > 0) return undefined;
    const prepared = await this.#prepare(step);
    if (prepared?.kind !== "prepared") return undefined;
    this.#attempts.set(step.name, startBackoff(monotonicNow(), 1));
    return { prepared, progress: next.progress };
  }

  /** @returns whether it was; else nothing is started any more */
  async #write(step: StepSpec, writing: Promise<StoreResult>): Promise<boolean> {
    const result = await writing;
    if (result.kind === "written") return true;
    this.#stuck ??= result;
    const isFenced = result.kind === "fenced";
    say(isFenced ? messages.fenced(result.reason) : messages.unwritten(step.name, result.reason));
    return false;
  }

  /** As it was written. @param artifacts  that it has left; undefined: as they were */
  #keep(record: StepRecord, artifacts?: readonly ArtifactRecord[]): void {
    this.#records.set(record.step, record);
    if (artifacts !== undefined) this.#left.set(record.step, artifacts);
  }

  #specOf(name: string): StepSpec {
    const step = this.#specs.get(name);
    assert(step !== undefined, `there is no step ${name}`);
    return step;
  }

  #recordOf(name: string): StepRecord {
    const record = this.#records.get(name);
    assert(record !== undefined, `nothing is known of step ${name}`);
    return record;
  }
}

const GONE_ON_WITH: readonly FinishReason[] = ["stop-asked", "step-not-ended", "step-stopped"];

function isDoubtedStep({ record, changed }: PlannedStep): boolean {
  return record.state === "done" && changed !== undefined;
}

/** A step whose partial artifacts cannot be removed has no good end (EX_DATAERR). */
const UNREMOVED_STATUS = 65;
