/**
 * Writes entries: reads the spool in first, and goes on with a new database where the old one is
 * broken (connection.ts). One call is one try; when to try again is a matter of the caller.
 *
 * Guarantees: what is in the spool is in the journal before anything newer; nothing is thrown; no
 * call waits longer than BUSY_MS for a lock. Non-guarantees: the time of an fsync of a slow disk,
 * and of looking through a whole database that may be broken.
 */
import type { Database } from "bun:sqlite";
import { wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { applyEntry, type NamedEntry } from "./apply.ts";
import { JournalConnection, noteOwnEvent, transact } from "./connection.ts";
import { drainSpool } from "./drain.ts";
import type { JournalPlace } from "./places.ts";
import { isOfTheEntry, type Trouble, type WriteResult } from "./trouble.ts";

export class Writer {
  readonly #connection: JournalConnection;
  /** One line for people about what went wrong, without who says it. */
  readonly #tell: (line: string) => void;

  constructor(stateDirectory: string, tell: (line: string) => void) {
    this.#connection = new JournalConnection({ stateDirectory, tell });
    this.#tell = tell;
  }

  /** @throws the error of realpath(3) */
  get place(): JournalPlace {
    return this.#connection.place;
  }

  /** One transaction for all of them, after everything that waits in the spool. */
  write(entries: readonly NamedEntry[]): WriteResult {
    return this.#connection.withRecovery((db) => {
      const drained = this.#drain(db);
      if (drained.kind !== "written") return drained;
      return this.#transact(db, entries, wallNow());
    });
  }

  /** Reads the spool in, a part of it with each call. "busy": there is more. */
  drain(): WriteResult {
    return this.#connection.withRecovery((db) => this.#drain(db));
  }

  /** A connection to read from, the same that is written with later; makes nothing. */
  openToAsk(): Database | Trouble {
    return this.#connection.openToAsk();
  }

  close(): void {
    this.#connection.close();
  }

  #drain(db: Database): WriteResult {
    return drainSpool(this.place, {
      commit: (entries) => this.#transact(db, entries),
      noteDropped: (count) => transact(db, () => noteOwnEvent(db, "entries_dropped", { count })),
      tell: this.#tell,
    });
  }

  /** @param directAt  undefined: the entries come from the spool */
  #transact(db: Database, entries: readonly NamedEntry[], directAt?: number): WriteResult {
    return transact(db, () => {
      for (const entry of entries) this.#applyOne(db, entry, directAt);
      faultPoint("journal.commit", { kinds: entries.map(({ entry }) => entry.kind) });
    });
  }

  /** An entry that cannot be written must not keep the others out for ever: it is told and left. */
  #applyOne(db: Database, named: NamedEntry, directAt: number | undefined): void {
    db.run("SAVEPOINT entry");
    try {
      const applied = applyEntry(db, named, directAt);
      if (applied.kind === "fenced") this.#tell(`an entry was refused: ${applied.reason}`);
    } catch (error) {
      if (!isOfTheEntry(error)) throw error;
      db.run("ROLLBACK TO entry");
      this.#tell(`an entry cannot be written: ${troubleText(error)}`);
    }
    db.run("RELEASE entry");
  }
}

function troubleText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
