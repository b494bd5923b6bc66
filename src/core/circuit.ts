/**
 * The circuit of a dependency: what follows from an answer, or from the time, for all who need it.
 * Pure; refuses to know who probes, who is told and where it is kept. Clock and dice are handed in.
 *
 * Closed: requests pass and are counted. Open: none passes until the wait is over. Half-open: one
 * trial at a time, which decides (M. Nygard, "Release It!", 2007; M. Fowler, "CircuitBreaker",
 * 2014). Permanent: the bound of the backoff is reached, and whoever waited gives up.
 *
 * Always: it opens only at a failure that reaches a threshold; an answer counts while it is closed,
 * and else only if it is that of the trial, so that a late one neither opens nor closes anything;
 * there is one trial at most. Permanent is permanent for those who wait: no wait follows it. Who
 * comes later may try once when a cap's time is over, or last night's fault would refuse every
 * night to come; if that fails too, it is permanent as before.
 */
import { decideNextAttempt, startBackoff } from "./backoff.ts";
import type { Backoff, BackoffEnd, BackoffState, Chance } from "./backoff.ts";
import type { MonotonicAt } from "./time.ts";

/** So many failures among the last so many answers open the circuit too. */
export interface FailureWindow {
  readonly failures: number;
  readonly size: number;
}

export interface CircuitSettings {
  /** In a row. */
  readonly failureThreshold: number;
  readonly failureWindow: FailureWindow | undefined;
  /** In a row, of trials. */
  readonly successThreshold: number;
  readonly backoff: Backoff;
}

export interface ClosedCircuit {
  readonly kind: "closed";
  readonly consecutiveFailures: number;
  /** Oldest first, true for a failure; empty where no window is asked for. */
  readonly window: readonly boolean[];
}

interface Broken {
  readonly openedAt: MonotonicAt;
  readonly backoff: BackoffState;
}

export interface OpenCircuit extends Broken {
  readonly kind: "open";
  /** From then on a trial is let through. */
  readonly retryAt: MonotonicAt;
}

export interface HalfOpenCircuit extends Broken {
  readonly kind: "half-open";
  /** Of trials, since it is half-open. */
  readonly successes: number;
  /** Somebody was let through, and has not answered yet. */
  readonly isTrialOut: boolean;
}

export interface PermanentCircuit extends Broken {
  readonly kind: "permanent";
  readonly because: BackoffEnd;
  /** From then on somebody new may try once. */
  readonly retryAt: MonotonicAt;
}

export type CircuitState = ClosedCircuit | OpenCircuit | HalfOpenCircuit | PermanentCircuit;

/**
 * Only one prober answers for a circuit, so that in half-open its answer is that of the trial. Of
 * calls there may be many, some begun long before: each says whether it was let through as a trial.
 */
export type CircuitEvent =
  | { readonly kind: "probe-succeeded" }
  | { readonly kind: "probe-failed" }
  | { readonly kind: "call-succeeded"; readonly isTrial: boolean }
  | { readonly kind: "call-failed"; readonly isTrial: boolean }
  /** May a request be sent now? See `isAdmitted`. */
  | { readonly kind: "due" }
  /** Whoever had the trial is gone and will not answer. */
  | { readonly kind: "trial-lost" }
  | { readonly kind: "reset" };

export type CircuitReason =
  | "consecutive-failures"
  | "windowed-failures"
  | "due"
  | "trial-failed"
  | "success-threshold"
  | "reset"
  | BackoffEnd;

export interface CircuitTransition {
  readonly from: CircuitState["kind"];
  readonly to: CircuitState["kind"];
  readonly because: CircuitReason;
}

export interface CircuitDecision {
  readonly state: CircuitState;
  readonly transition: CircuitTransition | undefined;
  /** The answer to `due`; of any other event: no. */
  readonly isAdmitted: boolean;
}

export const FRESH_CIRCUIT: ClosedCircuit = {
  kind: "closed",
  consecutiveFailures: 0,
  window: [],
};

export function decideCircuit(
  state: CircuitState,
  event: CircuitEvent,
  settings: CircuitSettings,
  chance: Chance,
): CircuitDecision {
  switch (event.kind) {
    case "due":
      return decideAdmission(state, settings, chance.nowMs);
    case "trial-lost":
      return state.kind === "half-open" ? keep({ ...state, isTrialOut: false }) : keep(state);
    case "reset":
      return state.kind === "closed" ? keep(FRESH_CIRCUIT) : change(state, FRESH_CIRCUIT, "reset");
    default:
      return decideAnswer(state, event, settings, chance);
  }
}

type Answer = Exclude<CircuitEvent, { kind: "due" | "trial-lost" | "reset" }>;

function decideAnswer(
  state: CircuitState,
  event: Answer,
  settings: CircuitSettings,
  chance: Chance,
): CircuitDecision {
  const isFailure = event.kind === "probe-failed" || event.kind === "call-failed";
  if (state.kind === "closed") return decideClosed(state, isFailure, settings, chance);
  const isTrial = !("isTrial" in event) || event.isTrial;
  if (state.kind !== "half-open" || !state.isTrialOut || !isTrial) return keep(state);
  if (isFailure) return breakOff(state, state, "trial-failed", { settings, chance });
  const successes = state.successes + 1;
  return successes >= settings.successThreshold
    ? change(state, FRESH_CIRCUIT, "success-threshold")
    : keep({ ...state, successes, isTrialOut: false });
}

function decideClosed(
  state: ClosedCircuit,
  isFailure: boolean,
  settings: CircuitSettings,
  chance: Chance,
): CircuitDecision {
  const { failureThreshold, failureWindow } = settings;
  const consecutiveFailures = isFailure ? state.consecutiveFailures + 1 : 0;
  const window =
    failureWindow === undefined ? [] : [...state.window, isFailure].slice(-failureWindow.size);
  const { nowMs } = chance;
  const broken = { openedAt: nowMs, backoff: startBackoff(nowMs, 0) };
  const reached = { settings, chance };
  if (isFailure && consecutiveFailures >= failureThreshold) {
    return breakOff(state, broken, "consecutive-failures", reached);
  }
  const failures = window.filter((each) => each).length;
  if (isFailure && failureWindow !== undefined && failures >= failureWindow.failures) {
    return breakOff(state, broken, "windowed-failures", reached);
  }
  return keep({ kind: "closed", consecutiveFailures, window });
}

/** Open until the next attempt, or permanent where there is none. */
function breakOff(
  from: CircuitState,
  { openedAt, backoff }: Broken,
  because: CircuitReason,
  { settings, chance }: { readonly settings: CircuitSettings; readonly chance: Chance },
): CircuitDecision {
  const next = decideNextAttempt(settings.backoff, backoff, chance);
  if (next.kind === "exhausted") {
    const retryAt = (chance.nowMs + settings.backoff.capMs) as MonotonicAt;
    const end = next.because;
    return change(from, { kind: "permanent", because: end, openedAt, backoff, retryAt }, end);
  }
  const retryAt = (chance.nowMs + next.delayMs) as MonotonicAt;
  return change(from, { kind: "open", openedAt, backoff: next.state, retryAt }, because);
}

function decideAdmission(
  state: CircuitState,
  settings: CircuitSettings,
  nowMs: MonotonicAt,
): CircuitDecision {
  switch (state.kind) {
    case "closed":
      return { ...keep(state), isAdmitted: true };
    case "half-open":
      return { ...keep({ ...state, isTrialOut: true }), isAdmitted: !state.isTrialOut };
    case "open":
    case "permanent": {
      if (!isDue(state.retryAt, settings, nowMs)) return keep(state);
      const { openedAt, backoff } = state;
      const trial = {
        kind: "half-open",
        openedAt,
        backoff,
        successes: 0,
        isTrialOut: true,
      } as const;
      return { ...change(state, trial, "due"), isAdmitted: true };
    }
  }
}

/** An instant and a span that were added may be off by a fraction of this. */
const ROUNDING_MS = 1;

/** No wait is longer than the cap: an instant beyond it is of another clock, and nothing waits. */
function isDue(retryAt: MonotonicAt, { backoff }: CircuitSettings, nowMs: MonotonicAt): boolean {
  const restMs = retryAt - nowMs;
  return !(restMs > 0) || restMs > backoff.capMs + ROUNDING_MS;
}

function keep(state: CircuitState): CircuitDecision {
  return { state, transition: undefined, isAdmitted: false };
}

function change(from: CircuitState, to: CircuitState, because: CircuitReason): CircuitDecision {
  const transition = { from: from.kind, to: to.kind, because };
  return { state: to, transition, isAdmitted: false };
}
