/**
 * What becomes of a shared circuit when one of those who share it has something to say: the state
 * by decideCircuit, the counts of its probes, and who has the trial. Pure; who is alive is asked of
 * a function that is handed in.
 *
 * Always: the answer of a trial counts only if it comes from whoever was let through; whoever waits
 * for a trial never waits longer than LONGEST_TRIAL_MS for it, nor for a process that is dead; a
 * living one that can be seen keeps its trial, whoever thinks it is lost.
 */
import { type CircuitDecision, type CircuitEvent, decideCircuit } from "./circuit.ts";
import type { ProbeReason } from "./probe-result.ts";
import type { ProbeNote, SharedCircuit, TrialHolder } from "./shared-circuit.ts";
import type { MonotonicAt, WallAt } from "./time.ts";

/** One thing that was asked or answered, with the clock and the dice of that moment. */
export interface CircuitStep {
  /** Undefined: it is counted, and changes no state. */
  readonly event: CircuitEvent | undefined;
  readonly note: ProbeNote | undefined;
  readonly nowMs: MonotonicAt;
  readonly wallMs: WallAt;
  readonly random: number;
}

export type TrialSelf = Omit<TrialHolder, "at">;

export interface CircuitViewer {
  readonly self: TrialSelf;
  /** True where it cannot be told. */
  isAlive(holder: TrialHolder): boolean;
}

export interface SharedDecision {
  readonly decision: CircuitDecision;
  readonly circuit: SharedCircuit;
  /** What was let through is the trial of a half-open circuit. */
  readonly isTrial: boolean;
}

/** A trial that has not ended by then is given up, although its process lives. */
export const LONGEST_TRIAL_MS = 600_000;

/** Reasons that say something about us and nothing about the other side: none counts as failure. */
const OWN_TROUBLES: readonly ProbeReason[] = [
  "stopped",
  "worker-lost",
  "unusable-settings",
  "out-of-resources",
  "command-not-started",
];

export function isOwnTrouble(because: ProbeReason): boolean {
  return OWN_TROUBLES.includes(because);
}

export function decideShared(
  before: SharedCircuit,
  step: CircuitStep,
  viewer: CircuitViewer,
): SharedDecision {
  const { event, nowMs, random, note } = step;
  const circuit = note === undefined ? before : count(before, note);
  if (event === undefined || isForAnother(circuit, event, viewer)) {
    const decision = { state: circuit.state, transition: undefined, isAdmitted: false };
    return { decision, circuit, isTrial: false };
  }
  const chance = { nowMs, random };
  const { settings } = circuit;
  const isFreed = event.kind === "due" && isTrialLost(circuit, nowMs, viewer);
  const state = isFreed
    ? decideCircuit(circuit.state, { kind: "trial-lost" }, settings, chance).state
    : circuit.state;
  const decision = decideCircuit(state, event, settings, chance);
  const isTrial = decision.isAdmitted && isTrialOut(decision.state);
  const counts = event.kind === "reset" ? { probes: 0, goodProbes: 0 } : {};
  return {
    decision,
    isTrial,
    circuit: {
      ...circuit,
      ...counts,
      state: decision.state,
      changedAt: decision.transition === undefined ? circuit.changedAt : step.wallMs,
      trialBy: holderAfter(circuit, decision, isTrial ? { ...viewer.self, at: nowMs } : undefined),
    },
  };
}

/** Whether `due` would be let through; for those who would rather not write for a no. */
export function wouldAdmit(
  circuit: SharedCircuit,
  nowMs: MonotonicAt,
  viewer: CircuitViewer,
): boolean {
  const step = { event: { kind: "due" }, note: undefined, nowMs, wallMs: 0 as WallAt, random: 0 };
  return decideShared(circuit, step as CircuitStep, viewer).decision.isAdmitted;
}

/** The trial is out, and it is this process that was let through. */
export function hasTrial({ state, trialBy }: SharedCircuit, self: TrialSelf): boolean {
  return isTrialOut(state) && trialBy !== null && isSame(trialBy, self);
}

function count(circuit: SharedCircuit, note: ProbeNote): SharedCircuit {
  const isGood = note.because === "good";
  return {
    ...circuit,
    probes: circuit.probes + 1,
    goodProbes: circuit.goodProbes + (isGood ? 1 : 0),
    lastGoodAt: isGood ? note.at : circuit.lastGoodAt,
    lastProbe: note,
  };
}

function isTrialOut(state: SharedCircuit["state"]): boolean {
  return state.kind === "half-open" && state.isTrialOut;
}

function holderAfter(
  circuit: SharedCircuit,
  { state }: CircuitDecision,
  admitted: TrialHolder | undefined,
): TrialHolder | null {
  return isTrialOut(state) ? (admitted ?? circuit.trialBy) : null;
}

/** An answer while somebody else has the trial, or a word that his trial is lost while he lives. */
function isForAnother(circuit: SharedCircuit, event: CircuitEvent, viewer: CircuitViewer): boolean {
  const { state, trialBy } = circuit;
  if (!isTrialOut(state) || trialBy === null || isSame(trialBy, viewer.self)) return false;
  if (event.kind === "due" || event.kind === "reset") return false;
  if (event.kind !== "trial-lost") return true;
  return canBeSeen(trialBy, viewer.self) && viewer.isAlive(trialBy);
}

function isTrialLost(
  { state, trialBy }: SharedCircuit,
  nowMs: MonotonicAt,
  viewer: CircuitViewer,
): boolean {
  if (!isTrialOut(state)) return false;
  // Whoever asks again has no trial out any more, whatever has become of the one before.
  if (trialBy === null || isSame(trialBy, viewer.self)) return true;
  return Math.abs(nowMs - trialBy.at) > LONGEST_TRIAL_MS || !viewer.isAlive(trialBy);
}

function canBeSeen(holder: TrialHolder, self: TrialSelf): boolean {
  return holder.boot_id === self.boot_id && holder.pid_namespace === self.pid_namespace;
}

function isSame(holder: TrialHolder, self: TrialSelf): boolean {
  const isProcess = holder.pid === self.pid && holder.start_time === self.start_time;
  return isProcess && canBeSeen(holder, self);
}
