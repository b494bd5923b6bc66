/**
 * Where the journal of a state directory lies, and what stands in the place of its database. Opens
 * nothing: closing any descriptor of a database drops the locks that SQLite holds on it in this
 * process (sqlite.org, "How To Corrupt", 2.2), so its files are only ever asked by name.
 *
 * Always: paths are real ones, because SQLITE_OPEN_NOFOLLOW refuses a link anywhere above the file,
 * and a state directory below a link (`/var/run`) is none of the journal's business.
 */
import { lstatSync, realpathSync } from "node:fs";
import { refusalOfOwner } from "../os/state-sharing.ts";

export interface JournalPlace {
  readonly directory: string;
  readonly database: string;
  /** Its flock(2) is held while the database is made or set aside. */
  readonly lock: string;
  /** The flock of this directory is held by whoever reads it in. */
  readonly spool: string;
}

/** @throws the error of realpath(3): ENOENT, EACCES */
export function placeOfJournal(stateDirectory: string): JournalPlace {
  const directory = realpathSync(stateDirectory);
  return {
    directory,
    database: `${directory}/journal.db`,
    lock: `${directory}/journal.lock`,
    spool: `${directory}/spool`,
  };
}

export type StandingDatabase =
  | { readonly kind: "missing" }
  /** A database not yet begun: it is being made, or who made it was killed at once. */
  | { readonly kind: "empty"; readonly inode: string }
  /** Pages wait in its -wal, so that there was more once; SQLite would throw them away. */
  | { readonly kind: "emptied"; readonly inode: string }
  | { readonly kind: "there"; readonly inode: string }
  | { readonly kind: "refused"; readonly reason: string };

/** @throws the error of lstat(2), but for ENOENT */
export function inspectDatabase(place: JournalPlace): StandingDatabase {
  const found = lstatSync(place.database, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return { kind: "missing" };
  if (found.isSymbolicLink()) return { kind: "refused", reason: "it is a symbolic link" };
  if (!found.isFile()) return { kind: "refused", reason: "it is not a regular file" };
  const reason = refusalOfOwner(place.database, found);
  if (reason !== undefined) return { kind: "refused", reason };
  const inode = `${found.dev}:${found.ino}`;
  if (found.size > 0n) return { kind: "there", inode };
  return { kind: hasWal(place) ? "emptied" : "empty", inode };
}

/** Nobody who writes has it open where there is none: the last one to close takes it away. */
export function hasWal(place: JournalPlace): boolean {
  const found = lstatSync(`${place.database}-wal`, { throwIfNoEntry: false });
  return found !== undefined && found.size > 0;
}
