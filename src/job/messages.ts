/** The sentences of a job of many steps on standard error: one line each. Pure text. */
import { type AskedOfJob, NOTHING_ASKED } from "../core/job-asked.ts";
import type { RefusalReason, ResumeDecision } from "../core/job-resume.ts";
import type { JobSpec } from "../core/job-spec.ts";
import { escapeUnprintable } from "../core/printable.ts";
import { quoteForShell } from "../core/own-command.ts";
import { nameSignal } from "../core/signals.ts";
import type { StepEnd } from "../core/step-outcome.ts";
import { STEP_REASONS } from "../core/step-reasons.ts";
import type { StepRecord } from "../core/step-record.ts";

interface Named {
  readonly pid: number;
  readonly command: string;
}

const MOST_NAMED = 5;

const REFUSALS: Readonly<Record<RefusalReason, string>> = {
  "nothing-to-resume": "no job of this name is unfinished",
  "other-file": "the unfinished job of this name is that of another file",
  "nothing-to-decide": "there is nothing to decide about",
  "accepted-without-artifacts": "the artifacts of what is called done are not there",
  "undecided-named": "nobody knows whether what is to run again has happened; a person must say so",
  "not-done": "what must be done before is not",
  "undecided-removed":
    "the file no longer has a step of which nobody knows whether it has happened",
};

function showEnd(end: StepEnd, reason: string | undefined): string {
  switch (end.kind) {
    case "exited":
      return `exited with status ${end.code}`;
    case "signaled":
      return `died of ${nameSignal(end.signal)}`;
    case "timed-out":
      return "was ended by its time limit";
    case "not-started":
      return `could not be started: ${reason ?? end.because}`;
    case "run-failed":
      return `failed with status ${end.status}`;
    case "run-stopped":
      return "was stopped on request";
  }
}

type Refusal = Pick<
  Extract<ResumeDecision, { kind: "refused" }>,
  "because" | "steps" | "otherFile"
>;

/** A clause for people; the word of a state stays as it is. */
function explain(because: string): string {
  const reasons: Readonly<Record<string, string>> = {
    ...STEP_REASONS,
    // It was not done, or nobody would tell.
    exited: "its command has failed",
    "not-begun": "never begun",
    "never-done": "never done",
    "inputs-undeclared": "the file does not say what it reads",
  };
  return reasons[because] ?? because;
}

function adviseOtherFile({ steps }: Refusal): string {
  const names = steps.map(({ step }) => step);
  const open = names.length === 0 ? "" : `, and the question whether ${list(names)} has happened`;
  return (
    "watchdog: give one of the two another name: in its file, or move this one back to where it " +
    `was; --fresh would throw away what the other has done${open}`
  );
}

function adviseRemoved({ steps }: Refusal): string {
  const names = list(steps.map(({ step }) => step));
  return (
    `watchdog: put ${names} back into the file under the old name, and decide; --fresh would ` +
    "throw away what the job has done, and that question"
  );
}

function count(number: number, word: string): string {
  return number === 1 ? `1 ${word}` : `${number} ${word}s`;
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).join(", ");
  return names.length > MOST_NAMED ? `${shown} and ${names.length - MOST_NAMED} more` : shown;
}

function listProcesses(rows: readonly Named[]): string {
  return list(rows.map(({ pid, command }) => `${pid} ${command}`));
}

export const messages = {
  goesOn: (name: string, done: number, total: number): string =>
    `watchdog: job ${name} goes on where it was: ${done} of ${count(total, "step")} ` +
    `${total === 1 ? "is" : "are"} done`,
  begins: (name: string, total: number, unchanged: number): string =>
    `watchdog: job ${name} begins: ${count(total, "step")}` +
    (unchanged === 0 ? "" : `, ${unchanged} of them unchanged since they were done`),
  refused: (name: string, { because, steps, otherFile }: Refusal): string => {
    const details = steps.slice(0, MOST_NAMED).map(({ step, because: why, detail }) => {
      const reasons = [why === null ? null : explain(why), detail].filter((one) => one !== null);
      return reasons.length === 0 ? step : `${step} (${reasons.join(": ")})`;
    });
    const named = otherFile === undefined ? details.join(", ") : escapeUnprintable(otherFile);
    const said = `watchdog: job ${name} is not run: ${REFUSALS[because]}`;
    return named === "" ? said : `${said}: ${named}`;
  },
  /** With what a person can do about it. */
  refusal: (
    { name, file }: Pick<JobSpec, "name" | "file">,
    refusal: Refusal,
    { accepted }: Pick<AskedOfJob, "accepted"> = NOTHING_ASKED,
  ): readonly string[] => {
    const line = messages.refused(name, refusal);
    const [first] = refusal.steps;
    switch (refusal.because) {
      case "nothing-to-resume":
        // Who decides about a step that has happened must not be led to run it again.
        return [line, accepted.size === 0 ? messages.hintRun(file) : messages.hintStatus(name)];
      case "other-file":
        return [line, adviseOtherFile(refusal), messages.hintStatus(name)];
      case "undecided-removed":
        return [line, adviseRemoved(refusal), messages.hintStatus(name)];
      case "undecided-named":
        return first === undefined ? [line] : [line, messages.hintRetry(file, first.step)];
      default:
        return [line];
    }
  },
  hintResume: (file: string): string =>
    `watchdog: hint: ${quoteForShell(["watchdog", "job", "resume", file]) ?? "job resume"}`,
  hintRun: (file: string): string =>
    `watchdog: hint: ${quoteForShell(["watchdog", "job", "run", file]) ?? "watchdog job run"}`,
  /** To run again what may have happened is a decision. */
  hintRetry: (file: string, step: string): string => {
    const words = ["watchdog", "job", "resume", "--accept-unknown", `${step}=retry`, file];
    return `watchdog: hint: ${quoteForShell(words) ?? "watchdog job status"}`;
  },
  /** A step that a person has called failed: no resume runs it. */
  staysFailed: (file: string, step: string): readonly string[] => {
    const words = ["watchdog", "job", "resume", "--redo", step, file];
    return [
      `watchdog: step ${step} stays failed, as a person said; --redo runs it after all`,
      `watchdog: hint: ${quoteForShell(words) ?? "watchdog job status"}`,
    ];
  },
  /** Without side effects, and alone. */
  stoppedPending: (names: readonly string[]): string =>
    `watchdog: stopped on request, and run again when the job goes on: ${list(names)}`,
  settledPending: (names: readonly string[]): string =>
    `watchdog: not happened, as settle says, and run again when the job goes on: ${list(names)}`,
  /** Of a job, whatever its file is. */
  hintStatus: (name: string): string => {
    const words = ["watchdog", "job", "status", ...(name.startsWith("-") ? ["--"] : []), name];
    return `watchdog: hint: ${quoteForShell(words) ?? "watchdog status"}`;
  },
  /** No hint begins anew: what has happened would happen again. */
  lost: (name: string, reason: string): readonly string[] => [
    `watchdog: job ${name} is not run: ${reason}; nobody can tell which steps have happened`,
    "watchdog: look at what they have done; --fresh begins anew, and runs again what has happened",
  ],
  unreadable: (name: string, reason: string): string =>
    `watchdog: job ${name} is not run: what is known of it cannot be read: ${reason}`,
  stoppedBefore: (name: string): string =>
    `watchdog: job ${name} is not run: its end was asked for; what is known of it is as it was`,
  heldBackBefore: (name: string): string =>
    `watchdog: job ${name} is not run: nothing is started beside what outlived KILL; what is ` +
    "known of it is as it was",
  starts: (step: string, attempt: number): string =>
    `watchdog: step ${step} starts${attempt === 1 ? "" : ` (attempt ${attempt})`}`,
  /** It may be meant. */
  missing: (step: string, input: string): string =>
    `watchdog: step ${step}: its input ${input} is not there`,
  done: (step: string): string => `watchdog: step ${step} is done`,
  alreadyDone: (step: string): string =>
    `watchdog: step ${step} is done and is not run; --only ${step} --redo ${step} runs it again`,
  unchanged: (step: string): string => `watchdog: step ${step} is unchanged and not run`,
  /** @param isCertain  nothing that it needs is to be run before it */
  sentBack: ({ step, because, detail }: StepRecord, isCertain: boolean): string => {
    const reason = because === null ? null : explain(because);
    const why = [reason, detail].filter((one) => one !== null).join(": ");
    return `watchdog: step ${step} ${isCertain ? "runs again" : "is to run again"}: ${why}`;
  },
  failed: (step: string, end: StepEnd, reason: string | undefined): string =>
    `watchdog: step ${step} ${showEnd(end, reason)}`,
  artifacts: (step: string, detail: string): string =>
    `watchdog: step ${step} said that all is well, but ${detail}`,
  retries: (step: string, attempt: number, delayMs: number): string =>
    `watchdog: step ${step} is tried again in ${Math.round(delayMs)} ms (attempt ${attempt})`,
  unknown: (steps: readonly string[]): string =>
    `watchdog: nobody knows whether ${list(steps)} has happened: a person must decide`,
  decide: (file: string, step: string): string => {
    const words = [
      "watchdog",
      "job",
      "resume",
      "--accept-unknown",
      `${step}=retry|fail|done`,
      file,
    ];
    return `watchdog: hint: ${quoteForShell(words) ?? "watchdog job status"}`;
  },
  /** Of steps that were ended in the middle, on request or at a limit of the job. */
  settleWillTell: (names: readonly string[]): string =>
    `watchdog: the next job resume asks settle whether ${list(names)} has happened`,
  happened: (step: string): string => `watchdog: step ${step} has happened, as its settle says`,
  blocked: (names: readonly string[]): string =>
    `watchdog: not begun, because of what they need: ${list(names)}`,
  leftovers: (step: string, rows: readonly Named[]): string => {
    const processes = rows.length === 1 ? "process" : "processes";
    const ended = `ended ${rows.length} ${processes} left by its command`;
    return `watchdog: step ${step}: ${ended}: ${listProcesses(rows)}`;
  },
  unended: (step: string, rows: readonly Named[]): string =>
    `watchdog: step ${step}: processes outlived even KILL: ${listProcesses(rows)}`,
  /** What a step that was about to start is told to have come to. */
  keptBack: "processes of the job outlived KILL, and nothing is started beside them",
  unendedSettle: (step: string, rows: readonly Named[]): string =>
    `watchdog: settle of step ${step}: processes outlived even KILL: ${listProcesses(rows)}`,
  heldBack: (names: readonly string[]): string =>
    `watchdog: the job stops: nothing is started beside what outlived KILL; left to do: ` +
    list(names),
  unwritten: (step: string, reason: string): string =>
    `watchdog: the job stops: the state of ${step} could not be written: ${reason}`,
  fenced: (reason: string): string =>
    `watchdog: the job stops: it is somebody else's now: ${reason}`,
  unremoved: (step: string, path: string, reason: string): string =>
    `watchdog: step ${step}: what it has left before cannot be removed: ${path}: ${reason}`,
  bug: (error: unknown): string =>
    `watchdog: bug: ${error instanceof Error ? error.message : String(error)}`,
};
