/**
 * `watchdog job status` and `job plan` for people: the steps in their order, what has become of
 * each and why, and what a person must decide, with the lines that decide it. Pure text; decides
 * nothing.
 *
 * Always: a foreign word that leaves here cannot move a cursor or begin a second line; a line to be
 * pasted stands alone.
 */

import type { JobAnswer, JobQuestion, JobView, JobWord, StepView } from "../core/job-view.ts";
import type { PlanReason } from "../core/job-plan.ts";
import { STEP_REASONS } from "../core/step-reasons.ts";
import type { JobRecord, StepReason, StepRecord } from "../core/step-record.ts";
import { escapeUnprintable } from "../core/printable.ts";
import { ownLine } from "../os/own-line.ts";
import type { ToldStep } from "./plan-steps.ts";
import { nameOfNestedRun } from "../job/step-command.ts";
import { renderBar } from "./render-watch.ts";
import {
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
} from "./render-words.ts";

export interface JobPicture {
  readonly record: JobRecord;
  readonly view: JobView;
  /** The file that was asked about, where it is not that of the job. */
  readonly askedFile: string | undefined;
  /** Wall-clock milliseconds. */
  readonly now: number;
  /** Of the terminal; undefined: there is none, and no bar is drawn. */
  readonly columns: number | undefined;
}

const WIDEST_BAR = 40;

const JOB_WORDS: Readonly<Record<JobWord, string>> = {
  running: "running",
  done: "done",
  failed: "failed",
  unknown: "waits for a decision",
  interrupted: "interrupted, can be resumed",
  over: "over: it was begun for one step alone",
  "interrupted-can-resume": "interrupted, can be resumed (its watchdog is gone)",
};

export function renderJobStatus(picture: JobPicture): string {
  const { record, view, now } = picture;
  const blocks = [
    renderHead(picture),
    renderColumns(view.steps.map((step) => renderStep(step, now))),
    ...renderQuestions(view.questions),
    ...renderRuns(view, record),
    ...renderFailed(view, record),
    ...renderResume(view),
  ];
  const first = `job ${escapeUnprintable(record.name)}  ${JOB_WORDS[view.word]}`;
  return join([[...tellOtherFile(picture), first], ...blocks]);
}

function tellOtherFile({ record: { name, file }, askedFile }: JobPicture): string[] {
  if (askedFile === undefined) return [];
  const of = `the newest job ${escapeUnprintable(name)} is that of ${escapeUnprintable(file)}`;
  return [`${of}, and not of ${escapeUnprintable(askedFile)}:`];
}

/** The first block stands right below the line before it. */
function join([first = [], second = [], ...more]: readonly (readonly string[])[]): string {
  return [[...first, ...second], ...more].map(renderLines).join("\n");
}

function renderHead({ record, view, now, columns }: JobPicture): string[] {
  const { createdAt, endedAt, file, jobId, runId } = record;
  const took = renderSpanText((endedAt ?? now) - createdAt);
  const rows = [
    ["  file", file],
    [
      "  begun",
      `${renderInstant(createdAt)}, ${endedAt === null ? `${took} ago` : `took ${took}`}`,
    ],
    ["  id", `${jobId}, last run ${runId}`],
    ["  steps", `${barOf(view, columns)}${countSteps(view)}`],
  ];
  return renderColumns(rows);
}

function barOf({ steps }: JobView, columns: number | undefined): string {
  if (columns === undefined || steps.length === 0) return "";
  const width = Math.min(WIDEST_BAR, columns - 40);
  const done = steps.filter(({ word }) => word === "done").length;
  return width < 10 ? "" : `${renderBar({ done, total: steps.length, width })}  `;
}

/** `1 of 3 done, 1 blocked, 1 unknown`. */
export function countSteps({ steps }: JobView): string {
  const counts = new Map<string, number>();
  for (const { word } of steps) counts.set(word, (counts.get(word) ?? 0) + 1);
  const done = counts.get("done") ?? 0;
  counts.delete("done");
  const others = [...counts].map(([word, count]) => `, ${count} ${word}`);
  return `${done} of ${steps.length} done${others.join("")}`;
}

const TAKEN_OVER = "an earlier job has done it";

/** Name, word, attempt, begin, duration, why. */
function renderStep(view: StepView, now: number): readonly string[] {
  const { step, word, record } = view;
  const { attempt, startedAt, endedAt } = record;
  const isRunning = word === "running";
  const until = isRunning ? now : endedAt;
  const took = startedAt === null || until === null ? "" : renderSpanText(until - startedAt);
  return [
    `  ${step}`,
    word,
    attempt === 0 ? "" : `attempt ${attempt}`,
    startedAt === null ? "" : renderInstant(startedAt),
    took,
    describeStep(view),
  ];
}

function describeStep({ word, record, blockedBy, waitsForPerson }: StepView): string {
  if (word === "blocked") return `waits for ${blockedBy.join(", ")}`;
  if (word === "removed") return "is not in the file any more";
  if (waitsForPerson) return "a person must decide";
  // That it has ended by itself is what everybody expects of it.
  if (word === "done" && record.because === "exited") return "";
  // --from and --only take over what they need.
  if (word === "done" && record.because === "asked") return TAKEN_OVER;
  return describeRecord(record);
}

function isOfRun(because: StepReason | null): boolean {
  return because === "run-failed" || because === "not-started";
}

/** `status 3`, `signal KILL: its command died of a signal`. */
export function describeRecord({ because, exitCode, signal, detail }: StepRecord): string {
  // It names the artifact and what is wrong with it.
  if (detail !== null && because?.startsWith("artifact-") === true) return detail;
  const isOwn = because === "exited" && exitCode !== null && exitCode !== 0;
  const parts = [
    isOwn ? `status ${exitCode}` : because === null ? "" : STEP_REASONS[because],
    isOfRun(because) && exitCode !== null ? `status ${exitCode}` : "",
    signal === null ? "" : `signal ${signal}`,
    detail ?? "",
  ];
  return parts.filter((part) => part !== "").join(": ");
}

const ANSWER_WORDS: Readonly<Record<JobAnswer["accepted"], string>> = {
  retry: "it has not happened, or may happen twice: run it again",
  done: "it has happened",
  fail: "it has failed, and nothing that needs it is to run",
};

const PUT_BACK = "  the file has it no more: put it back under its old name, and ask again";

function renderQuestions(questions: readonly JobQuestion[]): string[][] {
  return questions.map(({ step, why, answers }) => [
    `to decide: has ${escapeUnprintable(step)} happened? ${escapeUnprintable(why)}`,
    ...(answers.length === 0 ? [PUT_BACK] : []),
    ...answers.flatMap(({ accepted, command }) =>
      command === undefined ? [] : [`  ${ANSWER_WORDS[accepted]}`, `    ${command}`],
    ),
  ]);
}

/** So many are named. */
const MOST_RUNS = 3;

/** Of a step with a run around it the journal knows more than this. */
function renderRuns({ steps }: JobView, { name }: JobRecord): string[][] {
  const lines = steps.flatMap(({ step, word, record: { because, exitCode } }) => {
    if (word !== "failed" || !isOfRun(because) || exitCode === null) return [];
    const line = ownLine(["why", nameOfNestedRun(name, step)]);
    return line === undefined ? [] : [`    ${line}`];
  });
  return lines.length === 0 ? [] : [["to see what went wrong", ...lines.slice(0, MOST_RUNS)]];
}

/** What a person has called failed is run by no resume. */
function renderFailed({ steps }: JobView, { file }: JobRecord): string[][] {
  return steps.flatMap(({ step, word, record }) => {
    if (word !== "failed" || record.because !== "accepted-fail") return [];
    const again = ownLine(["job", "resume", "--redo", step, file]);
    const said = `${escapeUnprintable(step)} stays failed, as a person said; to run it after all`;
    return again === undefined ? [] : [[said, `    ${again}`]];
  });
}

function renderResume({ resume, questions, isOver }: JobView): string[][] {
  if (resume === undefined || questions.length > 0) return [];
  return [[isOver ? LEFT_OVER : "to go on with it", `    ${resume}`]];
}

const LEFT_OVER = "job run begins anew; to run what this one has left";

/** What `job plan` tells of. */
export interface PlanPicture {
  readonly name: string;
  /** `begin`: a new job; `resume`: the unfinished one. */
  readonly kind: "begin" | "resume";
  /** Somebody has the lease of the job, or nobody can tell: `job run` would be refused. */
  readonly isHeld: boolean;
  /** In the order in which they run. */
  readonly steps: readonly ToldStep[];
  /** Lines about what a step would look for in vain. */
  readonly missing: readonly string[];
}

const PLAN_REASONS: Readonly<Record<Exclude<PlanReason, StepReason>, string>> = {
  "not-begun": "it was never begun",
  "never-done": "no earlier job has done it",
  "inputs-undeclared": "the file does not say what it reads",
};

/** A clause for people. */
export function describePlanReason(because: PlanReason): string {
  const own: Readonly<Record<string, string>> = { ...PLAN_REASONS, ...STEP_REASONS };
  return own[because] ?? because;
}

const TODO_WORDS: Readonly<Record<ToldStep["todo"], string>> = {
  run: "runs",
  blocked: "blocked",
  nothing: "stays",
  settle: "is asked",
  person: "waits",
};

export function renderJobPlan({ name, kind, isHeld, steps, missing }: PlanPicture): string {
  const running = steps.filter(({ todo }) => todo === "run").length;
  const count = `${running} of ${renderCount(steps.length, "step", "steps")} to run`;
  const rows = steps.map((step) => [
    `  ${step.record.step}`,
    `${TODO_WORDS[step.todo]}${step.todo === "nothing" ? ` ${step.record.state}` : ""}`,
    describePlanned(step),
  ]);
  const head = renderPlanHead(kind, isHeld).map((line) => line.replace("%", count));
  const [first = "", ...more] = head;
  return renderLines([
    `job ${escapeUnprintable(name)}  ${first}`,
    ...more,
    ...renderColumns(rows),
    ...missing.map((line) => `  ${escapeUnprintable(line)}`),
  ]);
}

/** `%`: the count. Of a job that runs the journal tells what would be true were it killed now. */
function renderPlanHead(kind: PlanPicture["kind"], isHeld: boolean): readonly string[] {
  const begins =
    kind === "begin" ? "would begin a new job: %" : "would go on with the unfinished job: %";
  if (!isHeld) return [begins];
  const refused = "job run would be refused now (75)";
  return kind === "begin"
    ? [`its lease is held: ${refused}`, `when it is free, job run ${begins}`]
    : [`runs now: ${refused}`, `were its watchdog killed at this moment, job run ${begins}`];
}

function describePlanned(step: ToldStep): string {
  const { todo, record, removesArtifacts, blockedBy } = step;
  if (todo === "blocked") return `waits for ${blockedBy.join(", ")}`;
  const parts = [
    ...whyPlanned(step),
    step.because === "input-missing" ? "" : (record.detail ?? ""),
    todo === "settle" ? "its settle command says whether it has happened" : "",
    todo === "person" ? "a person must decide" : "",
    todo === "run" && removesArtifacts ? "what it has left is removed first" : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}

function whyPlanned({ todo, because, record }: ToldStep): readonly string[] {
  if (because === null || (todo === "nothing" && because === "exited")) return [];
  // It was not done, or it would stay so.
  if (because === "exited") return ["its command has failed"];
  if (because === "needs-changed") return ["a step that it needs runs before it"];
  // --from has taken over what it had not to run again.
  if (because === "asked" && todo === "nothing") return [TAKEN_OVER];
  // The detail is the path.
  if (because === "input-missing" && record.detail !== null) {
    return [`${describePlanReason(because)}: ${record.detail}`];
  }
  // The detail names the artifact and what is wrong with it.
  const isTold = record.detail !== null && because.startsWith("artifact-");
  return isTold ? [] : [describePlanReason(because)];
}
