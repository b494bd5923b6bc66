/**
 * The audit of a state directory, for whoever repairs: each line is on the disk before the act that
 * it is about. Decides nothing.
 *
 * Guarantees: `append` comes back only when the line is on the disk: committed (synchronous=FULL),
 * or in the spool where somebody holds the database; else it is an error. `acts` knows both.
 * Non-guarantees: an audit survives a journal that was broken and set aside only in the file that
 * was set aside, and a spool that overflows not at all. Clock: MONOTONIC, for one bound.
 */
import type { Database } from "bun:sqlite";
import { WatchdogError } from "../core/errors.ts";
import type { AuditEntry } from "../core/journal-entry.ts";
import { monotonicNow } from "../os/clock.ts";
import { pauseThread } from "../os/timers.ts";
import type { NamedEntry } from "./apply.ts";
import {
  type AuditAct,
  hasAuditEntry,
  joinActs,
  type NamedAudit,
  readAuditEntries,
} from "./audit-rows.ts";
import { inspectDatabase } from "./places.ts";
import { addToSpool, listSpool, readSpooled } from "./spool.ts";
import { codeOf, describeTrouble, type Trouble, troubleOf } from "./trouble.ts";
import { Writer } from "./writer.ts";

export type { AuditAct } from "./audit-rows.ts";

/** Others hold the database for a moment, or the spool is being read in. */
const WRITE_MS = 1_000;
const PAUSE_MS = 20;

export class AuditLog {
  readonly #writer: Writer;
  readonly #told: string[] = [];

  /** Opens nothing yet. */
  constructor(stateDirectory: string) {
    this.#writer = new Writer(stateDirectory, (line) => void this.#told.push(line));
  }

  /** What went wrong with the journal meanwhile, for people. */
  get notes(): readonly string[] {
    return this.#told;
  }

  /**
   * Every act that is known, oldest first; none where there is no journal. Makes nothing.
   * @throws WatchdogError "repair.unusable": it cannot be read
   * Blocks: at most WRITE_MS for others, and one wait for a lock.
   */
  acts(): AuditAct[] {
    const lines = this.#askPatiently(readAuditEntries, []);
    if (lines.kind !== "answer") throw unusable(describeTrouble(lines));
    return joinActs(lines.value, this.#readSpooled());
  }

  /** Makes the journal where it is missing, and sets a broken one aside, as far as it can be. */
  prepare(): void {
    this.#write([]);
  }

  /**
   * @throws WatchdogError "repair.unusable": it is not on the disk, so nothing may follow from it
   * Blocks: an fsync, and at most WRITE_MS for others.
   */
  append(entry: AuditEntry): void {
    const id = crypto.randomUUID();
    const trouble = this.#write([{ id, entry }]);
    if (trouble !== undefined) return this.#spool({ id, entry }, trouble);
    // The writer leaves out what the database refuses, so that it does not keep others out.
    const found = this.#askPatiently((db) => hasAuditEntry(db, id), false);
    // Under the same name it is left out where it is there already.
    if (found.kind !== "answer") return this.#spool({ id, entry }, found);
    if (!found.value) throw unusable(this.#told.at(-1) ?? "journal.db did not take the line");
  }

  /** An owner may stand still in the middle of a transaction, and be the one to be repaired. */
  #spool(named: NamedEntry, trouble: Trouble): void {
    try {
      addToSpool(this.#writer.place, [named]);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw unusable(`${describeTrouble(trouble)}; spool/ takes nothing either: ${why}`, error);
    }
  }

  /** Lines that wait for a journal. */
  #readSpooled(): NamedAudit[] {
    try {
      const { place } = this.#writer;
      return listSpool(place).flatMap((name) => {
        const found = readSpooled(place, name);
        return found.kind === "entries" ? found.entries.flatMap(auditOf) : [];
      });
    } catch (error) {
      if (codeOf(error) === "ENOENT") return []; // the state directory itself
      throw unusable(describeTrouble(troubleOf(error)), error);
    }
  }

  close(): void {
    this.#writer.close();
  }

  /** @returns what keeps them out; undefined: they are written */
  #write(entries: readonly NamedEntry[]): Trouble | undefined {
    const until = monotonicNow() + WRITE_MS;
    let result = this.#writer.write(entries);
    while (result.kind === "busy" && monotonicNow() < until) {
      pauseThread(PAUSE_MS);
      result = this.#writer.write(entries);
    }
    return result.kind === "written" ? undefined : result;
  }

  #askPatiently<T>(question: (db: Database) => T, nothing: T): Asked<T> {
    const until = monotonicNow() + WRITE_MS;
    for (;;) {
      const answer = this.#ask(question, nothing);
      if (answer.kind !== "busy" || monotonicNow() >= until) return answer;
      pauseThread(PAUSE_MS);
    }
  }

  #ask<T>(question: (db: Database) => T, nothing: T): Asked<T> {
    try {
      const isMissing = inspectDatabase(this.#writer.place).kind === "missing";
      if (isMissing) return { kind: "answer", value: nothing };
      const db = this.#writer.openToAsk();
      if (!("kind" in db)) return { kind: "answer", value: question(db) };
      // An empty file: somebody is just making it.
      return db.kind === "missing" ? { kind: "answer", value: nothing } : db;
    } catch (error) {
      // ENOENT: the state directory itself.
      if (codeOf(error) === "ENOENT") return { kind: "answer", value: nothing };
      return troubleOf(error);
    }
  }
}

/** What the database has answered, or why it cannot be asked. */
type Asked<T> = { readonly kind: "answer"; readonly value: T } | Trouble;

function auditOf({ id, entry }: NamedEntry): NamedAudit[] {
  return entry.kind === "audit" ? [{ id, entry }] : [];
}

function unusable(reason: string, cause?: unknown): WatchdogError {
  return new WatchdogError("repair.unusable", `the audit cannot be used: ${reason}`, {
    hint: "watchdog doctor",
    cause,
  });
}
