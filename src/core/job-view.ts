/**
 * How a job looks to a person: for each step one word, and what a person must decide, as lines that
 * can be pasted. Pure; it reads, and changes nothing.
 *
 * Always: nothing is called `running` while nobody lives who could run it.
 */
import type { AcceptedAs } from "./job-asked.ts";
import { orderSteps } from "./job-graph.ts";
import { OVER_FOR_ONE_STEP } from "./job-next.ts";
import { mayHaveHappened } from "./job-settle.ts";
import { firstRecord } from "./job-plan.ts";
import type { SideEffects, StepSpec } from "./job-spec.ts";
import { quoteForShell } from "./own-command.ts";
import { STEP_REASONS } from "./step-reasons.ts";
import type { JobRecord, JobState, StepRecord, StepState } from "./step-record.ts";

export type StepWord =
  | StepState
  /** Not begun, because something that it needs has failed, or nobody knows of it. */
  | "blocked"
  /** The job's file no longer has it. */
  | "removed";

export interface StepView {
  readonly step: string;
  readonly word: StepWord;
  /** Nothing goes on with it before a person has decided. */
  readonly waitsForPerson: boolean;
  /** What blocks it in the end, at most three; empty but for `blocked`. */
  readonly blockedBy: readonly string[];
  readonly record: StepRecord;
}

export type JobWord =
  | JobState
  /** It was begun for one step alone, which is done: the next `job run` begins anew. */
  | "over"
  /** It was begun and has not ended, and whoever ran it is gone: `job run` goes on with it. */
  | "interrupted-can-resume";

/** What a person is asked. */
export interface JobQuestion {
  readonly step: string;
  /** A clause for people: why nobody knows. */
  readonly why: string;
  /** One line for each answer; undefined where the path cannot be pasted. */
  readonly answers: readonly JobAnswer[];
}

export interface JobAnswer {
  readonly accepted: AcceptedAs;
  /** `watchdog job resume FILE --accept-unknown STEP=retry` */
  readonly command: string | undefined;
}

export interface JobView {
  readonly word: JobWord;
  readonly steps: readonly StepView[];
  readonly questions: readonly JobQuestion[];
  /** It was begun for one step alone: only who asks for it goes on with the others. */
  readonly isOver: boolean;
  /**
   * What goes on with it; undefined: it runs, is done, would not go on before a person takes back
   * that a step has failed, or its path cannot be pasted.
   */
  readonly resume: string | undefined;
}

export interface ViewedJob {
  readonly record: JobRecord;
  /** Why it has ended so, as the journal has it. */
  readonly because: string | null;
  /** Somebody has the lease of the job, or nobody can tell. */
  readonly isLive: boolean;
  /** As the file has them now, in their order; undefined: it cannot be read. */
  readonly steps: readonly ViewedStep[] | undefined;
  readonly startedAs: ReadonlyMap<string, SideEffects>;
}

export type ViewedStep = Pick<StepSpec, "name" | "needs" | "sideEffects" | "settle">;

export function viewOfJob(job: ViewedJob): JobView {
  const { record, isLive } = job;
  const isOver = job.because === OVER_FOR_ONE_STEP && record.state !== "running";
  const steps = listViews(job);
  const waiting = record.state === "done" ? [] : steps.filter((step) => step.waitsForPerson);
  return {
    word: wordOf(record.state, { isLive, isOver }),
    steps,
    isOver,
    questions: waiting.map((step) => ask(step, record)),
    resume:
      record.state === "done" || isLive || isStuck(steps)
        ? undefined
        : quoteForShell(resumeWords(record)),
  };
}

function wordOf(
  state: JobState,
  { isLive, isOver }: { readonly isLive: boolean; readonly isOver: boolean },
): JobWord {
  if (state === "interrupted" && isOver) return "over";
  return state === "running" && !isLive ? "interrupted-can-resume" : state;
}

/** A person has called a step failed, and all that is left needs such a one. */
function isStuck(steps: readonly StepView[]): boolean {
  const isFailed = ({ word, record }: StepView): boolean =>
    word === "failed" && record.because === "accepted-fail";
  const isOver = (step: StepView): boolean =>
    step.word === "done" ||
    step.word === "removed" ||
    isFailed(step) ||
    (step.word === "blocked" && !isRunAgain(step));
  // One that has failed by itself runs again, and what it blocks with it.
  function isRunAgain({ blockedBy }: StepView): boolean {
    return !blockedBy.some((name) => steps.some((one) => one.step === name && isFailed(one)));
  }
  return steps.some(isFailed) && steps.every(isOver);
}

function listViews(job: ViewedJob): readonly StepView[] {
  const records = new Map(job.record.steps.map((record) => [record.step, record]));
  const order = job.steps === undefined ? undefined : orderSteps(job.steps);
  // Without an order nobody knows what blocks what: the steps as they were begun.
  if (order?.kind !== "ordered") {
    return job.record.steps.map((record) => viewOfStep(record, undefined, job));
  }
  const views = new Map<string, StepView>();
  for (const step of order.steps) {
    const record = records.get(step.name) ?? firstRecord(step.name);
    const needs = step.needs.flatMap((need) => views.get(need) ?? []);
    views.set(step.name, block(viewOfStep(record, step, job), needs));
    records.delete(step.name);
  }
  const removed = [...records.values()].map((record) => ({
    ...viewOfStep(record, undefined, job),
    word: "removed" as const,
  }));
  return [...views.values(), ...removed];
}

function viewOfStep(
  record: StepRecord,
  step: ViewedStep | undefined,
  { isLive, startedAs }: ViewedJob,
): StepView {
  const isUnsafe = startedAs.get(record.step) === "unsafe" || step?.sideEffects === "unsafe";
  const isAsked = record.state !== "unknown" && step?.settle !== undefined;
  const isRunning = record.state === "running";
  return {
    step: record.step,
    word: isRunning && !isLive ? "interrupted" : record.state,
    waitsForPerson: !(isRunning && isLive) && mayHaveHappened(record, isUnsafe) && !isAsked,
    blockedBy: [],
    record,
  };
}

/** So many are named. */
const MOST_BLOCKING = 3;

function block(view: StepView, needs: readonly StepView[]): StepView {
  if (view.word !== "pending") return view;
  const blocking = new Set(needs.flatMap(listBlocking));
  if (blocking.size === 0) return view;
  return { ...view, word: "blocked", blockedBy: [...blocking].slice(0, MOST_BLOCKING) };
}

function listBlocking({ step, word, blockedBy, waitsForPerson }: StepView): readonly string[] {
  if (word === "blocked") return blockedBy;
  return word === "failed" || waitsForPerson ? [step] : [];
}

function ask({ step, word, record }: StepView, job: JobRecord): JobQuestion {
  const reason = record.state === "running" ? "watchdog-killed" : (record.because ?? "no-settle");
  const { detail } = record;
  const why = detail === null ? STEP_REASONS[reason] : `${STEP_REASONS[reason]}: ${detail}`;
  // Of a step that the file no longer has the command line would know nothing.
  const answers = word === "removed" ? [] : ANSWERS;
  return {
    step,
    why,
    answers: answers.map((accepted) => ({
      accepted,
      command: quoteForShell([...resumeWords(job), "--accept-unknown", `${step}=${accepted}`]),
    })),
  };
}

const ANSWERS: readonly AcceptedAs[] = ["retry", "done", "fail"];

function resumeWords({ file }: JobRecord): string[] {
  return ["watchdog", "job", "resume", file];
}
