/**
 * One process's hand on a circuit that is shared: what it knows of it, what it has to say, and the
 * lock of whoever probes. Refuses to know how a dependency is asked and who wants to know.
 *
 * Guarantees: nothing here throws or waits longer than the store does. Non-guarantees: while the
 * row or the lock cannot be had it probes on its own, beside others; that is told once. Clock:
 * MONOTONIC, handed in, and the wall clock for people. Crash behaviour: the kernel frees the lock,
 * the row stays.
 */
import {
  type CircuitEvent,
  type CircuitSettings,
  type CircuitTransition,
  FRESH_CIRCUIT,
} from "../core/circuit.ts";
import {
  type CircuitStep,
  type CircuitViewer,
  hasTrial,
  type SharedDecision,
  wouldAdmit,
} from "../core/circuit-change.ts";
import type {
  CircuitJoin,
  CircuitStore,
  JoinDecision,
  ProbeNote,
  SharedCircuit,
} from "../core/shared-circuit.ts";
import { isSilent, isWatchSilent, type SilenceTimes } from "../core/probe-schedule.ts";
import type { MonotonicAt, WallAt } from "../core/time.ts";
import type { Timer } from "../os/timers.ts";
import type { AskClock, Wake } from "./ask.ts";
import { joinCircuit } from "./join.ts";
import type { ProberLock } from "./place.ts";
import { SharedCopy } from "./shared-copy.ts";

export interface LiveCircuitParts extends AskClock, CircuitViewer {
  readonly name: string;
  readonly settings: CircuitSettings;
  /** Undefined: it only calls (`watchdog retry`), and takes the settings that it finds. */
  readonly join?: (CircuitJoin & { readonly target: string }) | undefined;
  /** Undefined: there is none; then it lives in this process alone. */
  readonly store: CircuitStore | undefined;
  readonly place: ProberLock | undefined;
  /** Had by one of those who watch and wait for `place`; undefined: a start gives way to nobody. */
  readonly wanted?: ProberLock | undefined;
  /** Of its probes. Undefined: it has none; whoever has the lock keeps it, however silent he is. */
  readonly times?: SilenceTimes | undefined;
  random(): number;
  /** Once, a clause for people: why it is not shared. */
  tell(reason: string): void;
  /** What we have said has changed its state. Must not throw. */
  onTransition?(circuit: SharedCircuit, transition: CircuitTransition): void;
}

export class LiveCircuit {
  readonly #parts: LiveCircuitParts;
  readonly #copy: SharedCopy;
  #isLockTold = false;
  #keeping: Timer | undefined;
  #wantedSinceAt: MonotonicAt | undefined;
  /** Who has the lock, and since when this process has seen that. */
  #other: { readonly name: string | undefined; readonly sinceAt: MonotonicAt } | undefined;

  constructor(parts: LiveCircuitParts) {
    this.#parts = parts;
    const { store, join, self } = parts;
    this.#copy = new SharedCopy(freshOf(parts), {
      store,
      self,
      settingsHash: join?.settingsHash,
      isAlive: (holder) => parts.isAlive(holder),
      now: () => parts.now(),
      tell: (reason) => parts.tell(reason),
    });
  }

  get name(): string {
    return this.#parts.name;
  }

  /** Whether what is said here can reach others now. */
  get isShared(): boolean {
    return this.#copy.isShared;
  }

  now(): MonotonicAt {
    return this.#parts.now();
  }

  wall(): WallAt {
    return this.#parts.wall();
  }

  /**
   * Once, at the start. Waits for the store a few times.
   * @returns "refused": `look` shows whose it is; "unshared": the row cannot be written now; what
   *   was found in it is taken over
   */
  join(): JoinDecision | "unshared" {
    const { store, place, join } = this.#parts;
    if (store === undefined) {
      this.#copy.goAlone("there is no journal");
      return "unshared";
    }
    if (join === undefined) {
      this.look();
      return this.isShared ? { kind: "same" } : "unshared";
    }
    const fresh = this.#copy.circuit;
    const { decision, circuit, written, replaces } = joinCircuit({ store, place, join, fresh });
    if (decision?.kind === "refused") {
      this.#copy.stayOut(circuit);
      return decision;
    }
    this.#copy.adopt(circuit);
    if (written === "done") return decision ?? "unshared";
    if (decision?.kind !== "same") this.#copy.owe(this.#stepOf(undefined, undefined), replaces);
    if (written === "busy") return decision ?? "unshared";
    this.#copy.goAlone(written.reason);
    return "unshared";
  }

  /** The newest that is known, without a look. */
  get known(): SharedCircuit {
    return this.#copy.circuit;
  }

  /** The newest that is known, refreshed where somebody else may have changed it. */
  look(): SharedCircuit {
    return this.#copy.look();
  }

  /**
   * Says something about it, or asks with `due`. Never throws; where the row cannot be had it is
   * decided at once, and said again when it can (SharedCopy).
   */
  tell(event: CircuitEvent, note?: ProbeNote): SharedDecision {
    return this.#say(event, note);
  }

  /** The same for a probe of one that was closed; a good one among many need not be written. */
  tellProbe(event: CircuitEvent, note: ProbeNote): SharedDecision {
    const { times } = this.#parts;
    if (event.kind !== "probe-succeeded" || times === undefined) return this.#say(event, note);
    return this.#copy.keepBack(note, times) ? this.#copy.unchanged : this.#say(event, note);
  }

  #say(event: CircuitEvent | undefined, note: ProbeNote | undefined): SharedDecision {
    const said = this.#copy.say(this.#stepOf(event, note));
    const { transition } = said.decision;
    if (transition !== undefined) this.#parts.onTransition?.(said.circuit, transition);
    return said;
  }

  /** Counted; a bad answer never opens it, a good one is as good as any. */
  noteStartupProbe(note: ProbeNote): SharedCircuit {
    const event = note.because === "good" ? ({ kind: "probe-succeeded" } as const) : undefined;
    return this.#say(event, note).circuit;
  }

  /** Whether `due` would be let through, as far as is known; writes nothing. */
  get mayTry(): boolean {
    return wouldAdmit(this.#copy.circuit, this.now(), this.#parts);
  }

  #stepOf(event: CircuitEvent | undefined, note: ProbeNote | undefined): CircuitStep {
    return { event, note, nowMs: this.now(), wallMs: this.wall(), random: this.#parts.random() };
  }

  /**
   * Whether it is for this process to probe: it has the lock, or there is nothing to be shared. A
   * trial that was out when the lock came free is lost, unless its process is seen to live.
   */
  takeLock(): boolean {
    const { place } = this.#parts;
    if (place === undefined) return true;
    if (!this.isShared) {
      place.unlock();
      return true;
    }
    if (place.isLocked) return true;
    let had = place.tryLock();
    if (had === "busy" && this.#isOtherSilent(place)) had = place.takeFromOther();
    if (had === "busy") return false;
    if (had === "locked") this.#takeOver();
    else this.#tellOfLock(had.reason);
    return true;
  }

  /** As takeLock, for a watch: while it waits for the lock, no start keeps that from it. */
  takeLockToWatch(): boolean {
    const isHad = this.takeLock();
    if (isHad) this.#parts.wanted?.unlock();
    else this.#parts.wanted?.tryLock();
    return isHad;
  }

  /**
   * As takeLock, for a start: whoever watches comes first, so that none goes unwatched while a
   * start waits. A watch that gives no sign may be stopped, and nobody waits for that.
   */
  takeLockToStart(): boolean {
    if (!this.#isWanted()) return this.takeLock();
    this.#parts.place?.unlock();
    return false;
  }

  #isWanted(): boolean {
    const { wanted, times } = this.#parts;
    const use = this.isShared ? wanted?.watchUse() : undefined;
    use?.release();
    const nowMs = this.now();
    const sinceAt = this.#wantedSinceAt ?? nowMs;
    this.#wantedSinceAt = use?.isInUse === true ? sinceAt : undefined;
    if (this.#wantedSinceAt === undefined) return false;
    const sight = { circuit: this.look(), mayTry: this.mayTry, nowMs, sinceAt };
    return times === undefined || !isWatchSilent(sight, times);
  }

  #isOtherSilent({ other: name }: ProberLock): boolean {
    const { times } = this.#parts;
    const nowMs = this.now();
    if (this.#other?.name !== name) this.#other = { name, sinceAt: nowMs };
    if (times === undefined || this.#other === undefined) return false;
    const { sinceAt } = this.#other;
    return isSilent({ circuit: this.look(), mayTry: this.mayTry, nowMs, sinceAt }, times);
  }

  #tellOfLock(reason: string): void {
    if (!this.#isLockTold) this.#parts.tell(reason);
    this.#isLockTold = true;
  }

  #takeOver(): void {
    const { state } = this.look();
    if (state.kind === "half-open" && state.isTrialOut) this.tell({ kind: "trial-lost" });
  }

  /** Others may probe. */
  unlock(): void {
    this.keepOn();
    this.#parts.wanted?.unlock();
    this.#parts.place?.unlock();
  }

  /** The lock is kept, and given back if nobody has called keepOn when the span is over. */
  keepFor(spanMs: number, wake: Wake): void {
    const untilAt = this.now() + spanMs;
    const arm = (waitMs: number): void => {
      this.#keeping = wake(waitMs, () => {
        const restMs = untilAt - this.now();
        if (restMs > 0) arm(restMs);
        else this.unlock();
      });
    };
    this.keepOn();
    arm(spanMs);
  }

  keepOn(): void {
    this.#keeping?.cancel();
    this.#keeping = undefined;
  }

  /** The end: a trial of ours is lost, what is pending is tried once more, the lock is free. */
  leave(): void {
    if (hasTrial(this.#copy.circuit, this.#parts.self)) this.tell({ kind: "trial-lost" });
    this.#copy.flush();
    this.unlock();
  }
}

function freshOf({ name, settings, join, wall }: LiveCircuitParts): SharedCircuit {
  return {
    name,
    settings,
    settingsHash: join?.settingsHash ?? null,
    target: join?.target ?? null,
    job: join?.job ?? null,
    state: FRESH_CIRCUIT,
    changedAt: wall(),
    probes: 0,
    goodProbes: 0,
    lastGoodAt: null,
    lastProbe: null,
    trialBy: null,
  };
}
