/**
 * `spool/`: what the journal could not take, as JSON files that the next writer reads in, in their
 * order. One file holds what one writer had to leave at one time.
 *
 *     0000000017-<uuid>.json   {"format":1,"entries":[{"id","entry"}…]}
 *     <the same>.bad           could not be read; kept for a person
 *     dropped                  how many entries went because the spool was full
 *
 * Always: only a directory of our own is used, never a link to one; a file appears whole (written
 * beside, fsynced, renamed); numbers grow, so that an entry of a later grant is never read in
 * before the end of an earlier one; at most MOST_FILES, then the oldest go and are counted. Files
 * of a newer format stay where they are.
 *
 * Clock: none. After a crash between the commit and the removal of a file, it is read in again,
 * which changes nothing.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync } from "node:fs";
import { readSync, renameSync, unlinkSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { faultPoint } from "../os/faults.ts";
import { replaceFile } from "../os/files.ts";
import { fileModeAt, makeStateDirectory, refusalOfOwner } from "../os/state-sharing.ts";
import type { NamedEntry } from "./apply.ts";
import type { JournalPlace } from "./places.ts";
import { isNamedEntry } from "./spooled-entry.ts";
import { codeOf } from "./trouble.ts";

export const MOST_FILES = 1000;
/** Of one file; more than MOST_WAITING entries with the longest records. */
const LONGEST_FILE = 64 * 1024 * 1024;
const FORMAT = 1;
const NAME = /^(\d{10})-[0-9a-f-]{36}\.json$/;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Names in the order in which they are read in. */
export function listSpool(place: JournalPlace): string[] {
  return listNames(place)
    .filter((name) => NAME.test(name))
    .toSorted();
}

function listNames(place: JournalPlace): string[] {
  try {
    return refusalOf(place) === undefined ? readdirSync(place.spool) : [];
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** What stands there and is none of ours holds nothing of ours. */
function refusalOf(place: JournalPlace): string | undefined {
  const found = lstatSync(place.spool, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isSymbolicLink()) return "spool/ is a symbolic link";
  if (!found.isDirectory()) return "spool/ is not a directory";
  const reason = refusalOfOwner(place.spool, found);
  return reason === undefined ? undefined : `spool/: ${reason}`;
}

/**
 * Keeps entries for the next writer.
 *
 * @returns how many files of others had to go for it
 * @throws an error where something else is in its place; that of the system call: ENOSPC, EACCES,
 *   EROFS …; nothing is kept then
 * Blocks: two fsyncs.
 */
export function addToSpool(place: JournalPlace, entries: readonly NamedEntry[]): number {
  faultPoint("journal.spool", {
    entries: entries.map(({ entry }) => entry.kind),
    run: runIdOf(entries[0]),
  });
  const refusal = refusalOf(place);
  if (refusal !== undefined) throw new WatchdogError("state.refused", refusal);
  makeStateDirectory(place.spool);
  const names = listSpool(place);
  const last = Number(NAME.exec(names.at(-1) ?? "")?.[1] ?? 0);
  const name = `${String(last + 1).padStart(10, "0")}-${crypto.randomUUID()}.json`;
  const tooMany = names.slice(0, Math.max(0, names.length + 1 - MOST_FILES));
  if (tooMany.length > 0) countDropped(place, tooMany.length);
  for (const old of tooMany) removeSpooled(place, old);
  const content = JSON.stringify({ format: FORMAT, entries });
  replaceSpooled(`${place.spool}/${name}`, `${content}\n`);
  return tooMany.length;
}

function runIdOf(named: NamedEntry | undefined): string | null {
  const entry = named?.entry;
  if (entry === undefined) return null;
  if ("runId" in entry) return entry.runId;
  return "run" in entry ? entry.run.run_id : null;
}

export type SpooledFile =
  | { readonly kind: "entries"; readonly entries: readonly NamedEntry[] }
  | { readonly kind: "newer" }
  | { readonly kind: "bad" }
  | { readonly kind: "gone" };

/** @throws the error of the system call, but for ENOENT */
export function readSpooled(place: JournalPlace, name: string): SpooledFile {
  const text = readWhole(`${place.spool}/${name}`);
  if (text === undefined) return { kind: "gone" };
  if (text === "bad") return { kind: "bad" };
  try {
    const found: unknown = JSON.parse(text);
    return judge(found);
  } catch {
    return { kind: "bad" }; // SyntaxError: a disk that lost its last writes
  }
}

function judge(found: unknown): SpooledFile {
  if (typeof found !== "object" || found === null) return { kind: "bad" };
  const { format, entries } = found as Partial<Record<string, unknown>>;
  if (typeof format === "number" && format > FORMAT) return { kind: "newer" };
  if (format !== FORMAT || !Array.isArray(entries)) return { kind: "bad" };
  return entries.every(isNamedEntry) ? { kind: "entries", entries } : { kind: "bad" };
}

function readWhole(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (codeOf(error) === "ELOOP") return "bad";
    throw error;
  }
  try {
    const found = fstatSync(fd);
    const isOurs = found.isFile() && refusalOfOwner(path, found) === undefined;
    if (!isOurs || found.size > LONGEST_FILE) return "bad";
    const bytes = Buffer.alloc(found.size);
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}

export function removeSpooled(place: JournalPlace, name: string): void {
  ignoreGone(() => unlinkSync(`${place.spool}/${name}`));
}

export function markBad(place: JournalPlace, name: string): void {
  ignoreGone(() => renameSync(`${place.spool}/${name}`, `${place.spool}/${name}.bad`));
}

/** ENOENT: another writer has read it in, which is what we wanted. */
function ignoreGone(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** How many files have gone unread since this was last asked. */
export function takeDropped(place: JournalPlace): number {
  const count = readDropped(place);
  if (count > 0) removeSpooled(place, "dropped");
  return count;
}

/** Two that count at once may count one: it is a number for people. */
function countDropped(place: JournalPlace, count: number): void {
  replaceSpooled(`${place.spool}/dropped`, `${readDropped(place) + count}\n`);
}

function replaceSpooled(path: string, content: string): void {
  replaceFile(path, content, fileModeAt(path));
}

function readDropped(place: JournalPlace): number {
  const count = Number(readWhole(`${place.spool}/dropped`) ?? 0);
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}
