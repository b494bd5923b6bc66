/**
 * Takes a broken database out of the way, so that the journal begins anew and nothing is thrown
 * away: `journal.db` becomes `journal.db.broken-<time>`, and its -wal goes with it; the -shm, which
 * SQLite makes again from that, goes away.
 *
 * Always: only under the lock of `journal.lock`; only after a second look at the same file says
 * that it is broken; never one that somebody has put there meanwhile. At most MOST_KEPT are kept.
 * After a crash between the renames: a -wal without its database, which SQLite removes when the
 * next database is made.
 */
import { constants, Database } from "bun:sqlite";
import { lstatSync, readdirSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { wallNow } from "../os/clock.ts";
import { syncDirectory } from "../os/files.ts";
import { withLock } from "./lock.ts";
import { BUSY_MS, closeQuietly } from "./open.ts";
import { inspectDatabase, type JournalPlace } from "./places.ts";
import { findLackOfRoom } from "./room.ts";
import { type Trouble, troubleOf } from "./trouble.ts";

/** The oldest beyond are removed: a disk that breaks every journal must not fill up with them. */
export const MOST_KEPT = 5;
const BROKEN = /^journal\.db\.broken-\d{8}T\d{6}-[0-9a-f]{8}/;

export type SetAside =
  | { readonly kind: "set-aside"; readonly name: string }
  /** The second look found nothing wrong, or another file: try again with it. */
  | { readonly kind: "sound" }
  | Trouble;

/**
 * Never throws. Every connection of this process must be closed. Reads the whole database where the
 * fault is not found at once.
 */
export function setAside(place: JournalPlace): SetAside {
  try {
    return withLock(place.lock, () => {
      const standing = inspectDatabase(place);
      if (standing.kind === "missing" || standing.kind === "empty") return { kind: "sound" };
      if (standing.kind === "refused") return standing;
      if (standing.kind === "there") {
        const found = checkAgain(place);
        if (found !== "broken") return found;
      }
      const now = inspectDatabase(place);
      if (!("inode" in now) || now.inode !== standing.inode) return { kind: "sound" };
      return moveAway(place);
    });
  } catch (error) {
    return troubleOf(error);
  }
}

/** `quick_check` does not compare indexes with their tables; a fault there needs the long one. */
function checkAgain(place: JournalPlace): "broken" | SetAside {
  const lack = findLackOfRoom(place.directory);
  if (lack !== undefined) return lack;
  let db: Database | undefined;
  try {
    const { SQLITE_OPEN_NOFOLLOW, SQLITE_OPEN_READONLY } = constants;
    db = new Database(place.database, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW);
    db.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    for (const check of ["quick_check", "integrity_check"]) {
      if (db.query(`PRAGMA ${check}(1)`).values()[0]?.[0] !== "ok") return "broken";
    }
    return { kind: "sound" };
  } catch (error) {
    const trouble = troubleOf(error);
    return trouble.kind === "corrupt" ? "broken" : trouble;
  } finally {
    if (db !== undefined) closeQuietly(db);
  }
}

/** The database first: nobody begins a new one without the lock, so its -wal is not mistaken. */
function moveAway(place: JournalPlace): SetAside {
  const time = new Date(wallNow()).toISOString().replace(/[-:]|\.\d+Z$/g, "");
  const name = `journal.db.broken-${time}-${crypto.randomUUID().slice(0, 8)}`;
  renameSync(place.database, `${place.directory}/${name}`);
  moveWal(`${place.database}-wal`, `${place.directory}/${name}-wal`);
  rmSync(`${place.database}-shm`, { force: true });
  syncDirectory(place.directory);
  removeOldest(place);
  return { kind: "set-aside", name };
}

/** Our own second look leaves an empty one: nothing to keep. */
function moveWal(from: string, to: string): void {
  const found = lstatSync(from, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (found.size === 0) unlinkSync(from);
  else renameSync(from, to);
}

function removeOldest(place: JournalPlace): void {
  const names = readdirSync(place.directory).filter((name) => BROKEN.test(name));
  const databases = names.filter((name) => !name.endsWith("-wal")).toSorted();
  for (const old of databases.slice(0, -MOST_KEPT)) {
    for (const name of names.filter((one) => one.startsWith(old))) {
      unlinkSync(`${place.directory}/${name}`);
    }
  }
}
