/**
 * How a run ended, in one word, and what watchdog's own exit status is: decided from facts, in the
 * order of precedence that the README states. The command's own status passes through untouched.
 */
import { EXIT } from "./errors.ts";
import type { CommandEnd, LimitName, StopRequest } from "./run-state.ts";
import { SIGHUP, SIGINT, SIGQUIT } from "./signals.ts";

export type OutcomeName =
  | "ok"
  | "failed"
  | "signaled"
  | "stopped"
  | "timeout"
  | "idle_timeout"
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
  | "output-not-written";

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
  readonly stop: StopRequest | undefined;
  /** Signals that the kernel delivered to the whole group (keys, hang-ups). */
  readonly seen: readonly number[];
  readonly successExitCodes: readonly number[];
  /**
   * The copy of the output met an error of its destination (a full disk), which the command would
   * have met itself.
   */
  readonly hasLostOutput: boolean;
}

export function decideOutcome(facts: OutcomeFacts): Outcome {
  const { end, limit } = facts;
  if (limit !== undefined) {
    const name = limit === "idle" ? "idle_timeout" : "timeout";
    return ofWatchdog(name, limit, EXIT.timeout);
  }
  // Members outlived even KILL and the main command is one of them: nobody knows its status.
  if (end === undefined) return ofWatchdog("wrapper_error", "tree-not-ended", EXIT.wrapper_error);
  const leaving = leaveLike(end);
  const stop = facts.stop ?? stopByKey(end, facts.seen);
  if (stop !== undefined) {
    return { name: "stopped", because: stop, statusOf: "command", leaving };
  }
  if (end.kind === "signaled") {
    return { name: "signaled", because: "killed-by-signal", statusOf: "command", leaving };
  }
  const isGood = facts.successExitCodes.includes(end.code);
  if (isGood && facts.hasLostOutput) {
    return ofWatchdog("wrapper_error", "output-not-written", EXIT.wrapper_error);
  }
  return { name: isGood ? "ok" : "failed", because: "exited", statusOf: "command", leaving };
}

/**
 * A key or a hang-up counts as the reason only if the command died of it, or says so in its status.
 */
function stopByKey(end: CommandEnd, seen: readonly number[]): StopRequest | undefined {
  const signal = end.kind === "signaled" ? end.signal : end.code - 128;
  if (!seen.includes(signal)) return undefined;
  if (signal === SIGINT) return "interrupted";
  if (signal === SIGQUIT) return "quit";
  return signal === SIGHUP ? "hung-up" : undefined;
}

function leaveLike(end: CommandEnd): Leaving {
  return end.kind === "exited"
    ? { kind: "status", code: end.code }
    : { kind: "signal", signal: end.signal };
}

function ofWatchdog(name: OutcomeName, because: OutcomeReason, code: number): Outcome {
  return { name, because, statusOf: "watchdog", leaving: { kind: "status", code } };
}

/** A command that could not be started: 126 and 127 as a shell, else 125. */
export function outcomeOfRefusal(because: "not-found" | "not-executable" | "system"): Outcome {
  if (because === "not-found") return ofWatchdog("not_found", "command-not-found", EXIT.not_found);
  if (because === "not-executable") {
    return ofWatchdog("not_executable", "command-not-executable", EXIT.not_executable);
  }
  return ofWatchdog("wrapper_error", "command-not-started", EXIT.wrapper_error);
}
