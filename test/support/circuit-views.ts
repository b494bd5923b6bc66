/** Circuits in every state, and as a reader sees them: plain data for tests of words and rules. */
import type { CircuitSettings, CircuitState } from "../../src/core/circuit.ts";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../src/core/time.ts";
import type { CircuitView } from "../../src/inspect/circuits.ts";

/** When it is looked at. */
export const NOW_AT = 100_000 as MonotonicAt;
/** 2026-01-01T00:00:00Z */
export const CHANGED_AT = 1_767_225_600_000 as WallAt;

/** A minute after that. */
const SEEN_AT = (CHANGED_AT + 60_000) as WallAt;
/** Those that are not closed have been so for 40 s, whatever trials have failed since. */
export const OPENED_AT = (SEEN_AT - 40_000) as WallAt;

export const SETTINGS: CircuitSettings = {
  failureThreshold: 3,
  failureWindow: undefined,
  successThreshold: 2,
  backoff: { initialMs: 1_000, capMs: 30_000, factor: 2, maxAttempts: 20, maxElapsedMs: 300_000 },
};

const BROKEN = {
  openedAt: 60_000 as MonotonicAt,
  backoff: { startedAt: 60_000 as MonotonicAt, attempts: 4, waits: 4 },
};

function circuitOf(state: CircuitState, changes: Partial<SharedCircuit>): SharedCircuit {
  return {
    name: "api",
    settings: SETTINGS,
    settingsHash: "0123456789abcdef",
    target: "http://127.0.0.1:8080/health",
    job: "nightly",
    state,
    changedAt: CHANGED_AT,
    probes: 12,
    goodProbes: 9,
    lastGoodAt: 55_000 as MonotonicAt,
    lastProbe: {
      because: "refused",
      detail: "127.0.0.1:8080: connection refused",
      at: 98_000 as MonotonicAt,
      wallAt: CHANGED_AT,
    },
    trialBy: null,
    ...changes,
  };
}

export function closedCircuit(changes: Partial<SharedCircuit> = {}): SharedCircuit {
  return circuitOf({ kind: "closed", consecutiveFailures: 1, window: [] }, changes);
}

export function openCircuit(changes: Partial<SharedCircuit> = {}): SharedCircuit {
  return circuitOf({ kind: "open", ...BROKEN, retryAt: 112_000 as MonotonicAt }, changes);
}

export function halfOpenCircuit(changes: Partial<SharedCircuit> = {}): SharedCircuit {
  const at = 99_000 as MonotonicAt;
  const trialBy = { pid: 77, start_time: 1, boot_id: "b", pid_namespace: null, at };
  const state = { kind: "half-open", ...BROKEN, successes: 1, isTrialOut: true } as const;
  return circuitOf(state, { trialBy, ...changes });
}

export function permanentCircuit(changes: Partial<SharedCircuit> = {}): SharedCircuit {
  const retryAt = 99_000 as MonotonicAt;
  const state = { kind: "permanent", because: "max-attempts", ...BROKEN, retryAt } as const;
  return circuitOf(state, changes);
}

export function viewOf(circuit: SharedCircuit, changes: Partial<CircuitView> = {}): CircuitView {
  return { circuit, isProbed: false, nowMs: NOW_AT, wallMs: SEEN_AT, ...changes };
}
