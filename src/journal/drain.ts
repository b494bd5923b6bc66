/**
 * Reads the spool into the journal, oldest first, under the lock of its directory: one reader at a
 * time, so that everybody else knows that what is newer has to wait.
 *
 * Always: a file is removed only after the commit of what it holds. A file that cannot be read is
 * kept under another name; one of a newer format is left for the version that knows it.
 */
import { statSync, unlinkSync, readdirSync } from "node:fs";
import { wallNow } from "../os/clock.ts";
import type { NamedEntry } from "./apply.ts";
import { withDirectoryLock } from "./lock.ts";
import type { JournalPlace } from "./places.ts";
import { listSpool, markBad, readSpooled, removeSpooled, takeDropped } from "./spool.ts";
import { codeOf, type WriteResult } from "./trouble.ts";

/** The main loop stands still for one part: about 20 ms on a disk. */
const FILES_AT_ONCE = 64;
/** Of a writer that was killed while it wrote. */
const ABANDONED_AFTER_MS = 3_600_000;

export interface Drainage {
  readonly commit: (entries: readonly NamedEntry[]) => WriteResult;
  readonly noteDropped: (count: number) => WriteResult;
  readonly tell: (line: string) => void;
}

const EMPTY: WriteResult = { kind: "written" };
const MORE: WriteResult = { kind: "busy" };

/**
 * One part of it.
 * @returns "written": nothing is left that could be read in; "busy": more is left, or another one
 *   is reading it in
 * @throws the error of the system call
 */
export function drainSpool(place: JournalPlace, drainage: Drainage): WriteResult {
  if (listSpool(place).length === 0) return EMPTY; // the usual case costs one failed readdir
  return withDirectoryLock(place.spool, () => {
    const part = gather(place, drainage);
    const committed = part.entries.length === 0 ? EMPTY : drainage.commit(part.entries);
    if (committed.kind !== "written") return committed;
    for (const name of part.names) removeSpooled(place, name);
    removeAbandoned(place);
    tellDropped(place, drainage);
    return part.isAll ? EMPTY : MORE;
  });
}

interface Part {
  readonly names: readonly string[];
  readonly entries: readonly NamedEntry[];
  readonly isAll: boolean;
}

function gather(place: JournalPlace, { tell }: Drainage): Part {
  const names: string[] = [];
  const entries: NamedEntry[] = [];
  const waiting = listSpool(place);
  for (const name of waiting) {
    if (names.length >= FILES_AT_ONCE) return { names, entries, isAll: false };
    const found = readSpooled(place, name);
    if (found.kind === "bad") {
      markBad(place, name);
      tell(`spool/${name} cannot be read; kept as ${name}.bad`);
    }
    if (found.kind !== "entries") continue;
    names.push(name);
    entries.push(...found.entries);
  }
  return { names, entries, isAll: true };
}

function tellDropped(place: JournalPlace, { noteDropped, tell }: Drainage): void {
  const count = takeDropped(place);
  if (count === 0) return;
  tell(`${count} spooled files were dropped: the spool was full`);
  noteDropped(count);
}

function removeAbandoned(place: JournalPlace): void {
  const before = wallNow() - ABANDONED_AFTER_MS;
  for (const name of readdirSync(place.spool)) {
    if (!name.startsWith(".") || !name.endsWith(".tmp")) continue;
    removeIfOlder(`${place.spool}/${name}`, before);
  }
}

function removeIfOlder(path: string, before: number): void {
  try {
    if (statSync(path).mtimeMs < before) unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error; // its writer has just renamed it
  }
}
