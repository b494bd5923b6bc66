/**
 * What is decided of each step when a job is begun or gone on with, and what has changed since it
 * was started. Pure.
 */
import type { ResumeFacts, StepFacts } from "./job-facts.ts";
import type { StepSpec } from "./job-spec.ts";
import type { ArtifactRecord, StepReason, StepRecord } from "./step-record.ts";

/** Why a step runs although it was done once: for a job that is begun nothing of it is stored. */
export type PlanReason =
  | StepReason
  /** It was never begun in this job. */
  | "not-begun"
  /** No earlier job has done it. */
  | "never-done"
  /** The file does not say, or did not, what it reads: it always runs. */
  | "inputs-undeclared";

export interface PlannedStep {
  /** As it is from now on. */
  readonly record: StepRecord;
  /** Why, in one word. */
  readonly because: PlanReason | null;
  /** It is not what the journal says. */
  readonly isChanged: boolean;
  /**
   * `run`: as soon as what it needs is done; `settle`: its command is to be asked, then
   * `decideSettled`; `person`: somebody must say what has become of it; `nothing`: it is done, or
   * has failed by a person's word.
   */
  readonly todo: "nothing" | "run" | "settle" | "person";
  /** What it has left is removed right before it runs. */
  readonly removesArtifacts: boolean;
  /** The journal calls an attempt running that has ended with its watchdog. */
  readonly endsAttempt: boolean;
  /**
   * What was changed since it was started: with that it is not done even if it has happened. Of one
   * that stays done because another one is run alone: it would be sent back.
   */
  readonly changed: Change | undefined;
  /** To be written with a step that is done from now on. */
  readonly artifacts: readonly ArtifactRecord[] | undefined;
}

export interface Change {
  readonly because: StepReason;
  readonly detail: string | null;
}

const NO_FACTS: StepFacts = {
  commandPrint: "",
  inputPrint: { kind: "undeclared" },
  verified: { kind: "unchecked" },
  present: undefined,
  earlier: undefined,
};

/** What both plans share: the steps decided so far, each behind what it needs. */
export class Plan {
  readonly steps = new Map<string, PlannedStep>();
  readonly facts: ResumeFacts;

  constructor(facts: ResumeFacts) {
    this.facts = facts;
  }

  factsOf({ name }: StepSpec): StepFacts {
    return this.facts.facts.get(name) ?? NO_FACTS;
  }

  /** Whether something that it needs is not done. */
  isOpen({ needs }: StepSpec): boolean {
    return needs.some((need) => this.steps.get(need)?.record.state !== "done");
  }

  /** A record as it is from now on. */
  write(record: StepRecord, change: Partial<StepRecord>): StepRecord {
    return { ...record, ...this.facts.run, ...change };
  }
}

/** Nothing is to be done, or written. */
export const UNTOUCHED = {
  todo: "nothing",
  removesArtifacts: false,
  endsAttempt: false,
  changed: undefined,
  artifacts: undefined,
} as const;

/** Of a step that was never begun. */
export function firstRecord(step: string): StepRecord {
  return {
    step,
    state: "pending",
    because: null,
    attempt: 0,
    generation: 0,
    runId: null,
    commandPrint: null,
    inputPrint: null,
    startedAt: null,
    endedAt: null,
    exitCode: null,
    signal: null,
    detail: null,
  };
}

export const NOT_RUN = { startedAt: null, endedAt: null, exitCode: null, signal: null } as const;

export function isSameState(one: StepRecord, other: StepRecord): boolean {
  return one.state === other.state && one.because === other.because && one.detail === other.detail;
}

/** Of a step that waits to run: it was started in this job, or was sent back. */
export function removesArtifacts({ attempt, because }: StepRecord): boolean {
  return attempt > 0 || because !== null;
}

/**
 * Why what a step has done no longer holds; undefined: it does, as far as the step itself goes.
 * @param artifacts  that it has left; undefined: it has not come to its end, and they tell nothing
 */
export function findChange(
  step: StepSpec,
  record: StepRecord,
  artifacts: readonly ArtifactRecord[] | undefined,
  facts: StepFacts,
): Change | undefined {
  const { verified, inputPrint } = facts;
  if (artifacts !== undefined && verified.kind !== "same") {
    const detail = verified.kind === "other" ? verified.detail : "nobody has looked";
    return { because: "artifact-changed", detail };
  }
  const isOtherCommand = record.commandPrint !== null && record.commandPrint !== facts.commandPrint;
  if (isOtherCommand) return { because: "definition-changed", detail: null };
  if (artifacts !== undefined && !hasSameNames(step, artifacts)) {
    return { because: "definition-changed", detail: "its artifacts in the file are other ones" };
  }
  if (record.inputPrint === null || inputPrint.kind === "undeclared") return undefined;
  if (inputPrint.kind === "missing") return { because: "input-missing", detail: inputPrint.detail };
  if (inputPrint.kind === "unread") return { because: "inputs-changed", detail: inputPrint.detail };
  const isSame = inputPrint.print === record.inputPrint;
  return isSame ? undefined : { because: "inputs-changed", detail: null };
}

function hasSameNames(step: StepSpec, artifacts: readonly ArtifactRecord[]): boolean {
  const left = new Set(artifacts.map(({ path }) => path));
  return step.artifacts.length === left.size && step.artifacts.every(({ path }) => left.has(path));
}
