/**
 * The group that shares a state directory: whether it is one of ours, whether a directory is shared
 * by it, and how one comes to be. Knows nothing of what lies in the directory
 * (os/state-sharing.ts: how the files in it are made).
 *
 * Always: only an empty directory of our own is opened to a group; what has files in it is never
 * changed. State after a crash: an empty private directory, which the next start with the same
 * group finishes.
 */
import { chmodSync, chownSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { sharedBy } from "./state-sharing.ts";
import { pauseThread } from "./timers.ts";
import { findGroup, isMember, nameGroup } from "./users.ts";

const PRIVATE_DIRECTORY = 0o700;
/** How long another first starter may take between mkdir(2) and chmod(2). */
const MOST_LOOKS = 100;
const PAUSE_MS = 10;

export type OwnGroup =
  | { readonly kind: "found"; readonly gid: number }
  | { readonly kind: "refused"; readonly reason: string; readonly hint: string };

/** By name or number. Root need not be in it: it makes the directory for those who are. */
export function findOwnGroup(group: string): OwnGroup {
  const gid = findGroup(group);
  if (gid === undefined) {
    return { kind: "refused", reason: `there is no group '${group}'`, hint: "getent group" };
  }
  if (isMember(gid) || process.geteuid?.() === 0) return { kind: "found", gid };
  return { kind: "refused", reason: `we are not in the group '${group}'`, hint: "id" };
}

/** Exactly 2770: a sticky bit, for one, would keep one of the group from replacing files. */
export function isShared(found: Stats, gid: number): boolean {
  return found.gid === gid && (found.mode & 0o7777) === sharedBy(gid).directoryMode;
}

/**
 * Shared, and by a group that we are in, or our own. Root could enter every directory, and shares
 * only those: another user must not choose what it trusts.
 */
export function isSharedWithUs(found: Stats): boolean {
  const isOurs = found.uid === process.getuid?.() || isMember(found.gid);
  return found.isDirectory() && isShared(found, found.gid) && isOurs;
}

/** For a look, which trusts nothing and leaves nothing. */
export function isOpenToRoot(found: Stats): boolean {
  return process.geteuid?.() === 0 && found.isDirectory() && isShared(found, found.gid);
}

/** `mode 700 and group alice`; of a number: what a directory shared by that group has. */
export function nameSharingWords(wanted: Stats | number): string {
  const isGroup = typeof wanted === "number";
  const mode = isGroup ? sharedBy(wanted).directoryMode : wanted.mode & 0o7777;
  return `mode ${mode.toString(8)} and group ${nameGroup(isGroup ? wanted : wanted.gid)}`;
}

/**
 * Opens to a group what is empty and our own: just made, or left by a start that was killed in
 * between. Where another user is at that place, it waits for him, a second at most. Anything else
 * stays as it is.
 *
 * @throws the error of the system call
 */
export function shareWith(path: string, gid: number): void {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || !found.isDirectory()) return;
    if ((found.mode & 0o7777) !== PRIVATE_DIRECTORY) return;
    if (found.uid === (process.geteuid?.() ?? 0)) return openEmpty(path, found.uid, gid);
    pauseThread(PAUSE_MS);
  }
}

/** What is in it would stay private, so that a directory with files is for a person to open. */
function openEmpty(path: string, uid: number, gid: number): void {
  if (readdirSync(path).length > 0) return;
  chownSync(path, uid, gid); // first: the setgid bit is only had for a group that we are in
  chmodSync(path, sharedBy(gid).directoryMode);
}

/**
 * How to open a directory with files in it: all of them have to be the group's. Undefined where we
 * cannot, or that is not what is wrong.
 */
export function sharingHint(path: string, found: Stats, gid: number): string | undefined {
  const uid = process.geteuid?.() ?? 0;
  if (!found.isDirectory() || isShared(found, gid)) return undefined;
  if (uid !== 0 && found.uid !== uid) return undefined;
  const quoted = `'${path.replaceAll("'", "'\\''")}'`;
  return (
    `chgrp -R ${nameGroup(gid)} ${quoted} && chmod -R u=rwX,g=rwX,o= ${quoted} && ` +
    `find ${quoted} -type d -exec chmod g+s {} +`
  );
}
