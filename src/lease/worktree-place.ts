/**
 * The key of a checkout: one tree, one key, whichever path it is reached by. The name of the key is
 * the real path of the top level; a file `place` in the key's directory remembers which directory
 * that was (device and inode), so that a bind mount of the same tree meets the same key.
 *
 * Guarantees: two paths to one directory give one key, as long as a run holds it or the path that
 * names the key still leads there; then it is the same key for everybody. Non-guarantees: a tree
 * that is moved in the moment between this and the lock. Clock: the wall clock marks a `place` as
 * used, for the sweep. Crash behaviour: the old `place` or the new one; a directory without a
 * record is nobody's lease.
 */
import { realpathSync, statSync, unlinkSync, utimesSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { type LeaseKey, LONGEST_KEY_NAME } from "../core/lease-key.ts";
import { wallNow } from "../os/clock.ts";
import { replaceFile } from "../os/files.ts";
import { readMachine } from "../os/machine.ts";
import { fileModeAt, makeStateDirectory } from "../os/state-sharing.ts";
import { findTopLevel, readBranch } from "./checkout.ts";
import { withDirectoryLock } from "./files/directory-lock.ts";
import { asFailure } from "./files/failure.ts";
import { listKeys } from "./list.ts";
import { askLock, inodeAt } from "./files/lock-file.ts";
import { codeOf, readOwnFile, textOf } from "./files/own-file.ts";
import { type LeasePlace, makePlace, placeOf } from "./files/places.ts";
import { readRecord } from "./files/record-file.ts";

const KIND = "worktree";
const PLACE_FORMAT = 1;
const LONGEST_PLACE_BYTES = 8192;

export interface WorktreeKey {
  readonly key: LeaseKey;
  /** The real path of the top level, as seen from here. */
  readonly worktree: string;
  /** The branch that is checked out; null: detached, or no git. */
  readonly branch: string | null;
}

/** What a `place` remembers. */
interface Remembered {
  /** `device:inode` of the top level. */
  readonly inode: string;
  readonly path: string;
  readonly bootId: string;
}

/**
 * Finds the top level of the checkout (the path itself where there is no git), and its key.
 *
 * @throws WatchdogError "lease.refused" (no such directory, a path too long), "lease.unusable"
 *   (EACCES, ENOSPC …)
 * Blocks: two fsyncs for a tree that is new, and up to a second for others that do the same.
 */
export function resolveWorktreeKey(stateDirectory: string, path: string): WorktreeKey {
  const worktree = findTopLevel(realPathOf(path));
  if (worktree.length > LONGEST_KEY_NAME) {
    throw refuse(path, `its real path has more than ${LONGEST_KEY_NAME} characters`);
  }
  const own = placeOf(stateDirectory, { kind: KIND, name: worktree });
  try {
    makeStateDirectory(own.kindDirectory);
    const key = withDirectoryLock(own.kindDirectory, () => settleKey(stateDirectory, own));
    return { key, worktree, branch: readBranch(worktree) };
  } catch (error) {
    throw asFailure(error);
  }
}

/**
 * The key of a checkout for whoever only looks: nothing is made, and nothing is remembered of a
 * tree that nobody has run in.
 *
 * @throws WatchdogError "lease.refused" as `resolveWorktreeKey`; "state.unusable"
 */
export function findWorktreeKey(stateDirectory: string, path: string): LeaseKey {
  const worktree = findTopLevel(realPathOf(path));
  const own = { kind: KIND, name: worktree };
  const inode = inodeAt(worktree);
  const alias = listKeys(stateDirectory).find((key) => {
    if (key.kind !== KIND || key.name === worktree) return false;
    const place = placeOf(stateDirectory, key);
    const found = readPlace(place);
    return found !== undefined && found.inode === inode && isPlaceOf(place, found);
  });
  return alias ?? own;
}

function realPathOf(path: string): string {
  let real: string;
  try {
    real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    throw refuse(path, textOf(cause));
  }
  throw refuse(path, "it is not a directory");
}

function settleKey(stateDirectory: string, own: LeasePlace): LeaseKey {
  const worktree = own.key.name;
  const { dev, ino } = statSync(worktree, { bigint: true });
  const remembered = { inode: `${dev}:${ino}`, path: worktree, bootId: readMachine().bootId };
  const alias = findAlias(stateDirectory, own, remembered);
  if (alias !== undefined) {
    touch(alias);
    return alias.key;
  }
  makePlace(own);
  const before = readPlace(own);
  if (before?.inode === remembered.inode && before.bootId === remembered.bootId) {
    touch(own);
  } else if (before === undefined || !isInUse(own)) {
    // While a run holds this name for a tree that was moved away, the file stays that tree's.
    writePlace(own, remembered);
  }
  return own.key;
}

/** Another key that stands for this very directory, by its inode. */
function findAlias(
  stateDirectory: string,
  own: LeasePlace,
  wanted: Remembered,
): LeasePlace | undefined {
  for (const key of listKeys(stateDirectory)) {
    if (key.kind !== KIND || key.name === own.key.name) continue;
    const place = placeOf(stateDirectory, key);
    const found = readPlace(place);
    if (found?.inode !== wanted.inode) continue;
    if (isPlaceOf(place, found)) return place;
    removeFile(fileOf(place));
  }
  return undefined;
}

/**
 * Whether a `place` that names the inode we look for is still of that directory. If the path leads
 * elsewhere, it was moved, is no more mounted here, or was removed and its inode given to another
 * one: then only who runs in it now counts, and device numbers of another boot mean nothing.
 */
function isPlaceOf(place: LeasePlace, found: Remembered): boolean {
  if (inodeAt(found.path) === found.inode) return true;
  return found.bootId === readMachine().bootId && isInUse(place);
}

/** Held, or left by an owner of which nobody knows yet whether its tree is empty. */
function isInUse(place: LeasePlace): boolean {
  if (askLock(place.lock).kind !== "free") return true;
  const reading = readRecord(place.record);
  if (reading.kind === "none") return false;
  return reading.kind !== "read" || reading.record.state !== "released";
}

function fileOf(place: LeasePlace): string {
  return `${place.directory}/place`;
}

/** Undefined: none, or nothing that can be read as one; it is written anew. */
function readPlace(place: LeasePlace): Remembered | undefined {
  const file = readOwnFile(fileOf(place), LONGEST_PLACE_BYTES);
  if (file.kind !== "read") return undefined;
  try {
    const value = JSON.parse(new TextDecoder().decode(file.bytes));
    const { format, inode, path, boot_id: bootId } = value;
    const isPlace = [inode, path, bootId].every((field) => typeof field === "string");
    return format === PLACE_FORMAT && isPlace ? { inode, path, bootId } : undefined;
  } catch {
    return undefined; // SyntaxError, or a TypeError for null: cut off, zeroed or edited
  }
}

function writePlace(place: LeasePlace, { inode, path, bootId }: Remembered): void {
  const content = { format: PLACE_FORMAT, inode, path, boot_id: bootId };
  const target = fileOf(place);
  replaceFile(target, `${JSON.stringify(content)}\n`, fileModeAt(target));
}

/** Used again: the sweep leaves a directory alone for 30 days from now. */
function touch(place: LeasePlace): void {
  const now = wallNow() / 1000;
  try {
    utimesSync(fileOf(place), now, now);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
    // Somebody else's of a shared directory: only he sets its times, and all may replace it.
    const found = readPlace(place);
    if (found !== undefined) writePlace(place, found);
  }
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

function refuse(path: string, reason: string): WatchdogError {
  return new WatchdogError("lease.refused", `worktree ${path}: ${reason}`, {
    hint: "watchdog run --worktree DIRECTORY -- COMMAND",
  });
}
