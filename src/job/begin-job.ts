/**
 * From what is known of a job to the first step: recalls it, looks, lets it be decided how it
 * begins or goes on, asks `settle` where only that can tell, and writes the decision down.
 *
 * Always: nothing is started here but `settle`; what was decided is in the journal before anything
 * else happens. State after a crash: what was known before, or what was decided, as a whole.
 */
import type { EarlierStep } from "../core/job-facts.ts";
import type { AskedOfJob } from "../core/job-asked.ts";
import { isBeginning } from "../core/job-facts.ts";
import { OVER_FOR_ONE_STEP } from "../core/job-next.ts";
import type { JobOrder } from "../core/job-order.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import { decideResume, type ResumeDecision } from "../core/job-resume.ts";
import { decideSettled, mayHaveHappened, type SettleAnswer } from "../core/job-settle.ts";
import type { JobSpec, StepSpec } from "../core/job-spec.ts";
import type { StepRecord } from "../core/step-record.ts";
import { type JobRecall, readLastDone, recallJob, type StoredJob } from "../journal/job-queries.ts";
import type { JobStore, StepChange, StoreResult } from "../journal/job-store.ts";
import { wallNow } from "../os/clock.ts";
import { gatherFacts, type GatherParts } from "./gather.ts";
import type { StopAsked } from "./stop-asked.ts";

export interface DecideParts {
  readonly order: Pick<JobOrder, "spec" | "asked">;
  readonly stateDirectory: string;
  /** Which writes what is decided. */
  readonly run: { readonly runId: string; readonly generation: number };
  readonly looks: GatherParts;
}

export interface BeginParts extends DecideParts {
  readonly store: JobStore;
  readonly settle: (step: StepSpec) => Promise<SettleAnswer>;
  readonly stop: Pick<StopAsked, "during" | "isAsked">;
}

type Decided = Extract<ResumeDecision, { kind: "begin" | "resume" }>;

export type Begun =
  | {
      readonly kind: "begun";
      readonly how: Decided["kind"];
      readonly steps: readonly PlannedStep[];
      /** With `--only`: the job was begun so, or is begun. */
      readonly isForOneStep: boolean;
    }
  | Extract<ResumeDecision, { kind: "refused" }>
  | Extract<JobRecall, { kind: "lost" | "unreadable" }>
  | Exclude<StoreResult, { kind: "written" }>
  /** Nothing may be started any more since it was looked at: nothing is written. */
  | { readonly kind: "stopped" };

export async function beginJob(parts: BeginParts): Promise<Begun> {
  const { stop } = parts;
  const decided = await stop.during(decideBeginning(parts));
  if (decided === undefined) return { kind: "stopped" };
  if (decided.kind === "lost" || decided.kind === "unreadable") return decided;
  const { decision, stored } = decided;
  if (decision.kind === "refused") return decision;
  const steps = await settleAll(decision.steps, parts);
  // The answer of one that was ended on request is none: it is asked again, as is one that has
  // left what outlived KILL.
  if (stop.isAsked) return { kind: "stopped" };
  const written = await write(parts, { decision, steps, stored });
  if (written.kind !== "written") return written;
  const isAlone = decision.kind === "begin" || stored?.because === OVER_FOR_ONE_STEP;
  const isForOneStep = isAlone && parts.order.asked.only !== undefined;
  return { kind: "begun", how: decision.kind, steps, isForOneStep };
}

export type DecidedBeginning =
  | {
      readonly kind: "decided";
      readonly decision: ResumeDecision;
      /** The newest job of the name; undefined: there is none. */
      readonly stored: StoredJob | undefined;
    }
  | Extract<JobRecall, { kind: "lost" | "unreadable" }>;

/** Looks and decides, and changes nothing. */
export async function decideBeginning(parts: DecideParts): Promise<DecidedBeginning> {
  const { order, stateDirectory, run, looks } = parts;
  const { spec, asked } = order;
  const recalled = await recallJob(stateDirectory, spec.name);
  if (recalled.kind === "unreadable") return recalled;
  if (recalled.kind === "lost" && !asked.isFresh) return recalled;
  const found = recalled.kind === "known" ? recalled.job : undefined;
  const stored = isOver(found, asked) ? undefined : found;
  const job = { spec, asked, known: stored?.record };
  const earlier = isBeginning(job) ? findEarlier(stateDirectory, spec) : NONE_EARLIER;
  if (typeof earlier === "string") return { kind: "unreadable", reason: earlier };
  const facts = await gatherFacts(job, earlier, looks);
  const startedAs = stored?.sideEffects ?? new Map();
  const decision = decideResume({ ...job, facts, startedAs, run });
  return { kind: "decided", decision, stored };
}

/**
 * Only who asks for more of it goes on with a job that was begun for one step alone; but not where
 * that step may have done its work without being called done: a person must decide about it first.
 */
function isOver(job: StoredJob | undefined, asked: AskedOfJob): boolean {
  const isPlain = asked.from === undefined && asked.only === undefined && asked.redo.length === 0;
  const begins = asked.verb === "run" && isPlain && asked.accepted.size === 0;
  if (!begins || job?.because !== OVER_FOR_ONE_STEP) return false;
  const isUnsafe = (step: string): boolean => job.sideEffects.get(step) !== "none";
  return !job.record.steps.some((one) => mayHaveHappened(one, isUnsafe(one.step)));
}

const NONE_EARLIER: ReadonlyMap<string, EarlierStep> = new Map();

/** @returns a reason where it cannot be told: then nothing may be called unchanged, or begun */
function findEarlier(
  stateDirectory: string,
  spec: JobSpec,
): ReadonlyMap<string, EarlierStep> | string {
  const names = spec.steps.map((step) => step.name);
  const found = readLastDone(stateDirectory, spec, names);
  if (found.kind === "unreadable") return found.reason;
  return found.kind === "read" ? found.value : NONE_EARLIER;
}

/** One after the other, in the order of the job. */
async function settleAll(
  planned: readonly PlannedStep[],
  { order, settle, stop }: BeginParts,
): Promise<readonly PlannedStep[]> {
  const specs = new Map(order.spec.steps.map((step) => [step.name, step]));
  const settled: PlannedStep[] = [];
  for (const one of planned) {
    if (stop.isAsked) break;
    const step = specs.get(one.record.step);
    if (one.todo !== "settle" || step === undefined) settled.push(one);
    else settled.push({ ...decideSettled(one, await settle(step)), endsAttempt: one.endsAttempt });
  }
  return settled;
}

interface Writing {
  readonly decision: Decided;
  readonly steps: readonly PlannedStep[];
  readonly stored: StoredJob | undefined;
}

async function write(
  { order, store }: BeginParts,
  { decision, steps, stored }: Writing,
): Promise<StoreResult> {
  const { spec } = order;
  const planned = new Map(steps.map((one) => [one.record.step, one]));
  const changes = spec.steps.flatMap((step, position): StepChange[] => {
    const one = planned.get(step.name);
    return one === undefined ? [] : [changeOf(step, one, position)];
  });
  if (decision.kind === "begin" || stored === undefined) {
    const { name, file, directory } = spec;
    const jobId = Bun.randomUUIDv7();
    return store.begin({ jobId, name, file, directory, createdAt: wallNow(), steps: changes });
  }
  const places = new Map(stored.record.steps.map(({ step }, position) => [step, position]));
  const isNews = ({ record, position }: StepChange): boolean => {
    const one = planned.get(record.step);
    const isMoved = places.get(record.step) !== position;
    return isMoved || one?.isChanged === true || one?.endsAttempt === true || one?.todo === "run";
  };
  const gone = stored.record.steps.filter(
    (step) => !planned.has(step.step) && !isKept(step, stored),
  );
  return store.adopt(
    stored.record.jobId,
    changes.filter(isNews),
    gone.map(({ step }) => step),
  );
}

/** Put back into the file, it must not run again as if it had never been there. */
function isKept({ step, state, attempt }: StepRecord, { sideEffects }: StoredJob): boolean {
  return sideEffects.get(step) !== "none" && (attempt > 0 || state === "done");
}

/** Who is to run is started as what the file says today; of the others it stays what it was. */
function changeOf(step: StepSpec, planned: PlannedStep, position: number): StepChange {
  const { record, artifacts, todo } = planned;
  return {
    record,
    position,
    ...(todo === "run" || record.attempt === 0 ? { sideEffects: step.sideEffects } : {}),
    ...(artifacts === undefined ? {} : { artifacts }),
  };
}
