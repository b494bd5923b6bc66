/**
 * Opens the database of a journal: by its real path, never through a link, with the settings that
 * each connection needs, made first where it is missing. Knows no table.
 *
 * Guarantees: a database that somebody can see is whole but for its tables, because it is made
 * under the lock of `journal.lock`; its files have the mode of their place whatever the umask (0600
 * or 0660, os/state-sharing.ts; SQLite gives -wal and -shm the mode of the database). No call waits
 * longer than BUSY_MS for a lock. Nothing is thrown. Not guaranteed: an answer within that time
 * from a disk that hangs.
 *
 * After a crash while it is made: an empty file, which the next writer begins and a reader takes
 * for none, or one without tables.
 *
 * `busy_timeout` comes first: with the switch to WAL before it, 5 to 36 of 50 first starters failed
 * with SQLITE_BUSY; in this order, 0 of 250.
 */
// A static import costs 0.15 ms at the start of the binary, `import()` as much when it is reached,
// and `require` 0.65 ms (measured, compiled with bytecode): who wants it off the way to the spawn
// loads this room by `import()`.
import { constants, Database } from "bun:sqlite";
import { closeSync, unlinkSync } from "node:fs";
import { wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { createStateFile } from "../os/state-sharing.ts";
import { withLock } from "./lock.ts";
import { hasWal, inspectDatabase, type JournalPlace } from "./places.ts";
import { findLackOfRoom } from "./room.ts";
import { decideVersion, migrate, readVersion, renderVersion } from "./schema.ts";
import { isTrouble, type Trouble, troubleOf } from "./trouble.ts";

/** The main loop stands still for as long: no signal is passed on meanwhile. */
export const BUSY_MS = 50;
/** One that is just being made looks broken for so long at most to whoever comes in between. */
export const MAKING_MS = 2_000;

const { SQLITE_OPEN_NOFOLLOW, SQLITE_OPEN_READONLY, SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } =
  constants;

const EMPTIED = { kind: "corrupt", reason: "it is empty, and its -wal is not" } as const;

export interface OpenJournal {
  readonly kind: "open";
  readonly db: Database;
  /** `device:inode` of the file: another one in its place means that it was set aside. */
  readonly inode: string;
}

/**
 * A database that is there, to be written or only read; its version is not looked at. On a disk
 * that is nearly full (room.ts) it is read without its -shm where all of it is in the one file.
 */
export function openExisting(place: JournalPlace, mode: "write" | "read"): OpenJournal | Trouble {
  try {
    faultPoint("journal.open", { database: place.database, mode });
    const standing = inspectDatabase(place);
    if (standing.kind === "empty") return { kind: "missing" };
    if (standing.kind === "emptied") return EMPTIED;
    if (standing.kind !== "there") return standing;
    const lack = findLackOfRoom(place.directory);
    if (lack === undefined) return connect(place.database, standing.inode, mode);
    if (mode === "write" || hasWal(place)) return lack;
    return connect(nameImmutable(place), standing.inode, "immutable");
  } catch (error) {
    return troubleOf(error);
  }
}

/** The database ready to be written: made where it is missing, of our version or a newer minor. */
export function openToWrite(place: JournalPlace): OpenJournal | Trouble {
  const opened = openExisting(place, "write");
  if (opened.kind === "missing") return create(place);
  return isTrouble(opened) ? opened : prepare(opened);
}

/** Closes without an error: what was not written is known by other means. */
export function closeQuietly(db: Database): void {
  try {
    db.close(true);
  } catch {
    // SQLITE_IOERR, SQLITE_FULL in the last checkpoint: what was committed is in the -wal file.
  }
}

/** Whether the file of this connection still stands in its place. */
export function isInPlace(opened: OpenJournal, place: JournalPlace): boolean {
  try {
    const standing = inspectDatabase(place);
    return standing.kind === "there" && standing.inode === opened.inode;
  } catch {
    return false; // EACCES, ENOENT above it: opening again will say what is wrong
  }
}

const ACCESS = {
  write: SQLITE_OPEN_READWRITE,
  read: SQLITE_OPEN_READONLY,
  immutable: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
} as const;

function connect(name: string, inode: string, mode: keyof typeof ACCESS): OpenJournal | Trouble {
  const db = new Database(name, ACCESS[mode] | SQLITE_OPEN_NOFOLLOW);
  try {
    db.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    db.run("PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF");
    readVersion(db); // the first read: what is no database says so here
    return { kind: "open", db, inode };
  } catch (error) {
    closeQuietly(db);
    return troubleOf(error);
  }
}

/**
 * Neither locks nor a -shm (sqlite.org/uri.html, "immutable"). Nobody writes meanwhile, because all
 * of us ask for room first; a reader that is wrong about it reads a wrong row, and no more.
 */
function nameImmutable(place: JournalPlace): string {
  const path = place.database.split("/").map(encodeURIComponent).join("/");
  return `file://${path}?immutable=1`;
}

/**
 * Brings an open database to WAL and to our version. It is closed where that is not to be had. What
 * is of a newer major is left before anything could be written into it.
 */
export function prepare(opened: OpenJournal): OpenJournal | Trouble {
  const { db } = opened;
  try {
    const version = readVersion(db);
    const decision = decideVersion(version);
    if (decision === "newer" || decision === "unknown") {
      closeQuietly(db);
      return { kind: "newer", reason: describeVersion(version, decision) };
    }
    switchToWal(db);
    if (decision === "migrate") migrate(db, wallNow());
    return opened;
  } catch (error) {
    closeQuietly(db);
    return troubleOf(error);
  }
}

function describeVersion(version: number, decision: "newer" | "unknown"): string {
  const what = decision === "newer" ? "a newer watchdog" : "no known watchdog";
  return `journal.db is of ${what} (version ${renderVersion(version)}) and is not written into`;
}

/** It stays with the file: only a copy made by VACUUM INTO comes without it. */
function switchToWal(db: Database): void {
  const mode = db.query<{ journal_mode: string }, []>("PRAGMA journal_mode").get()?.journal_mode;
  if (mode !== "wal") db.run("PRAGMA journal_mode = WAL");
}

/** Under the lock, so that one makes it and the others find it whole. */
function create(place: JournalPlace): OpenJournal | Trouble {
  try {
    return withLock(place.lock, () => {
      const lack = findLackOfRoom(place.directory);
      if (lack !== undefined) return lack;
      const standing = inspectDatabase(place);
      if (standing.kind === "missing") makeFile(place);
      faultPoint("journal.open", { database: place.database, mode: "create" });
      const made = inspectDatabase(place);
      if (made.kind === "missing" || made.kind === "refused") return made;
      if (made.kind === "emptied") return EMPTIED;
      const opened = connect(place.database, made.inode, "write");
      const ready = isTrouble(opened) ? opened : prepare(opened);
      if (isTrouble(ready)) removeIfEmpty(place);
      return ready;
    });
  } catch (error) {
    return troubleOf(error);
  }
}

/** The one time that `fs` opens it: nobody of this process has it open yet. */
function makeFile(place: JournalPlace): void {
  closeSync(createStateFile(place.database));
}

/** A full disk: nothing is left of what could not be begun. */
function removeIfEmpty(place: JournalPlace): void {
  if (inspectDatabase(place).kind === "empty") unlinkSync(place.database);
}
