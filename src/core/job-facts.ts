/**
 * What is known before it is decided how a job begins or goes on, and what is to be looked at for
 * that. Plain data; the looks themselves are the caller's.
 */
import type { AskedOfJob } from "./job-asked.ts";
import { dependentsOf, needsOf } from "./job-graph.ts";
import type { JobSpec, SideEffects, StepSpec } from "./job-spec.ts";
import type { ArtifactRecord, JobRecord, StepRecord, StepState } from "./step-record.ts";
import type { StepArtifacts } from "./step-outcome.ts";

/** What a look at recorded artifacts has found. */
export type VerifiedArtifacts =
  | { readonly kind: "same" }
  /** One of them is another, or is gone, or cannot be read. @param detail  for people */
  | { readonly kind: "other"; readonly detail: string }
  /** Nobody has looked: nobody may call them the same. */
  | { readonly kind: "unchecked" };

export type InputPrint =
  | { readonly kind: "known"; readonly print: string }
  /** The file does not say what the step reads. */
  | { readonly kind: "undeclared" }
  /**
   * One of its inputs is not there: what it reads is something else, whatever is stored of it.
   * @param print  is kept, and is none of a step whose inputs are all there
   * @param detail  its path
   */
  | { readonly kind: "missing"; readonly print: string; readonly detail: string }
  /** One of its inputs cannot be read. @param detail  for people */
  | { readonly kind: "unread"; readonly detail: string };

/**
 * The last time that a step of this name was done, in an earlier job of this name, where none has
 * tried it since.
 */
export interface EarlierStep {
  readonly record: StepRecord;
  readonly artifacts: readonly ArtifactRecord[];
}

export interface StepFacts {
  /** Of the step as its file describes it now. */
  readonly commandPrint: string;
  /** Made with the recorded artifacts of the steps that it needs. */
  readonly inputPrint: InputPrint;
  /** Of the records that `listLooks` has named. */
  readonly verified: VerifiedArtifacts;
  /** What is there now, where `listLooks` asks for it. */
  readonly present: StepArtifacts | undefined;
  readonly earlier: EarlierStep | undefined;
}

export interface JobFacts {
  readonly spec: JobSpec;
  /** The newest job of this name; undefined: there is none. */
  readonly known: JobRecord | undefined;
  readonly asked: AskedOfJob;
}

/** All that `decideResume` goes by. */
export interface ResumeFacts extends JobFacts {
  /** By the name of the step, of each one in the file. */
  readonly facts: ReadonlyMap<string, StepFacts>;
  /**
   * What the file said of each step when it was last started in the known job, also of those that
   * it no longer has: who calls a step harmless afterwards has not made it so.
   */
  readonly startedAs: ReadonlyMap<string, SideEffects>;
  /** Which writes what is decided. */
  readonly run: { readonly runId: string; readonly generation: number };
}

/** What to look at before the decision. */
export interface StepLook {
  /** To be hashed and compared; empty: there is nothing, and `same` is right. */
  readonly verifies: readonly ArtifactRecord[];
  /** Its artifacts are to be hashed as they are, because a person calls the step done. */
  readonly wantsPresent: boolean;
  /** Whether what it reads is to be hashed; else `undeclared` does. */
  readonly wantsInputs: boolean;
}

const NO_LOOK: StepLook = { verifies: [], wantsPresent: false, wantsInputs: false };

/** Whether the job is begun rather than gone on with. */
export function isBeginning({ known, asked }: Pick<JobFacts, "known" | "asked">): boolean {
  return asked.isFresh || known === undefined || known.state === "done";
}

/**
 * For each step by its name. `earlier` is asked only where a job is begun.
 */
export function listLooks(
  facts: JobFacts,
  earlier: ReadonlyMap<string, EarlierStep>,
): ReadonlyMap<string, StepLook> {
  const { spec } = facts;
  if (!isBeginning(facts)) return lookAtKnown(facts);
  const taken = listTakenOver(spec, facts.asked);
  const redone = listRedone(spec, facts.asked);
  return new Map(
    spec.steps.map((step) => {
      const last = earlier.get(step.name);
      const mayBeDone = step.inputs !== undefined || taken.has(step.name);
      if (last === undefined || redone.has(step.name) || !mayBeDone) return [step.name, NO_LOOK];
      return [step.name, lookAt(step, last.artifacts)];
    }),
  );
}

/** Of the others nothing is kept: they run again, or wait for a person. */
const KEPT: ReadonlySet<StepState> = new Set(["done", "interrupted", "running"]);

function lookAtKnown({ spec, known, asked }: JobFacts): ReadonlyMap<string, StepLook> {
  const states = new Map(known?.steps.map(({ step, state }) => [step, state]));
  const artifacts = Map.groupBy(known?.artifacts ?? [], ({ step }) => step);
  const named = listNamed(asked);
  return new Map(
    spec.steps.map((step) => {
      const { name } = step;
      const isKept = !named.has(name) && KEPT.has(states.get(name) ?? "pending");
      const look = isKept ? lookAt(step, artifacts.get(name) ?? []) : NO_LOOK;
      return [name, { ...look, wantsPresent: asked.accepted.get(name) === "done" }];
    }),
  );
}

function lookAt(step: StepSpec, verifies: readonly ArtifactRecord[]): StepLook {
  return { verifies, wantsPresent: false, wantsInputs: step.inputs !== undefined };
}

/** Of these a person says that they run again, whatever they do. */
export function listNamed({ redo, from }: AskedOfJob): ReadonlySet<string> {
  return new Set([...redo, ...(from === undefined ? [] : [from])]);
}

/** Those, and what depends on them. */
export function listRedone({ steps }: JobSpec, asked: AskedOfJob): ReadonlySet<string> {
  const named = listNamed(asked);
  if (named.size === 0) return named;
  return new Set([...named, ...dependentsOf(steps, named)]);
}

/**
 * Those that must be done already, because a person wants only a part of the job to run: in a job
 * that is begun they are taken over from earlier ones.
 */
export function listTakenOver({ steps }: JobSpec, asked: AskedOfJob): ReadonlySet<string> {
  const { only, from } = asked;
  if (only !== undefined) return needsOf(steps, [only]);
  if (from === undefined) return new Set();
  const run = dependentsOf(steps, [from]);
  return new Set(steps.flatMap(({ name }) => (name === from || run.has(name) ? [] : [name])));
}

/**
 * With `--only` those that are neither it nor needed by it: whatever would have to be done about
 * them, they stay what they are.
 */
export function listLeftAlone({ steps }: JobSpec, { only }: AskedOfJob): ReadonlySet<string> {
  if (only === undefined) return new Set();
  const meant = needsOf(steps, [only]);
  return new Set(steps.flatMap(({ name }) => (name === only || meant.has(name) ? [] : [name])));
}
