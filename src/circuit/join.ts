/**
 * Joining a circuit at the start of a job: whether it may with its settings, and what it begins
 * with, decided by decideJoin in the transaction that begins it. Nothing throws. State after a
 * crash: the row that was written, or the one before.
 */
import {
  beginCircuit,
  type CircuitChange,
  type CircuitJoin,
  type CircuitLook,
  type CircuitStore,
  decideJoin,
  type JoinDecision,
  type SharedCircuit,
} from "../core/shared-circuit.ts";
import type { LockWatch, ProberLock } from "./place.ts";

/** Each try may wait for 50 ms. */
const MOST_TRIES = 3;

export interface Joined {
  /** Undefined: nothing is known of the row. */
  readonly decision: JoinDecision | undefined;
  /** What it is from now on; whose it is where that is refused. */
  readonly circuit: SharedCircuit;
  /** The row says so, or why it does not. */
  readonly written: "done" | "busy" | { readonly reason: string };
  /** The hash of the row that is yet to be replaced. */
  readonly replaces: string | undefined;
}

interface Joining {
  readonly store: CircuitStore;
  readonly place: ProberLock | undefined;
  readonly join: CircuitJoin;
  /** What it begins with where nothing is known of it. */
  readonly fresh: SharedCircuit;
}

export function joinCircuit(joining: Joining): Joined {
  const { store, place, join, fresh } = joining;
  const seen = store.read(fresh.name);
  const isAsked = seen.kind !== "missing" && hashIn(seen) !== join.settingsHash;
  // Nobody can begin to probe with the old settings until the new ones are written.
  const watch = isAsked ? place?.watchUse() : undefined;
  try {
    return decideInRow(joining, seen, watch);
  } finally {
    watch?.release();
  }
}

function decideInRow(
  { store, place, join, fresh }: Joining,
  seen: CircuitLook,
  watch: LockWatch | undefined,
): Joined {
  // With the settings of calls alone nobody probes. A row that has come meanwhile is in use.
  const isInUse = (found: SharedCircuit | undefined): boolean =>
    found !== undefined && found.settingsHash !== null && (watch?.isInUse ?? place !== undefined);
  const judge = (found: SharedCircuit | undefined): Judged => {
    const decision = decideJoin(found, join, isInUse(found));
    const isBeginning = decision.kind === "begin";
    const circuit = isBeginning ? beginCircuit(found, fresh, decision) : (found ?? fresh);
    return { decision, circuit };
  };
  const judged: Judged[] = [];
  const change = (): CircuitChange =>
    store.change(fresh.name, (found) => {
      const one = judge(found);
      judged.push(one);
      return one.decision.kind === "begin" ? one.circuit : undefined;
    });
  let result = change();
  for (let tries = 1; result.kind === "busy" && tries < MOST_TRIES; tries += 1) result = change();
  const last = judged.at(-1);
  if (result.kind === "done" && last !== undefined) {
    return { ...last, written: "done", replaces: undefined };
  }
  // What cannot be written may be read: an open circuit protects all the same.
  const isKnown = seen.kind === "found" || seen.kind === "missing";
  const read = isKnown ? judge(seen.kind === "found" ? seen.circuit : undefined) : undefined;
  return {
    decision: read?.decision,
    circuit: read?.circuit ?? fresh,
    written: result.kind === "unwritten" ? { reason: result.reason } : "busy",
    replaces: read?.decision.kind === "begin" ? (hashIn(seen) ?? undefined) : undefined,
  };
}

interface Judged {
  readonly decision: JoinDecision;
  readonly circuit: SharedCircuit;
}

function hashIn(look: CircuitLook): string | null {
  return look.kind === "found" ? look.circuit.settingsHash : null;
}
