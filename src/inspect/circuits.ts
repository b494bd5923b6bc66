/**
 * The circuits of a state directory as they stand, for whoever only wants to know, and the one act
 * that a person has on them, the reset. Decides nothing (core/circuit-reset.ts).
 *
 * Guarantees: a look writes nothing and makes no file; a prober is disturbed for the moment of a
 * LOCK_SH and no longer; a reset is one transaction, made while nobody can begin to probe, or
 * known to be made beside somebody who does. Non-guarantees: that several circuits are of one
 * instant. Clock: MONOTONIC and the wall clock, to tell ages and the next trial. Crash behaviour:
 * what was reset is reset; its event in the journal may be missing.
 */
import { CircuitPlace } from "../circuit/place.ts";
import { type CircuitReset, decideReset } from "../core/circuit-reset.ts";
import type { JournalEvent } from "../core/journal-entry.ts";
import type { CircuitLook, CircuitStore, SharedCircuit } from "../core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../core/time.ts";
import { openCircuitStore } from "../journal/circuit-rows.ts";
import { Journal } from "../journal/journal.ts";
import { askLock } from "../lease/files/lock-file.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { encodeName } from "../os/state-dir.ts";
import { pauseThread } from "../os/timers.ts";

/** How long a database that somebody else writes into is asked again. */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 10;
/** Other readers have the lock for a moment, too. */
const LOCK_TRIES = 4;
const LOCK_PAUSE_MS = 20;
const JOURNAL_LIMIT_MS = 1_000;

export interface CircuitView {
  readonly circuit: SharedCircuit;
  /** Whether somebody probes now; undefined: it cannot be told. */
  readonly isProbed: boolean | undefined;
  /** When it was looked at, on both clocks. */
  readonly nowMs: MonotonicAt;
  readonly wallMs: WallAt;
}

export interface CircuitsView {
  readonly stateDirectory: string;
  /** In the order of their names. */
  readonly circuits: readonly CircuitView[];
  /** False: there may be some, and nothing can be had of them. */
  readonly isReadable: boolean;
  readonly troubles: readonly string[];
}

export type CircuitFinding =
  | { readonly kind: "found"; readonly view: CircuitView }
  /** Nobody has ever probed or called by this name. */
  | { readonly kind: "unknown" }
  /** Reason for people. */
  | { readonly kind: "unread"; readonly reason: string };

export type ResetFinding =
  | ({
      readonly kind: "reset";
      readonly isProbed: boolean;
      readonly troubles: readonly string[];
    } & CircuitReset)
  | Exclude<CircuitFinding, { kind: "found" }>;

const BUSY = "journal: the database is held by somebody else for too long";

export function readCircuits(stateDirectory: string): CircuitsView {
  const { found, ...view } = listCircuits(stateDirectory);
  return { ...view, circuits: found.map((circuit) => viewOf(stateDirectory, circuit)) };
}

/** Those alone that do not let everything through; one read, and nobody's lock is asked. */
export function readBrokenCircuits(stateDirectory: string): CircuitsView {
  const { found, ...view } = listCircuits(stateDirectory);
  const now = { nowMs: monotonicNow(), wallMs: wallNow() };
  const broken = found.filter(({ state }) => state.kind !== "closed");
  return { ...view, circuits: broken.map((circuit) => ({ circuit, isProbed: undefined, ...now })) };
}

function listCircuits(
  stateDirectory: string,
): Omit<CircuitsView, "circuits"> & { readonly found: readonly SharedCircuit[] } {
  const answer = withStore(stateDirectory, (store) => patiently(() => store.list()));
  if (isList(answer)) return { stateDirectory, found: answer, isReadable: true, troubles: [] };
  const reason = reasonOf(answer);
  const troubles = reason === undefined ? [] : [reason];
  return { stateDirectory, found: [], isReadable: reason === undefined, troubles };
}

export function readCircuit(stateDirectory: string, name: string): CircuitFinding {
  const look = withStore(stateDirectory, (store) => patiently(() => store.read(name)));
  if (look.kind === "found") return { kind: "found", view: viewOf(stateDirectory, look.circuit) };
  const reason = reasonOf(look);
  return reason === undefined ? { kind: "unknown" } : { kind: "unread", reason };
}

/** Closes it, and tells the journal. */
export function resetCircuit(stateDirectory: string, name: string): ResetFinding {
  const troubles: string[] = [];
  const tell = (line: string): void => void troubles.push(`journal: ${line}`);
  const store = openCircuitStore(stateDirectory, tell);
  const place = new CircuitPlace(stateDirectory, name);
  try {
    // The look comes first: of a name that nobody knows no file is made.
    const look = patiently(() => store.read(name));
    if (look.kind !== "found") {
      const reason = reasonOf(look);
      return reason === undefined ? { kind: "unknown" } : { kind: "unread", reason };
    }
    const isProbed = !tryPlace(place);
    const reset = change(store, name, isProbed);
    if (!("before" in reset)) return reset;
    if (reset.transition !== undefined) noteReset(stateDirectory, reset, tell);
    return { kind: "reset", isProbed, troubles, ...reset };
  } finally {
    place.unlock();
    store.close();
  }
}

function change(
  store: CircuitStore,
  name: string,
  isProbed: boolean,
): CircuitReset | Exclude<CircuitFinding, { kind: "found" }> {
  let reset: CircuitReset | undefined;
  const result = patiently(() =>
    store.change(name, (found) => {
      const moment = { isProbed, nowMs: monotonicNow(), wallMs: wallNow() };
      reset = found === undefined ? undefined : decideReset(found, moment);
      return reset?.after;
    }),
  );
  if (result.kind === "busy") return { kind: "unread", reason: BUSY };
  if (result.kind === "unwritten") return { kind: "unread", reason: `journal: ${result.reason}` };
  return reset ?? { kind: "unknown" };
}

/** Exclusively: who has it, knows that nobody probes. */
function tryPlace(place: CircuitPlace): boolean {
  for (let tries = 1; tries < LOCK_TRIES; tries += 1) {
    if (place.tryLock() === "locked") return true;
    pauseThread(LOCK_PAUSE_MS);
  }
  return place.tryLock() === "locked";
}

function noteReset(
  stateDirectory: string,
  { before, after }: CircuitReset,
  tell: (line: string) => void,
): void {
  const event: JournalEvent = {
    kind: "event",
    at: wallNow(),
    name: "circuit_closed",
    runId: null,
    job: null,
    key: null,
    because: "reset",
    data: { circuit: before.name, from: before.state.kind, to: after.state.kind },
  };
  const journal = new Journal(stateDirectory, tell);
  journal.put(event);
  journal.close(JOURNAL_LIMIT_MS);
}

function withStore<T>(stateDirectory: string, act: (store: CircuitStore) => T): T {
  const store = openCircuitStore(stateDirectory, () => undefined);
  try {
    return act(store);
  } finally {
    store.close();
  }
}

/** Again while somebody else has the database. */
function patiently<T extends object>(ask: () => T): T {
  const until = monotonicNow() + PATIENCE_MS;
  let answer = ask();
  while ("kind" in answer && answer.kind === "busy" && monotonicNow() < until) {
    pauseThread(PAUSE_MS);
    answer = ask();
  }
  return answer;
}

function isList<T>(found: readonly T[] | object): found is readonly T[] {
  return Array.isArray(found);
}

/** Undefined: there is nothing, and nothing is wrong. */
function reasonOf(look: Exclude<CircuitLook, { kind: "found" }>): string | undefined {
  if (look.kind === "missing") return undefined;
  return look.kind === "busy" ? BUSY : `journal: ${look.reason}`;
}

function viewOf(stateDirectory: string, circuit: SharedCircuit): CircuitView {
  // As circuit/place.ts has it; that one makes what is missing, and a look must not.
  const lock = askLock(`${stateDirectory}/circuits/${encodeName(circuit.name)}/lock`);
  const isProbed = lock.kind === "unaskable" ? undefined : lock.kind === "held";
  return { circuit, isProbed, nowMs: monotonicNow(), wallMs: wallNow() };
}
