/**
 * How a job is gone on with, or begun: for each step whether what it has done still holds, whether
 * it runs, or whether nobody knows. Pure; one call decides for all steps, in their order, from what
 * the caller has looked at before (core/job-facts.ts).
 *
 * Always: a step that may do harm when it runs twice is to run only where it was never started,
 * where its command has said by its status that it failed, or where a person has named it; what is
 * `unknown` stays so until a person says otherwise; nothing is called done whose artifacts nobody
 * has looked at; a step is done only where all that it needs is, but where a person has called it
 * so; in a job that is gone on with nothing is forgotten that a person must decide, and with
 * `--only` the others stay what they are.
 */
import { assert } from "./errors.ts";
import type { AcceptedAs } from "./job-asked.ts";
import { BeginningPlan } from "./job-begin.ts";
import {
  isBeginning,
  listLeftAlone,
  listNamed,
  listTakenOver,
  type ResumeFacts,
} from "./job-facts.ts";
import { dependentsOf, orderSteps } from "./job-graph.ts";
import {
  type Change,
  findChange,
  firstRecord,
  isSameState,
  NOT_RUN,
  Plan,
  type PlannedStep,
  type PlanReason,
  removesArtifacts,
  UNTOUCHED,
} from "./job-plan.ts";
import { decideUnclear, mayHaveHappened } from "./job-settle.ts";
import type { StepSpec } from "./job-spec.ts";
import type { ArtifactRecord, StepRecord, StepState } from "./step-record.ts";

export type RefusalReason =
  /** `resume`, or a decision about a step, and no job is unfinished. */
  | "nothing-to-resume"
  /** The unfinished job of this name is that of another file. */
  | "other-file"
  /** `--accept-unknown` names a step about which there is nothing to decide. */
  | "nothing-to-decide"
  /** `--accept-unknown STEP=done`, and its artifacts are not as it must leave them. */
  | "accepted-without-artifacts"
  /** `--redo` or `--from` names a step of which nobody knows whether it has happened. */
  | "undecided-named"
  /** What must be done for `--from` or `--only` is not, or no longer holds. */
  | "not-done"
  /** The file no longer has a step of which nobody knows whether it has happened. */
  | "undecided-removed";

export interface RefusedStep {
  readonly step: string;
  readonly because: PlanReason | StepState | null;
  /** For people; null: there is nothing to add. */
  readonly detail: string | null;
}

export type ResumeDecision =
  | { readonly kind: "begin"; readonly steps: readonly PlannedStep[] }
  | { readonly kind: "resume"; readonly steps: readonly PlannedStep[] }
  | {
      readonly kind: "refused";
      readonly because: RefusalReason;
      /** With `other-file`: those of its job of which nobody knows whether they have happened. */
      readonly steps: readonly RefusedStep[];
      /** With `other-file`: which one. */
      readonly otherFile?: string;
    };

/**
 * Expects a file without a finding (`checkJob`) and flags without one (`checkAsked`).
 * @returns the steps in the order in which they run
 */
export function decideResume(facts: ResumeFacts): ResumeDecision {
  const early = refuseEarly(facts);
  if (early !== undefined) return early;
  const order = orderSteps(facts.spec.steps);
  assert(order.kind === "ordered", "a job with a cycle of needs was not refused");
  if (isBeginning(facts)) {
    const { steps } = new BeginningPlan(facts, order.steps);
    return refuseUndone(facts, steps) ?? { kind: "begin", steps: [...steps.values()] };
  }
  const { steps, refusal } = new ResumePlan(facts, order.steps);
  const refused = refusal ?? refuseUndone(facts, steps);
  return refused ?? { kind: "resume", steps: [...steps.values()] };
}

function refuse(because: RefusalReason, steps: readonly RefusedStep[] = []): Refused {
  return { kind: "refused", because, steps };
}

type Refused = Extract<ResumeDecision, { kind: "refused" }>;

function refuseEarly(facts: ResumeFacts): Refused | undefined {
  const { spec, known, asked } = facts;
  const isNew = isBeginning(facts);
  // Who decides about a step means a job that was begun: a new one would run it from the start.
  const goesOn = asked.verb === "resume" || asked.accepted.size > 0;
  if (goesOn && isNew) return refuse("nothing-to-resume");
  if (isNew || known === undefined) return undefined;
  if (known.file !== spec.file) {
    const open = known.steps.filter((record) => isUndecided(record, facts));
    return { ...refuse("other-file", open.map(refusedAs)), otherFile: known.file };
  }
  const names = new Set(spec.steps.map(({ name }) => name));
  const removed = known.steps.filter(({ step }) => !names.has(step));
  const undecided = removed.filter((record) => isUndecided(record, facts));
  if (undecided.length === 0) return undefined;
  return refuse("undecided-removed", undecided.map(refusedAs));
}

function refusedAs({ step, state, detail }: StepRecord): RefusedStep {
  return { step, because: state, detail };
}

function isUndecided({ step, state }: StepRecord, { startedAs }: ResumeFacts): boolean {
  if (state === "unknown") return true;
  return (state === "running" || state === "interrupted") && startedAs.get(step) !== "none";
}

function refuseUndone(
  { spec, asked }: ResumeFacts,
  planned: ReadonlyMap<string, PlannedStep>,
): Refused | undefined {
  const undone = [...listTakenOver(spec, asked)].flatMap((name): RefusedStep[] => {
    const step = planned.get(name);
    if (step === undefined || step.record.state === "done") return [];
    return [{ step: name, because: step.because ?? step.record.state, detail: step.record.detail }];
  });
  return undone.length === 0 ? undefined : refuse("not-done", undone);
}

/** A job that is gone on with. */
class ResumePlan extends Plan {
  #refusal: Refused | undefined;
  readonly #records: ReadonlyMap<string, StepRecord>;
  readonly #artifacts: ReadonlyMap<string, readonly ArtifactRecord[]>;
  readonly #named: ReadonlySet<string>;
  readonly #leftAlone: ReadonlySet<string>;
  /** Those that need the one that is run alone. */
  readonly #behind: ReadonlySet<string>;

  /** @param ordered  each step behind all that it needs */
  constructor(facts: ResumeFacts, ordered: readonly StepSpec[]) {
    super(facts);
    const { spec, asked } = facts;
    this.#leftAlone = listLeftAlone(spec, asked);
    this.#behind = dependentsOf(spec.steps, asked.only === undefined ? [] : [asked.only]);
    this.#records = new Map(facts.known?.steps.map((record) => [record.step, record]));
    this.#artifacts = Map.groupBy(facts.known?.artifacts ?? [], ({ step }) => step);
    this.#named = listNamed(facts.asked);
    for (const step of ordered) this.#add(step);
  }

  get refusal(): Refused | undefined {
    return this.#refusal;
  }

  #add(step: StepSpec): void {
    const { name } = step;
    const before = this.#records.get(name);
    const planned = this.#plan(step, before ?? firstRecord(name));
    const endsAttempt = before?.state === "running";
    if (before !== undefined && isSameState(before, planned.record)) {
      this.steps.set(name, { ...planned, record: before, endsAttempt, isChanged: false });
    } else this.steps.set(name, { ...planned, endsAttempt, isChanged: true });
  }

  #plan(step: StepSpec, record: StepRecord): PlannedStep {
    const accepted = this.facts.asked.accepted.get(step.name);
    if (accepted !== undefined) return this.#accept(step, record, accepted);
    if (this.#named.has(step.name)) return this.#redo(step, record);
    if (this.#leftAlone.has(step.name)) return this.#leave(step, record);
    switch (record.state) {
      case "pending":
        return this.#wait(record);
      case "done":
        return this.#verify(step, record);
      case "unknown":
        return { ...UNTOUCHED, record, because: record.because, isChanged: false, todo: "person" };
      case "failed":
        return this.#afterFailure(step, record);
      case "interrupted":
      case "running":
        return this.#afterInterruption(step, record);
    }
  }

  /** Whether it may run again after all is asked of a person in words that say what is at stake. */
  #redo(step: StepSpec, record: StepRecord): PlannedStep {
    if (mayHaveHappened(record, this.#isUnsafe(step))) {
      return this.#refuse(record, "undecided-named", null);
    }
    return this.#again(record, { because: "asked", detail: null });
  }

  /** Another one is run alone. */
  #leave(step: StepSpec, record: StepRecord): PlannedStep {
    if (record.state === "done") return this.#leaveDone(step, record);
    const isRunning = record.state === "running";
    const because = "watchdog-killed";
    const left = isRunning ? this.write(record, { state: "interrupted", because }) : record;
    return {
      ...UNTOUCHED,
      record: left,
      because: left.state === "pending" ? (left.because ?? "not-begun") : left.because,
      isChanged: isRunning,
      todo: left.state === "unknown" ? "person" : "nothing",
    };
  }

  /** What it was made of is made anew: nobody would see that later. */
  #leaveDone(step: StepSpec, record: StepRecord): PlannedStep {
    const only = this.facts.asked.only ?? "";
    const isMadeAnew =
      this.#records.get(only)?.state === "done" && this.steps.get(only)?.todo === "run";
    if (isMadeAnew && this.#behind.has(step.name)) return this.#verify(step, record);
    const artifacts = this.#artifacts.get(step.name) ?? [];
    const changed = findChange(step, record, artifacts, this.factsOf(step));
    return { ...UNTOUCHED, record, because: record.because, isChanged: false, changed };
  }

  #wait(record: StepRecord): PlannedStep {
    return {
      ...UNTOUCHED,
      record,
      because: record.because ?? "not-begun",
      isChanged: false,
      todo: "run",
      removesArtifacts: removesArtifacts(record),
    };
  }

  #again(record: StepRecord, change: Change): PlannedStep {
    const again = this.write(record, { ...NOT_RUN, state: "pending", ...change });
    return { ...this.#wait(again), because: change.because };
  }

  #change(step: StepSpec, record: StepRecord): Change | undefined {
    const artifacts = record.state === "done" ? (this.#artifacts.get(step.name) ?? []) : undefined;
    const change = findChange(step, record, artifacts, this.factsOf(step));
    // What is missing may be what that step is to leave.
    if (change?.because === "input-missing" && this.isOpen(step)) {
      return { because: "needs-changed", detail: null };
    }
    return change ?? (this.isOpen(step) ? { because: "needs-changed", detail: null } : undefined);
  }

  #verify(step: StepSpec, record: StepRecord): PlannedStep {
    const change = this.#change(step, record);
    const { because } = record;
    if (change === undefined) return { ...UNTOUCHED, record, because, isChanged: false };
    if (!this.#isUnsafe(step)) return this.#again(record, change);
    const unknown = this.write(record, { state: "unknown", ...change });
    return {
      ...UNTOUCHED,
      record: unknown,
      because: change.because,
      isChanged: true,
      todo: "person",
    };
  }

  #afterFailure(step: StepSpec, record: StepRecord): PlannedStep {
    const { because, detail } = record;
    // A person has called it failed: only a person lets it run again.
    if (because === "accepted-fail") return { ...UNTOUCHED, record, because, isChanged: false };
    if (mayHaveHappened(record, this.#isUnsafe(step))) return this.#ask(step, record);
    return this.#again(record, { because: because ?? "exited", detail });
  }

  #afterInterruption(step: StepSpec, record: StepRecord): PlannedStep {
    if (this.#isUnsafe(step)) return this.#ask(step, record);
    const isRunning = record.state === "running";
    const because = isRunning ? "watchdog-killed" : (record.because ?? "stopped");
    return this.#again(record, { because, detail: record.detail });
  }

  #ask(step: StepSpec, record: StepRecord): PlannedStep {
    return decideUnclear(step, record, { changed: this.#change(step, record), ...this.facts.run });
  }

  /** What it was when it was started, and what it is now: the worse of both. */
  #isUnsafe({ name, sideEffects }: StepSpec): boolean {
    return sideEffects === "unsafe" || this.facts.startedAs.get(name) === "unsafe";
  }

  /** Whether there is something that only a person can decide, or a person may decide at once. */
  #isOpenQuestion(step: StepSpec, record: StepRecord): boolean {
    const isUnsafe = this.#isUnsafe(step);
    if (record.state === "done") return isUnsafe && this.#change(step, record) !== undefined;
    return mayHaveHappened(record, isUnsafe);
  }

  #accept(step: StepSpec, record: StepRecord, accepted: AcceptedAs): PlannedStep {
    if (!this.#isOpenQuestion(step, record)) {
      return this.#refuse(record, "nothing-to-decide", null);
    }
    if (accepted === "retry") {
      return this.#again(record, { because: "accepted-retry", detail: null });
    }
    if (accepted === "fail") {
      const because = "accepted-fail";
      const failed = this.write(record, { state: "failed", because, detail: null });
      return { ...UNTOUCHED, record: failed, because, isChanged: true };
    }
    return this.#acceptDone(step, record);
  }

  #acceptDone(step: StepSpec, record: StepRecord): PlannedStep {
    const { present, commandPrint } = this.factsOf(step);
    if (present?.kind !== "good") {
      const detail = present?.detail ?? "nobody has looked for its artifacts";
      return this.#refuse(record, "accepted-without-artifacts", detail);
    }
    const done = this.write(record, {
      state: "done",
      because: "accepted-done",
      // Made of what, nobody has said: it is compared with nothing.
      inputPrint: null,
      commandPrint,
      detail: null,
    });
    const { artifacts } = present;
    return { ...UNTOUCHED, record: done, because: "accepted-done", isChanged: true, artifacts };
  }

  #refuse(record: StepRecord, because: RefusalReason, detail: string | null): PlannedStep {
    const refused = { step: record.step, because: record.state, detail };
    const before = this.#refusal?.because === because ? this.#refusal.steps : [];
    this.#refusal = refuse(because, [...before, refused]);
    return { ...UNTOUCHED, record, because: record.because, isChanged: false };
  }
}
