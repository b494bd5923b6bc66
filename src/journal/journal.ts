/**
 * The journal of one state directory, for whoever writes into it: entries are taken at once,
 * written when they can be, and kept in `spool/` where they cannot. Decides nothing about the run,
 * and no trouble of it ever reaches the job.
 *
 * Guarantees: nothing is thrown; entries are written in the order in which they were put; the main
 * loop stands still for at most about BUSY_MS at a time for a lock; an entry that could not be
 * written within SPOOL_AFTER_MS is on the disk in `spool/`, so that a kill of this process does not
 * lose it. Non-guarantees: the time of an fsync on a slow disk.
 *
 * Clock: MONOTONIC for spans. After a crash: what was neither written nor spooled yet is lost; the
 * record and the slots still tell who held a lease.
 */
import type { JournalLease } from "../core/evidence.ts";
import type { JournalEntry } from "../core/journal-entry.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { ownMask } from "../os/mask.ts";
import { pauseThread, type Timer, wakeAfter } from "../os/timers.ts";
import type { NamedEntry } from "./apply.ts";
import { type GoodRun, selectGoodRuns } from "./good-runs.ts";
import { readLease } from "./lease-rows.ts";
import { hasDue } from "./outbox-table.ts";
import { inspectDatabase } from "./places.ts";
import { hasTables } from "./schema.ts";
import { addToSpool } from "./spool.ts";
import { readSpooledLease } from "./spooled-lease.ts";
import { codeOf, describeTrouble, type Trouble } from "./trouble.ts";
import { Writer } from "./writer.ts";

/** More than these are spooled at once, the oldest first. */
export const MOST_WAITING = 200;
export const SPOOL_AFTER_MS = 1_000;
/** Between tries while somebody else holds the database; doubled each time. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** Between tries while something is wrong that time alone does not mend. */
const TROUBLE_PAUSE_MS = 10_000;
/** Between tries of `close`, where a lock is asked for without waiting. */
const CLOSE_PAUSE_MS = 10;

export class Journal {
  readonly #writer: Writer;
  readonly #onTrouble: (line: string) => void;
  readonly #told = new Set<string>();
  #waiting: NamedEntry[] = [];
  /** When the oldest of them was put. */
  #waitingSince = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #timer: Timer | undefined;
  #hasSpooled = false;
  #hasLost = false;
  /** The last try has met more than a lock of somebody else. */
  #isTroubled = false;
  #isClosed = false;
  #onWritten: (() => void) | undefined;

  /**
   * Opens nothing yet.
   * @param onTrouble  one line for people, each text once; without who says it
   */
  constructor(stateDirectory: string, onTrouble: (line: string) => void) {
    this.#onTrouble = onTrouble;
    this.#writer = new Writer(stateDirectory, (line) => this.#tell(line));
  }

  /**
   * The last generation of a key that the journal or its spool knows. Creates nothing.
   *
   * @returns undefined: none is known, also where there is no journal; "unread": it cannot be told
   *   (held for longer than BUSY_MS, broken, of a newer version)
   */
  highestLease(key: LeaseKey): JournalLease | undefined | "unread" {
    try {
      const known = this.#readLease(key);
      return known === "unread" ? known : readSpooledLease(this.#writer.place, key, known);
    } catch (error) {
      // ENOENT: there is no state directory, and so no grant. EACCES, EIO …: the third source of
      // three, and no reason to fail a start.
      return codeOf(error) === "ENOENT" ? undefined : "unread";
    }
  }

  /** The last good runs of a job, newest first. Creates nothing. "unread": it cannot be told. */
  goodRuns(job: string, limit: number): readonly GoodRun[] | "unread" {
    try {
      if (inspectDatabase(this.#writer.place).kind === "missing") return [];
      const db = this.#writer.openToAsk();
      if ("kind" in db) return "unread";
      return hasTables(db) ? selectGoodRuns(db, job, limit) : [];
    } catch {
      return "unread"; // ENOENT, EACCES, SQLITE_BUSY: a comparison, and no reason to fail a run
    }
  }

  /** Called after entries were written. Must not throw. */
  watchWritten(onWritten: () => void): void {
    this.#onWritten = onWritten;
  }

  /** Whether entries of this process are in the spool and not in the database. */
  get hasSpooled(): boolean {
    return this.#hasSpooled;
  }

  /** Whether an entry of this process could be written nowhere. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  /** Whether a notice may be sent now. False where it cannot be told; makes nothing. */
  hasDueNotices(): boolean {
    try {
      if (inspectDatabase(this.#writer.place).kind === "missing") return false;
      const db = this.#writer.openToAsk();
      return "kind" in db ? false : hasDue(db, wallNow());
    } catch {
      return false; // no such table yet, held for long, no state directory: the next one asks again
    }
  }

  /**
   * Never throws. Tries at once, then by a timer. After `close` it goes to the spool. No secret of
   * the entry goes with it.
   */
  put(entry: JournalEntry): void {
    if (this.#waiting.length === 0) this.#waitingSince = monotonicNow();
    this.#waiting.push({ id: crypto.randomUUID(), entry: ownMask().value(entry) });
    if (this.#isClosed || this.#waiting.length > MOST_WAITING) this.#spool();
    else if (this.#timer === undefined || this.#isTroubled) this.#try();
  }

  /**
   * Last tries within the limit; what is left goes to the spool. Closes the database. Never throws,
   * and may be called again.
   */
  close(limitMs: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#isClosed = true;
    const until = monotonicNow() + limitMs;
    let trouble = this.#flush();
    while (trouble?.kind === "busy" && monotonicNow() < until) {
      pauseThread(CLOSE_PAUSE_MS);
      trouble = this.#flush();
    }
    if (trouble !== undefined) this.#tellTrouble(trouble);
    this.#spool();
    this.#writer.close();
  }

  #readLease(key: LeaseKey): JournalLease | undefined | "unread" {
    if (inspectDatabase(this.#writer.place).kind === "missing") return undefined;
    const db = this.#writer.openToAsk();
    if ("kind" in db) return "unread";
    return hasTables(db) ? readLease(db, key) : undefined;
  }

  #try(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const trouble = this.#flush();
    this.#isTroubled = trouble !== undefined && trouble.kind !== "busy";
    if (trouble === undefined) {
      this.#pauseMs = FIRST_PAUSE_MS;
      return;
    }
    this.#tellTrouble(trouble);
    if (this.#isTroubled || monotonicNow() - this.#waitingSince > SPOOL_AFTER_MS) this.#spool();
    const pauseMs = this.#isTroubled ? TROUBLE_PAUSE_MS : this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#timer = wakeAfter(pauseMs, () => this.#try());
  }

  /** Writes what waits, or reads in what this process has spooled. undefined: nothing is left. */
  #flush(): Trouble | undefined {
    if (this.#waiting.length === 0 && !this.#hasSpooled) return undefined;
    const result = this.#waiting.length > 0 ? this.#writeAll() : this.#writer.drain();
    if (result.kind !== "written") return result;
    this.#hasSpooled = false;
    this.#onWritten?.();
    return undefined;
  }

  #writeAll(): ReturnType<Writer["write"]> {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const result = this.#writer.write([next]);
      if (result.kind !== "written") return result;
      this.#waiting.shift();
    }
    return { kind: "written" };
  }

  #spool(): void {
    if (this.#waiting.length === 0) return;
    try {
      const dropped = addToSpool(this.#writer.place, this.#waiting);
      if (dropped > 0)
        this.#tell(`the spool is full: ${dropped} files of earlier runs were dropped`);
      this.#waiting = [];
      this.#hasSpooled = true;
    } catch (error) {
      this.#forget(error);
    }
  }

  /** Neither the journal nor the spool takes them: they stay in memory while there is room. */
  #forget(error: unknown): void {
    this.#hasLost ||= this.#isClosed;
    const reason = error instanceof Error ? error.message : String(error);
    this.#tell(`this run cannot be recorded, now: ${reason.replace(/, \w+ '.*$/s, "")}`);
    const keeps = this.#isClosed ? 0 : MOST_WAITING;
    this.#waiting = keeps === 0 ? [] : this.#waiting.slice(-keeps);
  }

  /** Somebody else's lock is nothing to tell: the entry waits, or is read in by the next one. */
  #tellTrouble(trouble: Trouble): void {
    if (trouble.kind !== "busy") this.#tell(describeTrouble(trouble));
  }

  #tell(line: string): void {
    if (this.#told.has(line)) return;
    this.#told.add(line);
    try {
      this.#onTrouble(line);
    } catch {
      // Whoever listens has a trouble of its own, and no place but here to tell it.
    }
  }
}
