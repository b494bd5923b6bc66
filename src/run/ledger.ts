/**
 * The ledger of one run: everything that the record will tell, noted when it happens. Signals
 * nobody, decides nothing.
 */
import type {
  HolderSummary,
  Leftover,
  NamedProcess,
  RecordedDependency,
  RecordedItems,
  RecordedLease,
  SentSignal,
} from "../core/run-record.ts";
import type { SignalReason } from "../core/run-state.ts";
import { nameSignal, SIGKILL } from "../core/signals.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { readCommand } from "../os/proc.ts";
import type { ChildChange } from "../os/reaper.ts";
import { say } from "../os/say.ts";
import { messages } from "./messages.ts";

/** The record names this many of each kind. */
const MOST_NOTED = 200;

export class RunLedger {
  #startedAt: MonotonicAt;
  readonly #signals: SentSignal[] = [];
  readonly #unsignalable = new Map<number, NamedProcess>();
  readonly #endedBy = new Map<number, number>();
  readonly #degraded: string[] = [];
  readonly #told = new Set<string>();
  #leases: readonly RecordedLease[] = [];
  #heldBy: HolderSummary | null = null;
  #hasGuard = false;
  #readDependencies: () => readonly RecordedDependency[] = () => [];
  #readPausedMs: () => number = () => 0;
  #readItems: () => RecordedItems | null = () => null;
  readonly #held: string[] = [];
  #leftovers: NamedProcess[] = [];
  /** More than are named, where there are very many. */
  #unnamedLeftovers = 0;

  constructor(startedAt: MonotonicAt) {
    this.#startedAt = startedAt;
  }

  restart(startedAt: MonotonicAt): void {
    this.#startedAt = startedAt;
  }

  noteSignal(signal: number, to: "command" | "tree", count: number, why: SignalReason): void {
    if (this.#signals.length >= MOST_NOTED) return;
    const at_ms = Math.round(spanMs(this.#startedAt, monotonicNow()));
    this.#signals.push({ signal: nameSignal(signal), at_ms, to, count, why });
  }

  noteKilling(why: SignalReason): void {
    this.noteSignal(SIGKILL, "tree", 0, why);
  }

  /** The rounds of KILL go on: the count of their entry is the number of processes hit so far. */
  countKilled(count: number): void {
    const index = this.#signals.findLastIndex((one) => one.signal === "KILL");
    const entry = this.#signals[index];
    if (entry !== undefined) this.#signals[index] = { ...entry, count };
  }

  noteLeftovers(rows: readonly ProcessRow[]): void {
    this.#leftovers = rows.slice(0, MOST_NOTED).map(nameProcess);
    this.#unnamedLeftovers = rows.length - this.#leftovers.length;
  }

  noteUnsignalable(rows: readonly ProcessRow[]): void {
    for (const row of rows.slice(0, MOST_NOTED)) this.#unsignalable.set(row.pid, nameProcess(row));
  }

  noteEnded(change: Extract<ChildChange, { kind: "exited" | "signaled" }>): void {
    this.#unsignalable.delete(change.pid);
    if (this.#leftovers.length === 0) return;
    this.#endedBy.set(change.pid, change.kind === "signaled" ? change.signal : 0);
  }

  /** Trouble of watchdog's own: told once, kept in the record, and the run goes on. */
  noteBug(error: unknown): void {
    if (this.#degraded.includes("bug")) return;
    this.#degraded.push("bug");
    say(messages.bug(error));
  }

  /** A line on stderr that says the same a second time says nothing. */
  tellOnce(line: string): void {
    if (this.#told.has(line)) return;
    this.#told.add(line);
    say(line);
  }

  /** Two keys of one dead run name the same survivors. */
  tellSurvivors(ended: readonly NamedProcess[]): void {
    if (ended.length > 0) this.tellOnce(messages.survivorsEnded(ended));
  }

  noteDegraded(word: string): void {
    if (!this.#degraded.includes(word)) this.#degraded.push(word);
  }

  /** Where they stand is asked when the record is made. */
  noteDependencies(read: () => readonly RecordedDependency[]): void {
    this.#readDependencies = read;
  }

  notePauses(readPausedMs: () => number): void {
    this.#readPausedMs = readPausedMs;
  }

  /** What the job has reported is asked when the record is made. */
  noteItems(read: () => RecordedItems | null): void {
    this.#readItems = read;
  }

  get items(): RecordedItems | null {
    return this.#readItems();
  }

  /** Told at the end, if the run has not gone well: the lines of `--quiet`. */
  holdLine(line: string): void {
    if (this.#held.length < MOST_NOTED) this.#held.push(line);
  }

  get heldLines(): readonly string[] {
    return this.#held;
  }

  get dependencies(): readonly RecordedDependency[] {
    return this.#readDependencies();
  }

  get pausedMs(): number {
    return Math.round(this.#readPausedMs());
  }

  noteLeases(leases: readonly RecordedLease[]): void {
    this.#leases = leases;
  }

  noteHolder(holder: HolderSummary): void {
    this.#heldBy = holder;
  }

  noteGuard(hasGuard: boolean): void {
    this.#hasGuard = hasGuard;
  }

  get leases(): readonly RecordedLease[] {
    return this.#leases;
  }

  get heldBy(): HolderSummary | null {
    return this.#heldBy;
  }

  get hasGuard(): boolean {
    return this.#hasGuard;
  }

  get signals(): readonly SentSignal[] {
    return this.#signals;
  }

  get unsignalable(): readonly NamedProcess[] {
    return [...this.#unsignalable.values()];
  }

  get degraded(): readonly string[] {
    return this.#degraded;
  }

  get unnamedLeftovers(): number {
    return this.#unnamedLeftovers;
  }

  /** @param wereEnded  whether watchdog ended them; false: they were waited for, or left */
  leftovers(wereEnded: boolean): Leftover[] {
    return this.#leftovers.map((one) => ({ ...one, ended_by: this.#howEnded(one.pid, wereEnded) }));
  }

  #howEnded(pid: number, wereEnded: boolean): Leftover["ended_by"] {
    if (!wereEnded || this.#unsignalable.has(pid)) return null;
    return this.#endedBy.get(pid) === SIGKILL ? "KILL" : "TERM";
  }
}

function nameProcess(row: ProcessRow): NamedProcess {
  return { pid: row.pid, command: readCommand(row.pid) };
}
