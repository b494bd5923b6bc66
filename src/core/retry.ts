/**
 * `watchdog retry`: what follows from an attempt that has ended, and how all of it ends. Pure;
 * clock and dice are handed in.
 *
 * An attempt counts by the status that a shell would show: 124 where its limit has ended it, 128+N
 * where signal N has.
 *
 * Always: success ends it; so does a request to end; 126, 127 and 64 are never tried again, because
 * the same command line fails the same way; there are never more attempts than allowed, and no wait
 * reaches beyond the total time.
 */
import { type BackoffEnd, type BackoffState, type Chance, decideNextAttempt } from "./backoff.ts";
import { EXIT } from "./errors.ts";
import { decideOutcome, type Outcome, outcomeOfEarlyStop, outcomeOfRefusal } from "./outcome.ts";
import type { RetryOptions } from "./retry-options.ts";
import type { CommandEnd } from "./run-state.ts";
import { SIGHUP, SIGINT, SIGQUIT, SIGTERM } from "./signals.ts";
import { type MonotonicAt, spanMs } from "./time.ts";

export type AttemptEnd =
  | CommandEnd
  /** Its limit has ended it. */
  | { readonly kind: "timed-out" }
  | {
      readonly kind: "not-started";
      readonly because: "not-found" | "not-executable" | "system";
    };

/** What a person has asked for, as far as it decides. */
export type RetryRules = Pick<RetryOptions, "backoff" | "retryOn" | "noRetryOn">;

export interface EndedAttempt {
  readonly end: AttemptEnd;
  /** The signal by which somebody has asked us to end; undefined: nobody has. */
  readonly askedBy: number | undefined;
}

export interface AttemptFacts extends EndedAttempt {
  /** Counts this attempt. */
  readonly state: BackoffState;
}

/** Why nothing follows although more would be allowed. */
export type DoneReason =
  | "succeeded"
  | "asked-to-end"
  /** 126, 127, 64. */
  | "never-retried"
  /** `--no-retry-on` names its status. */
  | "excluded"
  /** `--retry-on` does not. */
  | "not-listed";

export type AgainReason = "failed" | "signaled" | "timed-out" | "not-started";

export type AttemptDecision =
  | { readonly kind: "done"; readonly because: DoneReason }
  | {
      readonly kind: "again";
      readonly because: AgainReason;
      readonly delayMs: number;
      /** Counts the attempt that is waited for. */
      readonly state: BackoffState;
    }
  | { readonly kind: "given-up"; readonly because: BackoffEnd };

/** A command line that is wrong does not get better. */
export const NEVER_RETRIED: readonly number[] = [
  EXIT.not_executable,
  EXIT.not_found,
  EXIT.usage_error,
];

export function decideAfterAttempt(
  facts: AttemptFacts,
  rules: RetryRules,
  chance: Chance,
): AttemptDecision {
  const { end, state } = facts;
  if (facts.askedBy !== undefined) return { kind: "done", because: "asked-to-end" };
  const refused = refuseAgain(end, rules);
  if (refused !== undefined) return { kind: "done", because: refused };
  const next = decideNextAttempt(rules.backoff, state, chance);
  if (next.kind === "exhausted") return { kind: "given-up", because: next.because };
  return { kind: "again", because: describeFailure(end), delayMs: next.delayMs, state: next.state };
}

function refuseAgain(end: AttemptEnd, { retryOn, noRetryOn }: RetryRules): DoneReason | undefined {
  const status = statusOf(end);
  if (status === EXIT.ok) return "succeeded";
  if (NEVER_RETRIED.includes(status)) return "never-retried";
  if (noRetryOn.includes(status)) return "excluded";
  return retryOn === undefined || retryOn.includes(status) ? undefined : "not-listed";
}

function describeFailure(end: AttemptEnd): AgainReason {
  return end.kind === "exited" ? "failed" : end.kind;
}

/** As a shell shows it. */
export function statusOf(end: AttemptEnd): number {
  switch (end.kind) {
    case "exited":
      return end.code;
    case "signaled":
      return 128 + end.signal;
    case "timed-out":
      return EXIT.timeout;
    case "not-started":
      return EXIT[NOT_STARTED[end.because]];
  }
}

const NOT_STARTED = {
  "not-found": "not_found",
  "not-executable": "not_executable",
  system: "wrapper_error",
} as const;

/** A wake-up may come late by this; who was stopped meanwhile has lost the attempt. */
export const LATEST_WAKE_MS = 1_000;

/** Whether the attempt that was waited for may still begin: none does after the total time. */
export function mayBegin(
  { backoff }: RetryRules,
  state: BackoffState,
  nowMs: MonotonicAt,
): boolean {
  if (state.attempts <= 1) return true;
  return spanMs(state.startedAt, nowMs) <= backoff.maxElapsedMs + LATEST_WAKE_MS;
}

/** By these somebody asks for the end of all attempts, whatever the command makes of them. */
const ASKING: readonly number[] = [SIGTERM, SIGINT, SIGQUIT, SIGHUP];

/**
 * Which signal has asked for the end, of those that came to us during an attempt and were passed
 * on: one of the four, or the one that the command has died of.
 */
export function findAsking(end: AttemptEnd, signals: ReadonlySet<number>): number | undefined {
  const asking = ASKING.find((signal) => signals.has(signal));
  if (asking !== undefined) return asking;
  return end.kind === "signaled" && signals.has(end.signal) ? end.signal : undefined;
}

/** What a circuit is told of an attempt; `nothing`: it says nothing about the dependency. */
export function decideCounted({ end, askedBy }: EndedAttempt): "succeeded" | "failed" | "nothing" {
  if (end.kind === "exited" && end.code === EXIT.ok) return "succeeded";
  if (askedBy !== undefined || end.kind === "not-started") return "nothing";
  return NEVER_RETRIED.includes(statusOf(end)) ? "nothing" : "failed";
}

/** How the last attempt ends all of it. */
export function outcomeOfAttempt({ end, askedBy }: EndedAttempt): Outcome {
  if (end.kind === "not-started") return outcomeOfRefusal(end.because);
  const isTimedOut = end.kind === "timed-out";
  const outcome = decideOutcome({
    end: isTimedOut ? undefined : end,
    limit: isTimedOut ? "timeout" : undefined,
    hasLostLease: false,
    dependency: undefined,
    itemsFailure: undefined,
    finalItemsFailure: undefined,
    stop: undefined,
    seen: [],
    successExitCodes: [EXIT.ok],
    hasLostOutput: false,
    failedChecks: [],
  });
  if (isTimedOut || askedBy === undefined || !ASKING.includes(askedBy)) return outcome;
  return { ...outcome, name: "stopped", because: outcomeOfEarlyStop(askedBy).because };
}
