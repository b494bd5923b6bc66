/**
 * Whether a directory of the state is private or shared by a group, what mode a file in it gets,
 * and whose files in it count as ours. Decides nothing about what is stored there.
 *
 * Each directory says it itself: shared is what is setgid and open to its group and to nobody else
 * (2770, inode(7)), and what is made in it inherits the group and that bit. So every thread, the
 * guard and every later command come to the same answer without being told. Costs one lstat(2) for
 * a file that is made, and for one that belongs to somebody else; nothing for the rest.
 *
 * Whoever may write into a shared directory may replace any file in it: the group is trusted with
 * all of it. State after a crash: none of its own; a file that was created and not yet opened to
 * the group stays with its owner until that one opens it again.
 */
import { chmodSync, closeSync, constants, fchmodSync, lstatSync, mkdirSync } from "node:fs";
import { openSync, statSync } from "node:fs";

export interface Sharing {
  readonly directoryMode: number;
  readonly fileMode: number;
  /** What creates just these modes: then no moment is left in which a file has another one. */
  readonly umask: number;
  /** Whose files count as ours besides our own; undefined: nobody's. */
  readonly gid: number | undefined;
}

const PRIVATE: Sharing = {
  directoryMode: 0o700,
  fileMode: 0o600,
  umask: 0o077,
  gid: undefined,
};

/** With what a shared directory is made, and what is kept of its group's number. */
export function sharedBy(gid: number): Sharing {
  return { directoryMode: 0o2770, fileMode: 0o660, umask: 0o007, gid };
}

const GROUP_SHARES = 0o2070;
const OTHERS = 0o007;
const PERMISSIONS = 0o7777;

/** What is known of a file, by stat(2) with or without big integers. */
export interface Owned {
  readonly uid: number | bigint;
  readonly gid: number | bigint;
  readonly mode: number | bigint;
}

export function sharingIn(directory: Owned): Sharing {
  const mode = Number(directory.mode);
  const isShared = (mode & GROUP_SHARES) === GROUP_SHARES && (mode & OTHERS) === 0;
  return isShared ? sharedBy(Number(directory.gid)) : PRIVATE;
}

/** By the directory itself; one that is not there, or not ours to see, is private. */
export function sharingOf(directory: string): Sharing {
  try {
    return sharingIn(lstatSync(directory));
  } catch {
    return PRIVATE; // ENOENT, EACCES: whatever is done in it next says so
  }
}

/**
 * What this process makes from now on has the modes of a state directory from its first moment.
 * @returns how to give the umask back, before somebody else's program is started
 */
export function takeUmaskOf(directory: string): () => void {
  const before = process.umask(sharingOf(directory).umask);
  return () => void process.umask(before);
}

/** What holds for a file, by the directory that it lies in. */
export function sharingAround(path: string): Sharing {
  return sharingOf(directoryOf(path));
}

/** The mode of a file of the state: 0600, or 0660 in a shared directory. */
export function fileModeAt(path: string): number {
  return sharingAround(path).fileMode;
}

function directoryOf(path: string): string {
  const end = path.replace(/\/+$/, "").lastIndexOf("/");
  return end <= 0 ? path.slice(0, end + 1) || "." : path.slice(0, end);
}

/**
 * Why what stands at a path is not for us to use, by its owner; undefined: it is our own, or we
 * share the directory with whoever made it.
 */
export function refusalOfOwner(path: string, found: Owned): string | undefined {
  const uid = process.geteuid?.() ?? 0;
  if (Number(found.uid) === uid) return undefined;
  const { gid } = sharingAround(path);
  if (gid === undefined) return `it belongs to uid ${found.uid}, expected uid ${uid}`;
  if (Number(found.gid) === gid || Number(found.uid) === 0) return undefined;
  const whose = `uid ${found.uid} and group ${found.gid}`;
  return `it belongs to ${whose}, expected uid ${uid} or group ${gid}`;
}

/**
 * Gives an open file the mode of its place, whatever the umask and default ACLs have made of it.
 * Somebody else's stays: only its owner can, and he will.
 *
 * @throws the error of fchmod(2)
 */
export function settleMode(fd: number, found: Owned, fileMode: number): void {
  if ((Number(found.mode) & PERMISSIONS) === fileMode) return;
  const uid = process.geteuid?.() ?? 0;
  if (uid === 0 || Number(found.uid) === uid) fchmodSync(fd, fileMode);
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;

/**
 * A new file for reading and writing with the mode of its place, close-on-exec; never through a
 * link. The caller closes it.
 *
 * @throws the error of the system call: EEXIST where something is there, ENOENT, ENOSPC …
 */
export function createStateFile(path: string): number {
  const { fileMode } = sharingAround(path);
  const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK, fileMode);
  try {
    fchmodSync(fd, fileMode); // a umask may have taken away our own rights
    return fd;
  } catch (cause) {
    closeSync(fd);
    throw cause;
  }
}

/**
 * A directory of the state with all that is missing above it, 0700 or 2770 like the one that they
 * are made in, whatever the umask; fine if it is there.
 *
 * @throws the error of mkdir(2); EEXIST where something else is in its place
 */
export function makeStateDirectory(path: string): void {
  if (isDirectory(path)) return;
  const above = directoryOf(path);
  if (above !== path) makeStateDirectory(above);
  makeOne(path, sharingOf(above));
  if (!isDirectory(path)) throw mistaken(path);
}

/** The error of mkdir(2) for a path where something else is, or ENOENT where it was removed. */
function mistaken(path: string): Error {
  const code = lstatSync(path, { throwIfNoEntry: false }) === undefined ? "ENOENT" : "EEXIST";
  return Object.assign(new Error(`${code}: it is no directory, mkdir '${path}'`), { code });
}

/**
 * One directory, whose parent is there.
 * @returns "there" where something of that name is there, whatever it is
 * @throws the error of mkdir(2)
 */
export function makeOneStateDirectory(path: string): "made" | "there" {
  return makeOne(path, sharingAround(path));
}

function makeOne(path: string, { directoryMode }: Sharing): "made" | "there" {
  try {
    mkdirSync(path, { mode: directoryMode & 0o777 }); // the kernel hands the setgid bit down
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return "there";
    throw cause;
  }
  chmodSync(path, directoryMode);
  return "made";
}

/** Also by a link: `/var/run` is one, and what the last step may be the caller has checked. */
function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
