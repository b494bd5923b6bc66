/**
 * How a run ended, in one word, and what watchdog's own exit status is: decided from facts, in the
 * order of precedence that the README states. The command's own status passes through untouched.
 */
import type { CheckReason } from "./checks.ts";
import { EXIT } from "./errors.ts";
import type { ItemsFailure } from "./item-counts.ts";
import type { JobReason, JobVerdict } from "./job-verdict.ts";
import type { CommandEnd, DependencyFailure, LimitName, StopRequest } from "./run-state.ts";
import { SIGHUP, SIGINT, SIGQUIT } from "./signals.ts";

export type OutcomeName =
  | "ok"
  | "failed"
  | "signaled"
  | "unknown"
  | "stopped"
  | "timeout"
  | "idle_timeout"
  | "bad_output"
  | "dependency_down"
  | "locked"
  | "config_error"
  | "lease_lost"
  | "not_found"
  | "not_executable"
  | "wrapper_error";

export type OutcomeReason =
  | "exited"
  | "killed-by-signal"
  | StopRequest
  | LimitName
  | "command-not-found"
  | "command-not-executable"
  | "command-not-started"
  | "tree-not-ended"
  | "output-not-written"
  | CheckReason
  | "lease-held"
  | "lease-unknowable"
  | "lease-unusable"
  | "lease-not-ours"
  | "probe-unusable"
  | DependencyFailure["because"]
  | ItemsFailure["because"]
  | JobReason
  | StartRefusal;

/** Why a dependency kept the command from being started. */
export type StartRefusal =
  /** Its circuit is open, and no trial is due. */
  | "circuit-open"
  /** A trial was made of an open circuit, and failed. */
  | "trial-failed"
  /** `--probe-startup-wait` was over. */
  | "startup-wait"
  | "max-attempts"
  | "max-elapsed";

/** How watchdog itself leaves: with a number, or by the signal that ended the command. */
export type Leaving =
  | { readonly kind: "status"; readonly code: number }
  | { readonly kind: "signal"; readonly signal: number };

export interface Outcome {
  readonly name: OutcomeName;
  readonly because: OutcomeReason;
  /** Whose status it is. */
  readonly statusOf: "command" | "watchdog";
  readonly leaving: Leaving;
}

export interface OutcomeFacts {
  readonly end: CommandEnd | undefined;
  readonly limit: LimitName | undefined;
  /** The record of a lease of ours named another run. */
  readonly hasLostLease: boolean;
  /** What the run was ended for. */
  readonly dependency: DependencyFailure | undefined;
  /** The bound that the job's items had passed when the run was ended for it. */
  readonly itemsFailure: ItemsFailure | undefined;
  /** The same as of the end: counts only where the command itself said that all is well. */
  readonly finalItemsFailure: ItemsFailure | undefined;
  readonly stop: StopRequest | undefined;
  /** Signals that the kernel delivered to the whole group (keys, hang-ups). */
  readonly seen: readonly number[];
  readonly successExitCodes: readonly number[];
  /**
   * The copy of the output met an error of its destination (a full disk), which the command would
   * have met itself.
   */
  readonly hasLostOutput: boolean;
  /** Why checks have failed, in their order; empty while nobody has looked. */
  readonly failedChecks: readonly CheckReason[];
  /** What the runner of a job has told; undefined: it is no job of steps, or it told nothing. */
  readonly verdict?: JobVerdict | undefined;
}

export function decideOutcome(facts: OutcomeFacts): Outcome {
  const { end, limit } = facts;
  if (facts.hasLostLease) return ofWatchdog("lease_lost", "lease-not-ours", EXIT.lease_lost);
  if (facts.dependency !== undefined) return outcomeOfDependency(facts.dependency.because);
  if (limit !== undefined) {
    const name = limit === "idle" ? "idle_timeout" : "timeout";
    return ofWatchdog(name, limit, EXIT.timeout);
  }
  if (facts.itemsFailure !== undefined) return outcomeOfItems(facts.itemsFailure);
  // Members outlived even KILL and the main command is one of them: nobody knows its status.
  if (end === undefined) return ofWatchdog("wrapper_error", "tree-not-ended", EXIT.wrapper_error);
  return outcomeOfEnd(end, facts);
}

/** No limit and no loss has decided: how the command ended, and what is left of its work. */
function outcomeOfEnd(end: CommandEnd, facts: OutcomeFacts): Outcome {
  const leaving = leaveLike(end);
  const stop = facts.stop ?? stopByKey(end, facts.seen);
  if (stop !== undefined) {
    return { name: "stopped", because: stop, statusOf: "command", leaving };
  }
  if (end.kind === "signaled") {
    return { name: "signaled", because: "killed-by-signal", statusOf: "command", leaving };
  }
  const told = facts.verdict === undefined ? undefined : outcomeOfVerdict(facts.verdict);
  if (told !== undefined && told.name !== "ok") return told;
  const isGood = facts.successExitCodes.includes(end.code);
  const unlike = isGood ? outcomeOfWork(facts) : undefined;
  if (unlike !== undefined) return unlike;
  if (isGood && told !== undefined) return told;
  return { name: isGood ? "ok" : "failed", because: "exited", statusOf: "command", leaving };
}

/** The command says that all is well; undefined: so it is. */
function outcomeOfWork(facts: OutcomeFacts): Outcome | undefined {
  const { finalItemsFailure, hasLostOutput } = facts;
  const [failed] = facts.failedChecks;
  if (hasLostOutput) return ofWatchdog("wrapper_error", "output-not-written", EXIT.wrapper_error);
  if (finalItemsFailure !== undefined) return outcomeOfItems(finalItemsFailure);
  return failed === undefined ? undefined : ofWatchdog("bad_output", failed, EXIT.bad_output);
}

/**
 * A key or a hang-up counts as the reason only if the command died of it, or says so in its status.
 */
function stopByKey(end: CommandEnd, seen: readonly number[]): StopRequest | undefined {
  const signal = end.kind === "signaled" ? end.signal : end.code - 128;
  return seen.includes(signal) ? STOPS.get(signal) : undefined;
}

function leaveLike(end: CommandEnd): Leaving {
  return end.kind === "exited"
    ? { kind: "status", code: end.code }
    : { kind: "signal", signal: end.signal };
}

function ofWatchdog(name: OutcomeName, because: OutcomeReason, code: number): Outcome {
  return { name, because, statusOf: "watchdog", leaving: { kind: "status", code } };
}

function outcomeOfVerdict({ outcome, because, statusOf, status }: JobVerdict): Outcome {
  return { name: outcome, because, statusOf, leaving: { kind: "status", code: status } };
}

/** A request to end came before the command was started: watchdog leaves as it asks. */
export function outcomeOfEarlyStop(signal: number): Outcome {
  const because = STOPS.get(signal) ?? "terminated";
  return { name: "stopped", because, statusOf: "watchdog", leaving: { kind: "signal", signal } };
}

const STOPS: ReadonlyMap<number, StopRequest> = new Map([
  [SIGINT, "interrupted"],
  [SIGQUIT, "quit"],
  [SIGHUP, "hung-up"],
]);

/** A dependency was down, so that the command was stopped, or not started. */
export function outcomeOfDependency(because: DependencyFailure["because"] | StartRefusal): Outcome {
  return ofWatchdog("dependency_down", because, EXIT.dependency_down);
}

function outcomeOfItems({ because }: ItemsFailure): Outcome {
  return ofWatchdog("bad_output", because, EXIT.bad_output);
}

/** What is to be probed cannot be, as it is written: a person must change something. */
export function outcomeOfUnusableProbe(): Outcome {
  return ofWatchdog("config_error", "probe-unusable", EXIT.config_error);
}

/** The lease is held by another run. @param code  `--conflict-exit-code` */
export function outcomeOfConflict(code: number): Outcome {
  return ofWatchdog("locked", "lease-held", code);
}

/** Nobody can tell whether the lease is free: a person must look. */
export function outcomeOfUnknowable(): Outcome {
  return ofWatchdog("config_error", "lease-unknowable", EXIT.config_error);
}

/** The system did not let the lease be had: EACCES, ENOSPC, EMFILE … */
export function outcomeOfUnusable(): Outcome {
  return ofWatchdog("wrapper_error", "lease-unusable", EXIT.wrapper_error);
}

/** A command that could not be started: 126 and 127 as a shell, else 125. */
export function outcomeOfRefusal(because: "not-found" | "not-executable" | "system"): Outcome {
  if (because === "not-found") return ofWatchdog("not_found", "command-not-found", EXIT.not_found);
  if (because === "not-executable") {
    return ofWatchdog("not_executable", "command-not-executable", EXIT.not_executable);
  }
  return ofWatchdog("wrapper_error", "command-not-started", EXIT.wrapper_error);
}
