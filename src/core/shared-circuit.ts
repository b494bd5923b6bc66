/**
 * What all who share a circuit know of it, and whether somebody may join with the settings that he
 * has. Pure; where it is kept is `CircuitStore`, which the journal implements.
 *
 * Always: a circuit has the settings of one probe; another probe under the same name is refused as
 * long as they differ, because one would open and close at the answers to the other's question.
 */
import type { CircuitSettings, CircuitState } from "./circuit.ts";
import type { ProcessIdentity } from "./lease-record.ts";
import type { ProbeReason } from "./probe-result.ts";
import type { MonotonicAt, WallAt } from "./time.ts";

/** What the last probe found. */
export interface ProbeNote {
  readonly because: ProbeReason;
  readonly detail: string;
  readonly at: MonotonicAt;
  /** For people. */
  readonly wallAt: WallAt;
}

/** Who was let through a half-open circuit. */
export interface TrialHolder extends ProcessIdentity {
  readonly boot_id: string;
  readonly pid_namespace: string | null;
  readonly at: MonotonicAt;
}

export interface SharedCircuit {
  readonly name: string;
  readonly settings: CircuitSettings;
  /** hashSettings of the probe; null: only `retry` has used it so far. */
  readonly settingsHash: string | null;
  /** renderTarget of the probe. */
  readonly target: string | null;
  /** The job whose probe has given the settings. */
  readonly job: string | null;
  readonly state: CircuitState;
  /** Of the last transition, for people. */
  readonly changedAt: WallAt;
  /** Those of anybody, of whatever role but readiness; they only grow, but for a reset. */
  readonly probes: number;
  readonly goodProbes: number;
  readonly lastGoodAt: MonotonicAt | null;
  readonly lastProbe: ProbeNote | null;
  /** Only in half-open, while its trial is out. */
  readonly trialBy: TrialHolder | null;
}

export type CircuitLook =
  | { readonly kind: "found"; readonly circuit: SharedCircuit }
  | { readonly kind: "missing" }
  /** Held for longer than is waited for: it is to be had a moment later. */
  | { readonly kind: "busy" }
  /** It cannot be read now, or is of a newer version. Reason for people. */
  | { readonly kind: "unread"; readonly reason: string };

export type CircuitChange =
  | { readonly kind: "done" }
  | { readonly kind: "busy" }
  | { readonly kind: "unwritten"; readonly reason: string };

/**
 * The circuits of one state directory. No call waits longer than 50 ms for a lock, and none throws.
 */
export interface CircuitStore {
  read(name: string): CircuitLook;
  /** In the order of their names; those that cannot be read are left out. */
  list(): readonly SharedCircuit[] | Exclude<CircuitLook, { kind: "found" }>;
  /**
   * Reads, decides and writes in one transaction. `decide` may be called for a try that is given
   * up, so it changes nothing by itself.
   * @param decide  undefined: nothing is written
   */
  change(
    name: string,
    decide: (found: SharedCircuit | undefined) => SharedCircuit | undefined,
  ): CircuitChange;
  /** Whether anybody else may have written since the last call; true where it cannot be told. */
  hasChanged(): boolean;
  close(): void;
}

/** What a probe brings to its circuit. */
export interface CircuitJoin {
  readonly settingsHash: string;
  readonly job: string;
}

export type JoinDecision =
  /** The settings are the same. */
  | { readonly kind: "same" }
  /** They are new, or nobody else's: the circuit begins with them (beginCircuit). */
  | { readonly kind: "begin"; readonly because: "no-circuit" | "no-probe-yet" | "edited" }
  | { readonly kind: "refused"; readonly because: "in-use" | "of-another-job" };

/**
 * @param isInUse  somebody else holds the lock of the circuit, and probes with its settings
 */
export function decideJoin(
  found: SharedCircuit | undefined,
  { settingsHash, job }: CircuitJoin,
  isInUse: boolean,
): JoinDecision {
  if (found === undefined) return { kind: "begin", because: "no-circuit" };
  if (found.settingsHash === settingsHash) return { kind: "same" };
  if (isInUse) return { kind: "refused", because: "in-use" };
  if (found.settingsHash === null) return { kind: "begin", because: "no-probe-yet" };
  if (found.job !== job) return { kind: "refused", because: "of-another-job" };
  return { kind: "begin", because: "edited" };
}

/**
 * What a circuit is where a probe begins it. One that nobody has probed keeps its state: calls have
 * found the dependency down, and a start is no reason to send them, or itself, there again. What
 * earlier probes have found is not kept, as they may have asked something else.
 */
export function beginCircuit(
  found: SharedCircuit | undefined,
  fresh: SharedCircuit,
  { because }: Extract<JoinDecision, { kind: "begin" }>,
): SharedCircuit {
  if (found === undefined || because !== "no-probe-yet") return fresh;
  const { state, changedAt, trialBy } = found;
  return { ...fresh, state, changedAt, trialBy };
}
