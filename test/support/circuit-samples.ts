/** Shared circuits in each state, with and without what they may hold, on one writer's clock. */
import type { CircuitClock } from "../../src/core/circuit-record.ts";
import { FRESH_CIRCUIT } from "../../src/core/circuit.ts";
import type { CircuitState } from "../../src/core/circuit.ts";
import type { ProbeNote, SharedCircuit, TrialHolder } from "../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../src/core/time.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;

export const CIRCUIT_CLOCK: CircuitClock = {
  bootId: "this boot",
  timeNamespace: "ours",
  nowMs: at(70_000.5),
  wallMs: 1_800_000_000_000 as WallAt,
};

const BROKEN = {
  openedAt: at(60_000.25),
  backoff: { startedAt: at(60_000.25), attempts: 3, waits: 2 },
};

export const OPEN_STATE: CircuitState = { kind: "open", ...BROKEN, retryAt: at(75_000.5) };

export const CIRCUIT_STATES: readonly CircuitState[] = [
  FRESH_CIRCUIT,
  { kind: "closed", consecutiveFailures: 2, window: [false, true, true] },
  OPEN_STATE,
  { kind: "half-open", ...BROKEN, successes: 1, isTrialOut: true },
  { kind: "half-open", ...BROKEN, successes: 0, isTrialOut: false },
  { kind: "permanent", ...BROKEN, because: "max-elapsed", retryAt: at(90_000) },
];

export const PROBE_NOTE: ProbeNote = {
  because: "status",
  detail: "found 503, expected 200-299",
  at: at(69_000.75),
  wallAt: 1_799_999_999_000 as WallAt,
};

export const TRIAL_HOLDER: TrialHolder = {
  pid: 4711,
  start_time: 123_456,
  boot_id: "this boot",
  pid_namespace: "4026531836",
  at: at(69_500),
};

export const CIRCUIT: SharedCircuit = {
  name: "llm",
  settings: {
    failureThreshold: 3,
    failureWindow: { failures: 5, size: 20 },
    successThreshold: 1,
    backoff: {
      initialMs: 1_000,
      capMs: 30_000,
      factor: 2,
      maxAttempts: 20,
      maxElapsedMs: 300_000,
    },
  },
  settingsHash: "0123456789abcdef",
  target: "http://localhost:8000/health",
  job: "nightly",
  state: OPEN_STATE,
  changedAt: 1_799_999_990_000 as WallAt,
  probes: 41,
  goodProbes: 38,
  lastGoodAt: at(50_000.125),
  lastProbe: PROBE_NOTE,
  trialBy: null,
};

/** One that only `retry` has used. */
export const BARE_CIRCUIT: SharedCircuit = {
  ...CIRCUIT,
  settings: { ...CIRCUIT.settings, failureWindow: undefined },
  settingsHash: null,
  target: null,
  job: null,
  state: FRESH_CIRCUIT,
  probes: 0,
  goodProbes: 0,
  lastGoodAt: null,
  lastProbe: null,
};

/** Every state with every choice of what may be missing. */
export function listCircuits(): SharedCircuit[] {
  return CIRCUIT_STATES.flatMap((state) =>
    [CIRCUIT, BARE_CIRCUIT].flatMap((circuit) =>
      [null, PROBE_NOTE].flatMap((lastProbe) =>
        [null, at(50_000.125)].flatMap((lastGoodAt) =>
          [null, TRIAL_HOLDER, { ...TRIAL_HOLDER, pid_namespace: null }].map((trialBy) => ({
            ...circuit,
            state,
            lastProbe,
            lastGoodAt,
            trialBy,
          })),
        ),
      ),
    ),
  );
}
