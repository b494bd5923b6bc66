/**
 * What becomes of a circuit that a person resets: it is closed, as if nothing had ever failed, and
 * where nobody probes at that moment it also forgets whose settings it has, so that a probe with
 * others may use its name (decideJoin). Pure.
 *
 * Always: settings that somebody probes with stay; a trial that is out is nobody's any more.
 */
import { decideShared } from "./circuit-change.ts";
import type { CircuitTransition } from "./circuit.ts";
import { CALL_SETTINGS } from "./probe-settings.ts";
import type { SharedCircuit } from "./shared-circuit.ts";
import type { MonotonicAt, WallAt } from "./time.ts";

export interface CircuitReset {
  readonly before: SharedCircuit;
  readonly after: SharedCircuit;
  /** Undefined: it was closed already; failures that it had counted are forgotten all the same. */
  readonly transition: CircuitTransition | undefined;
  readonly forgetsSettings: boolean;
}

export interface ResetMoment {
  /** Somebody has the lock of the circuit, or it cannot be told. */
  readonly isProbed: boolean;
  readonly nowMs: MonotonicAt;
  readonly wallMs: WallAt;
}

export function decideReset(
  before: SharedCircuit,
  { isProbed, nowMs, wallMs }: ResetMoment,
): CircuitReset {
  const step = { event: { kind: "reset" }, note: undefined, nowMs, wallMs, random: 0 } as const;
  const { circuit, decision } = decideShared(before, step, NOBODY);
  const forgetsSettings = !isProbed && before.settingsHash !== null;
  const after = forgetsSettings
    ? { ...circuit, settings: CALL_SETTINGS, settingsHash: null, target: null, job: null }
    : circuit;
  return { before, after, transition: decision.transition, forgetsSettings };
}

/** A reset asks for no trial, whoever does it. */
const NOBODY = {
  self: { pid: 0, start_time: 0, boot_id: "", pid_namespace: null },
  isAlive: () => true,
};
