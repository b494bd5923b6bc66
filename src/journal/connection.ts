/**
 * One connection to the journal: opened when it is needed, closed where its file was set aside,
 * brought to our version before it writes. Where the database is broken it is set aside, and a new
 * one begun. One call is one try; when to try again is a matter of the caller. Refuses to know what
 * is written, but for the event that a database was set aside.
 *
 * Guarantees: nothing is thrown, but by `place` where the state directory is not to be had; no call
 * waits longer than BUSY_MS for a lock; nothing is written into a file that others no longer see,
 * nor onto a disk that is nearly full (room.ts). Non-guarantees: the time of an fsync of a slow
 * disk, and of looking through a whole database that may be broken.
 */
import type { Database } from "bun:sqlite";
import { wallNow } from "../os/clock.ts";
import { insertEvent } from "./apply.ts";
import {
  closeQuietly,
  isInPlace,
  openExisting,
  type OpenJournal,
  openToWrite,
  prepare,
} from "./open.ts";
import { type JournalPlace, placeOfJournal } from "./places.ts";
import { findLackOfRoom } from "./room.ts";
import { setAside } from "./set-aside.ts";
import { isTrouble, type Trouble, troubleOf, type WriteResult } from "./trouble.ts";

/** A second broken database right after a new one was made is the disk's fault. */
const MOST_RECOVERIES = 2;

export interface ConnectionParts {
  readonly stateDirectory: string;
  /** One line for people about what went wrong, without who says it. */
  readonly tell: (line: string) => void;
  /** Run on each database that is opened, after the settings that every connection has. */
  readonly pragmas?: string;
}

export class JournalConnection {
  readonly #parts: ConnectionParts;
  #place: JournalPlace | undefined;
  #opened: OpenJournal | undefined;
  #isReady = false;
  #secondLooks = 0;

  /** Opens nothing yet. */
  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  /** @throws the error of realpath(3) */
  get place(): JournalPlace {
    this.#place ??= placeOfJournal(this.#parts.stateDirectory);
    return this.#place;
  }

  /** How often a whole database was looked through because a part of it seemed broken. */
  get secondLooks(): number {
    return this.#secondLooks;
  }

  /** What is open already and still stands in its place. */
  get current(): Database | undefined {
    this.#closeIfReplaced();
    return this.#opened?.db;
  }

  /** A connection to read from, the same that is written with later; makes nothing. */
  openToAsk(): Database | Trouble {
    try {
      const { current } = this;
      if (current !== undefined) return current;
      const opened = openExisting(this.place, "write");
      if (isTrouble(opened)) return opened;
      this.#keep(opened);
      return opened.db;
    } catch (error) {
      this.close();
      return troubleOf(error);
    }
  }

  /** `attempt`, and where the database is broken once more with a new one. */
  withRecovery(act: (db: Database) => WriteResult): WriteResult {
    let result = this.attempt(act);
    for (let round = 0; round < MOST_RECOVERIES && result.kind === "corrupt"; round += 1) {
      this.close();
      this.#secondLooks += 1;
      const moved = setAside(this.place);
      if (moved.kind === "set-aside") this.#tellSetAside(result.reason, moved.name);
      else if (moved.kind !== "sound") return moved;
      result = this.attempt(act);
      if (moved.kind === "set-aside") this.#noteSetAside(moved.name);
    }
    return result;
  }

  /** Acts on a database that is ready to be written; closes it where there was trouble with it. */
  attempt(act: (db: Database) => WriteResult): WriteResult {
    try {
      const opened = this.#open();
      const result = isTrouble(opened) ? opened : act(opened.db);
      if (result.kind !== "written" && result.kind !== "busy") this.close();
      return result;
    } catch (error) {
      this.close();
      return troubleOf(error);
    }
  }

  close(): void {
    if (this.#opened !== undefined) closeQuietly(this.#opened.db);
    this.#opened = undefined;
    this.#isReady = false;
  }

  #open(): OpenJournal | Trouble {
    this.#closeIfReplaced();
    // Before each transaction: the disk may have filled up since it was opened.
    const lack = this.#opened === undefined ? undefined : findLackOfRoom(this.place.directory);
    if (lack !== undefined) return lack;
    if (this.#opened !== undefined && this.#isReady) return this.#opened;
    const opened = this.#opened === undefined ? openToWrite(this.place) : prepare(this.#opened);
    this.#opened = undefined; // prepare has closed it where it could not be made ready
    if (isTrouble(opened)) return opened;
    this.#keep(opened);
    this.#isReady = true;
    return opened;
  }

  #keep(opened: OpenJournal): void {
    this.#opened = opened;
    if (this.#parts.pragmas !== undefined) opened.db.run(this.#parts.pragmas);
  }

  /** Somebody else has set our file aside: what is written into it would not be seen again. */
  #closeIfReplaced(): void {
    if (this.#opened !== undefined && !isInPlace(this.#opened, this.place)) this.close();
  }

  #tellSetAside(reason: string, name: string): void {
    const { tell } = this.#parts;
    tell(`journal.db was broken (${reason}); kept as ${name}, the history begins anew`);
  }

  #noteSetAside(name: string): void {
    const db = this.#opened?.db;
    if (db === undefined) return;
    transact(db, () => noteOwnEvent(db, "journal_set_aside", { name }));
  }
}

/** What the act throws undoes it, and is the trouble that comes back. */
export function transact(db: Database, act: () => void): WriteResult {
  try {
    db.run("BEGIN IMMEDIATE");
    act();
    db.run("COMMIT");
    return { kind: "written" };
  } catch (error) {
    rollBack(db);
    return troubleOf(error);
  }
}

/** What the journal has to tell about itself. @throws an error of SQLite */
export function noteOwnEvent(db: Database, name: string, data: Record<string, unknown>): void {
  const at = wallNow();
  const nobody = { runId: null, job: null, key: null, because: null };
  insertEvent(db, crypto.randomUUID(), { ...nobody, at, name, data });
}

function rollBack(db: Database): void {
  try {
    if (db.inTransaction) db.run("ROLLBACK");
  } catch {
    // SQLITE_IOERR, SQLITE_FULL: SQLite has rolled back by itself, or closing the file will.
  }
}
