/**
 * What one process knows of a circuit, and what it has said that is not in the row yet. Refuses to
 * know locks, probes and who wants to hear of it.
 *
 * Guarantees: nothing here throws or waits longer than the store does; what is said is decided
 * against what the row holds at that moment, or where that cannot be had against the copy, at once,
 * and again in the order in which it was said as soon as it can (MOST_PENDING, the oldest go
 * first); then the copy is what the row is. Good probes that say nothing new are kept back, and go
 * with the next write (core/unwritten-probes.ts). Non-guarantees: while a row cannot be had two may
 * be let through; that is told once. Clock: MONOTONIC, handed in. Crash behaviour: the row stays,
 * what was pending or kept back is lost.
 */
import {
  type CircuitStep,
  type CircuitViewer,
  decideShared,
  type SharedDecision,
} from "../core/circuit-change.ts";
import type {
  CircuitChange,
  CircuitStore,
  ProbeNote,
  SharedCircuit,
} from "../core/shared-circuit.ts";
import type { MonotonicAt } from "../core/time.ts";
import {
  addUnwritten,
  keepUnwritten,
  mayStayUnwritten,
  type ProbePeriod,
  type UnwrittenProbes,
} from "../core/unwritten-probes.ts";
import { changesOf } from "./changes.ts";

export interface CopyParts extends CircuitViewer {
  readonly store: CircuitStore | undefined;
  /** Undefined: it takes the settings that it finds. */
  readonly settingsHash: string | undefined;
  now(): MonotonicAt;
  /** Once, a clause for people: why it is not shared. */
  tell(reason: string): void;
}

const MOST_PENDING = 200;
/** The store is asked for what is pending not more often than this: each try may take 50 ms. */
const RETRY_MS = 1_000;
/** So long whoever wants to make a trial waits for the row that says whether he may. */
export const BUSY_PATIENCE_MS = 5_000;

type OwnFields = Pick<SharedCircuit, "settings" | "settingsHash" | "target" | "job">;
type Change = (base: SharedCircuit) => SharedCircuit;

export class SharedCopy {
  readonly #parts: CopyParts;
  /** Whose it is where the row says nobody's. */
  readonly #owned: OwnFields;
  #circuit: SharedCircuit;
  /** As it was read or written last; undefined: not known, or it is not quite ours. */
  #row: SharedCircuit | undefined;
  #unwritten: UnwrittenProbes | undefined;
  #pending: CircuitStep[] = [];
  /** A row with this hash is replaced by the copy. */
  #replaces: string | undefined;
  #seenChanges = -1;
  #retryAt = 0;
  #busySince: MonotonicAt | undefined;
  #isDetached = false;
  #hasTrouble = false;
  #isTold = false;

  constructor(fresh: SharedCircuit, parts: CopyParts) {
    const { settings, settingsHash, target, job } = fresh;
    this.#owned = { settings, settingsHash, target, job };
    this.#circuit = fresh;
    this.#parts = parts;
  }

  /** The newest that is known, without a look. */
  get circuit(): SharedCircuit {
    return this.#circuit;
  }

  /** Of whatever changed nothing. */
  get unchanged(): SharedDecision {
    const circuit = this.#circuit;
    const decision = { state: circuit.state, transition: undefined, isAdmitted: false };
    return { decision, circuit, isTrial: false };
  }

  /** Whether what is said here can reach others now. */
  get isShared(): boolean {
    return this.#parts.store !== undefined && !this.#isDetached && !this.#hasTrouble;
  }

  /** It was decided what it is, by a row that was read or written. */
  adopt(circuit: SharedCircuit): void {
    this.#circuit = circuit;
  }

  /** It is somebody else's: as it was found, and nothing that is said here reaches it. */
  stayOut(found: SharedCircuit): void {
    this.#circuit = found;
    this.#isDetached = true;
  }

  /** The copy is to be written as soon as it can. @param replaces  the hash of the row it is for */
  owe(step: CircuitStep, replaces: string | undefined): void {
    this.#replaces = replaces;
    this.#remember(step);
  }

  /** Refreshed where somebody else may have changed it. */
  look(): SharedCircuit {
    const { store } = this.#parts;
    if (store === undefined || this.#isDetached) return this.#circuit;
    if (this.#pending.length > 0) {
      if (this.#parts.now() >= this.#retryAt) this.flush();
      return this.#circuit;
    }
    const changes = changesOf(store);
    if (changes === this.#seenChanges) return this.#circuit;
    const seen = store.read(this.#circuit.name);
    if (seen.kind === "unread") this.goAlone(seen.reason);
    if (seen.kind !== "found" && seen.kind !== "missing") return this.#circuit;
    this.#seenChanges = changes;
    this.#hasTrouble = false;
    if (seen.kind === "found") this.#follow(seen.circuit);
    else this.#row = undefined;
    return this.#circuit;
  }

  #follow(found: SharedCircuit): void {
    if (!this.#isOurs(found)) this.#detach(found);
    else if (!this.#isReplaced(found)) {
      this.#unwritten = this.#keptOf(found);
      this.#row = this.#own(found) === found ? found : undefined;
      this.#circuit = addUnwritten(this.#own(found), this.#unwritten);
    }
  }

  /**
   * A good probe that says nothing new is kept back. Nobody looks at the row for it: what was said
   * since the question says nothing about the answer, and comes after it.
   *
   * @param period  of the probes of this process
   * @returns false: it has to be said
   */
  keepBack(note: ProbeNote, period: ProbePeriod): boolean {
    const row = this.#row;
    if (!this.isShared || this.#pending.length > 0 || row === undefined) return false;
    if (!mayStayUnwritten(row, note.at, period)) return false;
    this.#unwritten = { count: (this.#unwritten?.count ?? 0) + 1, last: note };
    this.#circuit = addUnwritten(row, this.#unwritten);
    return true;
  }

  /**
   * Decides and writes. A trial is never let through by the copy alone while the store is only
   * busy, or two would be; the answer is no, and may be another a moment later.
   */
  say(step: CircuitStep): SharedDecision {
    const made: { decision?: SharedDecision } = {};
    const written = this.#write((base) => {
      made.decision = decideShared(base, step, this.#parts);
      return made.decision.circuit;
    });
    if (written === "done" && made.decision !== undefined) return made.decision;
    const alone = decideShared(this.#circuit, step, this.#parts);
    if (alone.isTrial && written === "busy" && !this.#isBusyForLong(step.nowMs)) {
      return this.unchanged;
    }
    if (!Bun.deepEquals(alone.circuit, this.#circuit)) this.#remember(step);
    this.#circuit = alone.circuit;
    return alone;
  }

  #isBusyForLong(nowMs: MonotonicAt): boolean {
    return nowMs - (this.#busySince ?? nowMs) >= BUSY_PATIENCE_MS;
  }

  #remember(step: CircuitStep): void {
    if (this.#parts.store === undefined || this.#isDetached) return;
    this.#pending = [...this.#pending, step].slice(-MOST_PENDING);
  }

  /** One try to write what is pending or kept back. */
  flush(): void {
    if (this.#pending.length === 0 && this.#unwritten === undefined) return;
    this.#retryAt = this.#parts.now() + RETRY_MS;
    this.#write((base) => base);
  }

  /** One transaction: what is pending first, then this. The copy follows. */
  #write(change: Change): "done" | "busy" | "alone" {
    const { store } = this.#parts;
    if (store === undefined || this.#isDetached) return "alone";
    const seen: { after?: SharedCircuit; stranger?: SharedCircuit | undefined; isRow?: boolean } =
      {};
    const result = store.change(this.#circuit.name, (found) => {
      seen.stranger = found !== undefined && !this.#isOurs(found) ? found : undefined;
      if (seen.stranger !== undefined) return undefined;
      const after = change(this.#baseOf(found));
      seen.after = after;
      const isOwed = found === undefined && this.#pending.length > 0;
      const isSame = !isOwed && Bun.deepEquals(after, found ?? this.#circuit);
      seen.isRow = found !== undefined || !isSame;
      return isSame ? undefined : after;
    });
    this.#noteResult(result);
    if (result.kind !== "done") return result.kind === "busy" ? "busy" : "alone";
    if (seen.stranger !== undefined) return this.#detach(seen.stranger);
    this.#pending = [];
    this.#unwritten = undefined;
    this.#replaces = undefined;
    this.#circuit = seen.after ?? this.#circuit;
    this.#row = seen.isRow === true ? this.#circuit : undefined;
    return "done";
  }

  #noteResult(result: CircuitChange): void {
    if (result.kind === "busy") {
      this.#busySince ??= this.#parts.now();
      return;
    }
    this.#busySince = undefined;
    if (result.kind === "unwritten") this.goAlone(result.reason);
    else this.#hasTrouble = false;
  }

  /** The row with all that is pending; where it is to be replaced the copy, which has it all. */
  #baseOf(found: SharedCircuit | undefined): SharedCircuit {
    if (found === undefined || this.#isReplaced(found)) return this.#circuit;
    let base = addUnwritten(this.#own(found), this.#keptOf(found));
    for (const step of this.#pending) base = decideShared(base, step, this.#parts).circuit;
    return base;
  }

  #keptOf(found: SharedCircuit): UnwrittenProbes | undefined {
    return keepUnwritten(this.#unwritten, { before: this.#row, after: found });
  }

  #isOurs(found: SharedCircuit): boolean {
    const { settingsHash } = this.#parts;
    if (settingsHash === undefined || found.settingsHash === null) return true;
    return found.settingsHash === settingsHash || this.#isReplaced(found);
  }

  #isReplaced({ settingsHash }: SharedCircuit): boolean {
    return this.#replaces !== undefined && settingsHash === this.#replaces;
  }

  /** A row that is nobody's (a reset, or one of calls alone) is ours as it stands. */
  #own(found: SharedCircuit): SharedCircuit {
    const isOurs = this.#parts.settingsHash === undefined || found.settingsHash !== null;
    return isOurs ? found : { ...found, ...this.#owned };
  }

  #detach({ job }: SharedCircuit): "alone" {
    this.#isDetached = true;
    this.#pending = [];
    this.#unwritten = undefined;
    return this.goAlone(`${job ?? "another job"} has begun it anew with other settings`);
  }

  goAlone(reason: string): "alone" {
    this.#hasTrouble = true;
    if (!this.#isTold) this.#parts.tell(reason);
    this.#isTold = true;
    return "alone";
  }
}
