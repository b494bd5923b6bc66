/**
 * What follows from a step whose command has ended: is it done, has it failed, is it tried again,
 * or does nobody know. Pure; clock and dice are handed in.
 *
 * Always: a step that may do harm when it runs twice (`unsafe`) is tried again or called failed
 * only where its command has said so itself by its status, or was never started; a step at whose
 * end we were told to stop, or that was told so itself, is never done and never tried again; 126,
 * 127 and 64 are never tried again (core/retry.ts); without its artifacts nothing is done.
 */
import { type Backoff, type BackoffState, type Chance, decideNextAttempt } from "./backoff.ts";
import { EXIT } from "./errors.ts";
import type { SideEffects } from "./job-spec.ts";
import type { OutcomeName } from "./outcome.ts";
import { type AttemptEnd, NEVER_RETRIED, statusOf } from "./retry.ts";
import type { CommandEnd } from "./run-state.ts";
import { SIGTERM } from "./signals.ts";
import type { ArtifactRecord, StepReason } from "./step-record.ts";

/** What a command has done, as far as its end tells. */
export type Work =
  /** It was never started. */
  | "none"
  /** It has said by its status that it has failed. */
  | "failed"
  /** It has said that all is well. */
  | "all"
  /** It was ended in the middle, or nobody can tell. */
  | "part";

/** How the command of a step has ended, or the `watchdog run` around it. */
export type StepEnd =
  | AttemptEnd
  | ({ readonly kind: "run-failed" } & EndOfRun)
  /** Somebody has ended that run, and it says so. */
  | ({ readonly kind: "run-stopped" } & EndOfRun);

interface EndOfRun {
  /** Of `watchdog run`. */
  readonly status: number;
  /** `all`: a check of its output did not call it good. */
  readonly work: Work;
}

export type ArtifactReason = Extract<
  StepReason,
  "artifact-missing" | "artifact-empty" | "artifact-stale" | "artifact-unreadable"
>;

/** What the step has left, all its artifacts together. */
export type StepArtifacts =
  | { readonly kind: "good"; readonly artifacts: readonly ArtifactRecord[] }
  | { readonly kind: "bad"; readonly because: ArtifactReason; readonly detail: string };

/** Whether one artifact is as a step must leave it. */
export type FoundArtifact =
  | { readonly kind: "good"; readonly artifact: Omit<ArtifactRecord, "step"> }
  | { readonly kind: "bad"; readonly because: ArtifactReason; readonly detail: string };

/** The first that is not as it should be speaks for all. */
export function gatherArtifacts(step: string, found: readonly FoundArtifact[]): StepArtifacts {
  const artifacts: ArtifactRecord[] = [];
  for (const each of found) {
    if (each.kind === "bad") return each;
    artifacts.push({ step, ...each.artifact });
  }
  return { kind: "good", artifacts };
}

export interface EndedStep {
  readonly end: StepEnd;
  /** We were told to end it, before it had ended. */
  readonly isStopped: boolean;
  readonly sideEffects: SideEffects;
  /** Undefined: nobody looked, because its command did not call its work good. */
  readonly artifacts: StepArtifacts | undefined;
  readonly backoff: Backoff;
  /** Counts this attempt. */
  readonly attempts: BackoffState;
}

export type EndReason = Extract<
  StepReason,
  | "exited"
  | "killed-by-signal"
  | "timeout"
  | "not-found"
  | "not-executable"
  | "not-started"
  | "run-failed"
  | "stopped"
  | "settled-not-happened"
  | ArtifactReason
>;

export type StepDecision =
  | {
      readonly kind: "done";
      readonly because: "exited";
      readonly artifacts: readonly ArtifactRecord[];
    }
  | {
      readonly kind: "failed";
      readonly because: EndReason;
      /** As a shell would show it: not 0. */
      readonly status: number;
      readonly detail: string | undefined;
    }
  /** Of an unsafe step nobody knows; one without side effects was told to stop, or we were. */
  | { readonly kind: "interrupted"; readonly because: EndReason }
  /**
   * The attempt has failed, which is to be written before the wait: who is killed while he waits
   * has left nothing in the middle.
   */
  | {
      readonly kind: "retry";
      readonly because: EndReason;
      readonly status: number;
      readonly detail: string | undefined;
      readonly delayMs: number;
      /** Counts the attempt that is waited for. */
      readonly attempts: BackoffState;
    };

export function decideStepEnd(ended: EndedStep, chance: Chance): StepDecision {
  const { end, artifacts, sideEffects } = ended;
  const happened = workOf(end);
  if (ended.isStopped && happened !== "none") return { kind: "interrupted", because: "stopped" };
  // An unsafe one that was stopped before it began may begin without a question.
  const isUnbegun = happened === "none" && sideEffects === "unsafe";
  if (end.kind === "run-stopped" && !isUnbegun) return { kind: "interrupted", because: "stopped" };
  const isGood = end.kind === "exited" && end.code === EXIT.ok;
  if (isGood && artifacts?.kind === "good") {
    return { kind: "done", because: "exited", artifacts: artifacts.artifacts };
  }
  const failure = isGood ? describeMissing(artifacts) : describeEnd(end);
  if (sideEffects === "none") return decideAgain(ended, failure, chance);
  if (happened === "part") {
    const because = failure.because === "exited" ? "killed-by-signal" : failure.because;
    return { kind: "interrupted", because };
  }
  // Its command has called its work good: a second time would be the harm.
  if (happened === "all") return { kind: "failed", ...failure };
  return decideAgain(ended, failure, chance);
}

/**
 * The same for an interrupted step of which its `settle` says at once that it has not happened: as
 * if its command had said so.
 */
export function decideNotHappened(
  ended: EndedStep,
  chance: Chance,
): Extract<StepDecision, { kind: "failed" | "retry" }> {
  return decideAgain(ended, { ...describeEnd(ended.end), because: "settled-not-happened" }, chance);
}

interface Failure {
  readonly because: EndReason;
  readonly status: number;
  readonly detail: string | undefined;
}

function describeMissing(artifacts: StepArtifacts | undefined): Failure {
  const detail = artifacts?.kind === "bad" ? artifacts.detail : "nobody looked for its artifacts";
  const because = artifacts?.kind === "bad" ? artifacts.because : "artifact-unreadable";
  return { because, status: EXIT.bad_output, detail };
}

function describeEnd(end: StepEnd): Failure {
  const detail = undefined;
  if (end.kind === "run-failed" || end.kind === "run-stopped") {
    // Such as a dependency that was down: a resume need not ask what has happened.
    const because = end.work === "none" ? "not-started" : "run-failed";
    return { because, status: end.status, detail };
  }
  return { because: REASONS[reasonKey(end)], status: statusOf(end), detail };
}

function reasonKey(end: AttemptEnd): keyof typeof REASONS {
  return end.kind === "not-started" ? end.because : end.kind;
}

const REASONS = {
  exited: "exited",
  signaled: "killed-by-signal",
  "timed-out": "timeout",
  "not-found": "not-found",
  "not-executable": "not-executable",
  system: "not-started",
} as const satisfies Record<string, EndReason>;

function decideAgain(
  ended: EndedStep,
  failure: Failure,
  chance: Chance,
): Extract<StepDecision, { kind: "failed" | "retry" }> {
  const isOnRequest = ended.isStopped || ended.end.kind === "run-stopped";
  if (isOnRequest || NEVER_RETRIED.includes(failure.status)) {
    return { kind: "failed", ...failure };
  }
  const next = decideNextAttempt(ended.backoff, ended.attempts, chance);
  if (next.kind === "exhausted") return { kind: "failed", ...failure };
  return { kind: "retry", ...failure, delayMs: next.delayMs, attempts: next.state };
}

function workOf(end: StepEnd): Work {
  switch (end.kind) {
    case "exited":
      if (end.code === EXIT.ok) return "all";
      return isDeathShown(end.code) ? "part" : "failed";
    case "not-started":
      return "none";
    case "signaled":
    case "timed-out":
      return "part";
    case "run-failed":
    case "run-stopped":
      return end.work;
  }
}

/** SIGRTMAX of x64 and arm64 (signal(7)). */
const LAST_SIGNAL = 64;

/**
 * A shell ends with 128+N where the command that it waited for has died of signal N: what ran in
 * the shell has said nothing itself.
 */
export function isDeathShown(status: number): boolean {
  return status > 128 && status <= 128 + LAST_SIGNAL;
}

/** What `watchdog run` around a command has told of it (its result file). */
export interface NestedRun {
  /** As its record says; undefined: it told nothing, because it was killed with its guard. */
  readonly outcome: OutcomeName | "abandoned" | undefined;
  /** With which it left, 128+N where it died of signal N. */
  readonly status: number;
  readonly wasStarted: boolean;
  /** Of the command; undefined: not known. */
  readonly end: CommandEnd | undefined;
}

export function endOfNestedRun(run: NestedRun): StepEnd {
  const { outcome, end } = run;
  switch (outcome) {
    case "ok":
      return { kind: "exited", code: EXIT.ok };
    case "failed":
    case "signaled":
      return end === undefined || isSuccess(end) ? failRun(run, "part") : end;
    case "timeout":
    case "idle_timeout":
      return { kind: "timed-out" };
    case "not_found":
      return { kind: "not-started", because: "not-found" };
    case "not_executable":
      return { kind: "not-started", because: "not-executable" };
    case "bad_output":
      return failRun(run, workOfBadOutput(end));
    case "stopped":
      return stopRun(run);
    default:
      return failRun(run, isUnbegun(run) ? "none" : "part");
  }
}

/** As of a command that dies of TERM, by which a run is told to end. */
export const STOPPED_STATUS = 128 + SIGTERM;

/** Outcomes by which a run that has lived to its end can say that it has started nothing. */
const MAY_BE_UNBEGUN: readonly NestedRun["outcome"][] = [
  "stopped",
  "dependency_down",
  "locked",
  "config_error",
  "lease_lost",
  "wrapper_error",
];

/** Of one that was killed its guard tells, which may not have heard of the command yet. */
function isUnbegun({ outcome, wasStarted }: NestedRun): boolean {
  return !wasStarted && MAY_BE_UNBEGUN.includes(outcome);
}

/** The run may have been ended for the items that have failed. */
function workOfBadOutput(end: CommandEnd | undefined): Work {
  return end?.kind === "exited" && !isDeathShown(end.code) ? "all" : "part";
}

/** Of a command whose options do not count 0 as a success: it must not become one here. */
function isSuccess(end: CommandEnd): boolean {
  return end.kind === "exited" && end.code === EXIT.ok;
}

/** Its command may have ended with 0 when it was told to end. */
function stopRun(run: NestedRun): StepEnd {
  const status = run.status === EXIT.ok ? STOPPED_STATUS : run.status;
  return { kind: "run-stopped", status, work: isUnbegun(run) ? "none" : "part" };
}

function failRun({ status }: NestedRun, work: Work): StepEnd {
  return { kind: "run-failed", status: status === EXIT.ok ? EXIT.wrapper_error : status, work };
}
