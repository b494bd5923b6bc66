/**
 * Locks of several keys, all or none: steps A1 to A3. Knows nothing of records and verdicts.
 *
 * Guarantees: a lock that is handed out was, at that moment, the one that the path leads to; after
 * "busy", "unaskable" or an error none is held any more. Non-guarantees: that the path still leads
 * there later (`isThePath` asks again). Clock: none. Crash behaviour: the kernel frees the locks;
 * empty directories and lock files remain, and they are nobody's lease.
 */
import { closeSync, existsSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import { renderKey } from "../../core/lease-key.ts";
import { faultPoint } from "../../os/faults.ts";
import { nameErrno } from "../../os/sys.ts";
import { MOST_REPLACEMENTS, replacedTooOften, troubleWith } from "../files/failure.ts";
import { isThePath, openLock, tryLock } from "../files/lock-file.ts";
import { codeOf } from "../files/own-file.ts";
import { type LeasePlace, makePlace } from "../files/places.ts";

export interface LockedKey {
  readonly place: LeasePlace;
  readonly fd: number;
  /** `device:inode` */
  readonly inode: string;
}

export type LockAttempt =
  | { readonly kind: "locked"; readonly locks: readonly LockedKey[] }
  | { readonly kind: "busy"; readonly place: LeasePlace }
  | { readonly kind: "unaskable"; readonly place: LeasePlace; readonly reason: string };

/** Told of keys that nobody has asked for before, or not since they were swept. */
export type OnNewPlace = (place: LeasePlace) => void;

/**
 * Asks for each key once, in the order given, and never waits.
 *
 * @param had  a lock that is held already, because a wait has ended with it; it is given back like
 *   the others where one is busy
 * @throws WatchdogError "lease.refused", "lease.unusable"; the error of an injected fault
 */
export function lockAll(
  places: readonly LeasePlace[],
  had: LockedKey | undefined,
  onNew: OnNewPlace,
): LockAttempt {
  const held = new Map<LeasePlace, LockedKey>();
  if (had !== undefined) held.set(had.place, had);
  let isKept = false;
  try {
    for (const place of places) {
      if (held.has(place)) continue;
      const attempt = lockOne(place, onNew);
      if (attempt.kind !== "locked") return attempt;
      held.set(place, attempt.lock);
    }
    isKept = true;
    return { kind: "locked", locks: places.flatMap((place) => held.get(place) ?? []) };
  } finally {
    if (!isKept) releaseLocks([...held.values()]);
  }
}

type OneAttempt =
  { readonly kind: "locked"; readonly lock: LockedKey } | Exclude<LockAttempt, { kind: "locked" }>;

function lockOne(place: LeasePlace, onNew: OnNewPlace): OneAttempt {
  for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
    const opened = openForLock(place, onNew);
    if (opened === undefined) continue;
    const attempt = lockOpened(opened);
    if (attempt !== "replaced") return attempt;
  }
  throw replacedTooOften(place);
}

/** A2 and A3 of one descriptor, which is closed again unless its lock is had. */
function lockOpened(opened: LockedKey): OneAttempt | "replaced" {
  const { place, fd } = opened;
  let isKept = false;
  try {
    faultPoint("acquire.A2", { key: renderKey(place.key), isLocked: false });
    const answer = tryLock(fd, "exclusive");
    if (answer === "busy") return { kind: "busy", place };
    if (answer !== "locked") {
      return { kind: "unaskable", place, reason: `${place.lock}: ${nameErrno(answer.errno)}` };
    }
    isKept = isStillThere(opened);
    return isKept ? { kind: "locked", lock: opened } : "replaced";
  } finally {
    if (!isKept) closeSync(fd);
  }
}

/** A3, right after the lock was had. */
export function isStillThere(lock: LockedKey): boolean {
  faultPoint("acquire.A3", { key: renderKey(lock.place.key), isLocked: true });
  return isThePath(lock.fd, lock.place.lock);
}

/**
 * A1: the directory and the lock file, made where they are missing.
 * @returns undefined where the directory was removed in between (sweep.ts): try again
 */
export function openForLock(place: LeasePlace, onNew: OnNewPlace): LockedKey | undefined {
  faultPoint("acquire.A1", { key: renderKey(place.key), isLocked: false });
  if (!makeDirectories(place, onNew)) return undefined;
  const opened = openLock(place.lock, "create");
  if (opened.kind === "open") return { place, fd: opened.fd, inode: opened.inode };
  if (opened.kind === "missing") return undefined;
  throw troubleWith(place.lock, opened);
}

function makeDirectories(place: LeasePlace, onNew: OnNewPlace): boolean {
  try {
    // The directory of a checkout was made to remember where it is (worktree-place.ts).
    if (makePlace(place) === "made" || !existsSync(place.lock)) onNew(place);
    return true;
  } catch (error) {
    // It was there for mkdir(2) and gone for the look at it: swept.
    if (error instanceof WatchdogError && codeOf(error.cause) === "ENOENT") return false;
    throw error;
  }
}

export function releaseLocks(locks: readonly LockedKey[]): void {
  for (const lock of locks) closeSync(lock.fd);
}
