/**
 * When whoever probes a circuit sends the next request, from what is known of the circuit. Pure.
 *
 * Always: while it is not closed nothing but a trial is sent, and that only when `due` would let it
 * through; never a probe less than a period after the one before, whoever made that, but for the
 * trial at the end of a wait, and where the one before was not written yet and its process is dead
 * (unwritten-probes.ts).
 */
import type { ProbeSettings } from "./probe-settings.ts";
import type { SharedCircuit } from "./shared-circuit.ts";
import type { MonotonicAt } from "./time.ts";
import { writtenEveryMs } from "./unwritten-probes.ts";

export interface ProbeSight {
  readonly circuit: SharedCircuit;
  /** wouldAdmit (circuit-change.ts). */
  readonly mayTry: boolean;
  /** The first delay, or the period after trouble of our own. */
  readonly notBeforeAt: MonotonicAt;
  readonly nowMs: MonotonicAt;
}

export type ProbePlan =
  | { readonly kind: "probe" }
  /** Ask by `due` first. */
  | { readonly kind: "try" }
  | {
      readonly kind: "wait";
      readonly because: "delay" | "period" | "open" | "trial-out";
      /** Undefined: until somebody else has done something. */
      readonly untilAt: MonotonicAt | undefined;
    };

export function decideNextProbe(sight: ProbeSight, { periodMs }: ProbeTimes): ProbePlan {
  const { circuit, mayTry, notBeforeAt, nowMs } = sight;
  const { state } = circuit;
  if (nowMs < notBeforeAt) return { kind: "wait", because: "delay", untilAt: notBeforeAt };
  if (state.kind === "open" || state.kind === "permanent") {
    return mayTry ? { kind: "try" } : { kind: "wait", because: "open", untilAt: state.retryAt };
  }
  if (state.kind === "half-open" && !mayTry) {
    return { kind: "wait", because: "trial-out", untilAt: undefined };
  }
  const isFirst = state.kind === "half-open" && state.successes === 0;
  const nextAt = isFirst ? nowMs : nextAfter(circuit, periodMs, nowMs);
  if (nowMs < nextAt) return { kind: "wait", because: "period", untilAt: nextAt };
  return { kind: state.kind === "closed" ? "probe" : "try" };
}

export type ProbeTimes = Pick<ProbeSettings, "periodMs">;

/** One that is said to come from the future is of another clock, and nothing waits for it. */
function nextAfter(
  { lastProbe }: SharedCircuit,
  periodMs: number,
  nowMs: MonotonicAt,
): MonotonicAt {
  if (lastProbe === null || lastProbe.at > nowMs) return nowMs;
  return (lastProbe.at + periodMs) as MonotonicAt;
}

const SHORTEST_POLL_MS = 100;
const LONGEST_POLL_MS = 1_000;

/** How often those who share a circuit look whether somebody else has changed it. */
export function pollMsOf({ periodMs }: ProbeTimes): number {
  return Math.min(LONGEST_POLL_MS, Math.max(SHORTEST_POLL_MS, periodMs / 2));
}

/** How often whoever probes looks, who wakes for his probes anyway. */
export function proberPollMsOf({ periodMs }: ProbeTimes): number {
  return Math.min(LONGEST_POLL_MS, Math.max(SHORTEST_POLL_MS, periodMs));
}

/** Beyond what is due: for a probe that ends late, and a machine that is busy. */
const SILENCE_MS = 5_000;

export type SilenceTimes = Pick<ProbeSettings, "periodMs" | "timeoutMs" | "backoff">;

export interface SilenceSight extends Omit<ProbeSight, "notBeforeAt"> {
  /** Since when the same one has the lock, or wants it, as far as this process has seen. */
  readonly sinceAt: MonotonicAt;
}

/**
 * Whether whoever has the lock of a circuit should have been heard of: he may be stopped, by a key
 * or by a pause of the run around him, and then nobody would probe for as long as he is. In doubt
 * he is not: whoever waits between attempts at his start, or for a trial that is out.
 */
export function isSilent(sight: SilenceSight, times: SilenceTimes): boolean {
  const { nowMs, sinceAt } = sight;
  const graceMs = times.timeoutMs + SILENCE_MS;
  return nowMs > sinceAt + graceMs && nowMs > dueFrom(sight, times) + graceMs;
}

/**
 * Whether whoever wants to watch a circuit should have asked by now: unlike a start it is never in
 * a backoff while that is closed.
 */
export function isWatchSilent(sight: SilenceSight, times: SilenceTimes): boolean {
  return isSilent(sight, { ...times, backoff: { ...times.backoff, capMs: 0 } });
}

function dueFrom({ circuit, mayTry, nowMs, sinceAt }: SilenceSight, times: SilenceTimes): number {
  const { state, lastProbe } = circuit;
  if (state.kind === "half-open" && !mayTry) return Infinity;
  if (state.kind === "open" || state.kind === "permanent") return mayTry ? state.retryAt : Infinity;
  const isKnown = lastProbe !== null && lastProbe.at <= nowMs;
  const { periodMs, backoff } = times;
  // A start that has not been answered well waits by its backoff.
  const mayStart = state.kind === "closed" && (!isKnown || lastProbe.because !== "good");
  const longestMs = mayStart ? Math.max(periodMs, backoff.capMs) : periodMs;
  // Good answers are not written one by one.
  const waitMs = state.kind === "closed" && !mayStart ? writtenEveryMs(times) : longestMs;
  return (isKnown ? lastProbe.at : sinceAt) + waitMs;
}
