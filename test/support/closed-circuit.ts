/** A row of a circuit as it is after ten probes, nobody's trial out, for pure decisions. */
import { FRESH_CIRCUIT } from "../../src/core/circuit.ts";
import { DEFAULT_PROBE_BACKOFF } from "../../src/core/probe-settings.ts";
import type { SharedCircuit } from "../../src/core/shared-circuit.ts";
import type { WallAt } from "../../src/core/time.ts";

export const CLOSED_CIRCUIT: SharedCircuit = {
  name: "model",
  settings: {
    failureThreshold: 3,
    failureWindow: undefined,
    successThreshold: 1,
    backoff: DEFAULT_PROBE_BACKOFF,
  },
  settingsHash: "h",
  target: "tcp",
  job: "j",
  state: FRESH_CIRCUIT,
  changedAt: 0 as WallAt,
  probes: 10,
  goodProbes: 8,
  lastGoodAt: null,
  lastProbe: null,
  trialBy: null,
};
