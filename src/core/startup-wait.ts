/**
 * The start of a job that waits for a dependency: go on, give up, ask, or wait. Pure; the clock and
 * the dice are handed in.
 *
 * Attempts are those of everybody: whoever waits beside the one that probes counts each probe that
 * he sees being made as one of his own, so that many together make no more of them than one alone.
 *
 * Always: nothing is asked but by whoever has the lock of the circuit; while it is not closed,
 * nothing but a trial that is due is asked, and a start has one alone to fail with; the first
 * attempt may be made however short the time is; no attempt begins after it, and the last one has
 * its whole timeout: one that is cut short would say nothing about the other side.
 */
import { type BackoffEnd, type BackoffState, decideNextAttempt, startBackoff } from "./backoff.ts";
import type { StartRefusal } from "./outcome.ts";
import type { ProbeSettings } from "./probe-settings.ts";
import type { SharedCircuit } from "./shared-circuit.ts";
import type { MonotonicAt } from "./time.ts";
import { writtenEveryMs } from "./unwritten-probes.ts";

export interface StartupState {
  readonly startedAt: MonotonicAt;
  readonly backoff: BackoffState;
  /** No probe of our own before. */
  readonly nextAt: MonotonicAt;
  /** As they were when they were last looked at. */
  readonly probes: number;
  /** When it began, or since a reset. */
  readonly goodProbes: number;
}

export interface StartupSight {
  readonly circuit: SharedCircuit;
  /** We have its lock: nobody else probes. */
  readonly isProber: boolean;
  /** wouldAdmit (circuit-change.ts). */
  readonly mayTry: boolean;
  /** Attempts of ours since the last look that ended by trouble of our own, and were not noted. */
  readonly troubles: number;
  readonly nowMs: MonotonicAt;
  readonly random: number;
}

export type StartupDecision =
  | { readonly kind: "ready"; readonly because: "answered" | "fresh-answer" }
  | { readonly kind: "failed"; readonly because: StartRefusal }
  | {
      readonly kind: "probe";
      readonly because: "closed" | "due";
      readonly state: StartupState;
    }
  | {
      readonly kind: "wait";
      readonly because: "backoff" | "other-prober" | "trial-out" | "between-trials";
      readonly untilAt: MonotonicAt;
      readonly state: StartupState;
    };

export type StartupSettings = Pick<
  ProbeSettings,
  "periodMs" | "timeoutMs" | "startupWaitMs" | "backoff"
>;

export function beginStartup(circuit: SharedCircuit, nowMs: MonotonicAt): StartupState {
  return {
    startedAt: nowMs,
    // The first attempt is made at once, and no attempt is allowed beyond the first one's number.
    backoff: startBackoff(nowMs, 1),
    nextAt: nowMs,
    probes: circuit.probes,
    goodProbes: circuit.goodProbes,
  };
}

export function decideStartup(
  before: StartupState,
  sight: StartupSight,
  settings: StartupSettings,
): StartupDecision {
  const { circuit, isProber, nowMs } = sight;
  if (circuit.state.kind !== "closed") return decideBroken(before, sight, settings);
  if (circuit.goodProbes > before.goodProbes) return { kind: "ready", because: "answered" };
  if (!isProber && isFresh(circuit, settings, nowMs)) {
    return { kind: "ready", because: "fresh-answer" };
  }
  const counted = countAttempts(before, sight, settings);
  if (counted.kind === "failed") return counted;
  const { state } = counted;
  const end = endOf(before, settings);
  if (isProber) {
    return nowMs >= state.nextAt
      ? { kind: "probe", because: "closed", state }
      : { kind: "wait", because: "backoff", untilAt: state.nextAt, state };
  }
  return nowMs >= end.at
    ? { kind: "failed", because: end.because }
    : { kind: "wait", because: "other-prober", untilAt: end.at, state };
}

/** Open, half-open or permanent: a trial decides, whoever makes it. */
function decideBroken(
  before: StartupState,
  sight: StartupSight,
  settings: StartupSettings,
): StartupDecision {
  const { circuit, isProber, mayTry, nowMs } = sight;
  const isTried = circuit.probes > before.probes;
  const isHalfOpen = circuit.state.kind === "half-open";
  // Another wait may be over at once, by chance: one trial is what a start has.
  if (!isHalfOpen && isTried) return { kind: "failed", because: "trial-failed" };
  if (!isHalfOpen && !mayTry) return { kind: "failed", because: "circuit-open" };
  const counted = countTroubles(before, sight, settings);
  if (counted.kind === "failed") return counted;
  const nextAt = isTried ? ((nowMs + settings.periodMs) as MonotonicAt) : counted.state.nextAt;
  const state = { ...counted.state, nextAt, probes: circuit.probes };
  const { at: endAt } = endOf(before, settings);
  const isWaiting = !isProber || !mayTry || nowMs < nextAt;
  if (!isWaiting) return { kind: "probe", because: "due", state };
  if (nowMs >= endAt) return { kind: "failed", because: "circuit-open" };
  if (!isProber) return { kind: "wait", because: "other-prober", untilAt: endAt, state };
  return mayTry
    ? { kind: "wait", because: "between-trials", untilAt: nextAt, state }
    : { kind: "wait", because: "trial-out", untilAt: endAt, state };
}

/**
 * The newest answer of somebody who goes on asking, and it is a good one. One that is not good
 * would have been written at once; of the good ones not each is.
 */
function isFresh(
  { lastGoodAt, lastProbe }: SharedCircuit,
  settings: StartupSettings,
  nowMs: MonotonicAt,
): boolean {
  if (lastGoodAt === null || lastProbe?.because !== "good") return false;
  const ageMs = nowMs - lastGoodAt;
  return ageMs >= 0 && ageMs <= writtenEveryMs(settings) + settings.timeoutMs;
}

type Counted =
  | { readonly kind: "counted"; readonly state: StartupState }
  | { readonly kind: "failed"; readonly because: StartRefusal };

function countAttempts(
  before: StartupState,
  sight: StartupSight,
  settings: StartupSettings,
): Counted {
  const { circuit, troubles } = sight;
  const seen = Math.max(0, circuit.probes - before.probes);
  const state = {
    ...before,
    probes: circuit.probes,
    goodProbes: Math.min(before.goodProbes, circuit.goodProbes),
  };
  return count(state, seen + troubles, { sight, settings });
}

function countTroubles(
  before: StartupState,
  sight: StartupSight,
  settings: StartupSettings,
): Counted {
  return count(before, sight.troubles, { sight, settings });
}

interface Counting {
  readonly sight: StartupSight;
  readonly settings: StartupSettings;
}

function count(before: StartupState, attempts: number, { sight, settings }: Counting): Counted {
  const bounded = { ...settings.backoff, maxElapsedMs: timeOf(settings) };
  let { backoff, nextAt } = before;
  // It ends at the bound of the attempts, however many were seen.
  for (let index = 0; index < attempts; index += 1) {
    const next = decideNextAttempt(bounded, backoff, sight);
    if (next.kind === "exhausted") {
      return { kind: "failed", because: nameEnd(next.because, settings) };
    }
    backoff = next.state;
    nextAt = (sight.nowMs + next.delayMs) as MonotonicAt;
  }
  return { kind: "counted", state: { ...before, backoff, nextAt } };
}

/** Whichever comes first. */
function timeOf({ startupWaitMs, backoff }: StartupSettings): number {
  return Math.min(startupWaitMs, backoff.maxElapsedMs);
}

function endOf(
  { startedAt }: StartupState,
  settings: StartupSettings,
): { readonly at: MonotonicAt; readonly because: StartRefusal } {
  const at = (startedAt + timeOf(settings)) as MonotonicAt;
  return { at, because: nameEnd("max-elapsed", settings) };
}

function nameEnd(end: BackoffEnd, { startupWaitMs, backoff }: StartupSettings): StartRefusal {
  return end === "max-elapsed" && startupWaitMs <= backoff.maxElapsedMs ? "startup-wait" : end;
}
