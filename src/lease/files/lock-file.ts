/**
 * The lock of a lease: an empty file that is opened, locked by flock(2) and closed, and never
 * written, renamed or replaced. Knows nothing of generations and records.
 *
 * Guarantees: of two descriptors of one inode at most one is locked exclusively; the kernel frees
 * it when the last descriptor of that open file is closed, which is when its process is dead.
 * Non-guarantees: that the path still leads to the inode that is locked (`isThePath` asks), network
 * file systems (os/state-dir.ts refuses them). Clock: none. Crash behaviour: an empty file remains,
 * and it is nobody's lock.
 */
import { closeSync, constants, fstatSync, lstatSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import type { LockAnswer } from "../../core/evidence.ts";
import { fileModeAt, settleMode } from "../../os/state-sharing.ts";
import { EAGAIN, EINTR, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, nameErrno, sys } from "../../os/sys.ts";
import { codeOf, type FileTrouble, nameInode, openOwnFile } from "./own-file.ts";

const { O_CREAT, O_RDONLY, O_RDWR } = constants;
/** With LOCK_NB flock(2) does not wait; EINTR is tried again at most so often. */
const MOST_INTERRUPTIONS = 100;

/** `missing` with "create": the directory is gone (swept); make the place again. */
export type OpenedLock =
  { readonly kind: "open"; readonly fd: number; readonly inode: string } | FileTrouble;

/**
 * Opens the file of a lock, with the mode of its place whatever the umask. The caller closes the
 * descriptor.
 * @param how  "create" makes it where it is missing
 */
export function openLock(path: string, how: "create" | "existing"): OpenedLock {
  const opened = openOwnFile(path, how === "create" ? O_RDWR | O_CREAT : O_RDWR);
  if (opened.kind !== "open") return opened;
  const { fd, found } = opened;
  try {
    settleMode(fd, found, fileModeAt(path));
    return { kind: "open", fd, inode: nameInode(found) };
  } catch (cause) {
    closeSync(fd);
    return { kind: "unusable", code: codeOf(cause), reason: `its mode: ${String(cause)}` };
  }
}

export type LockResult = "locked" | "busy" | { readonly errno: number };

/**
 * Asks the kernel for the lock and never waits.
 * @returns "busy" where another open file holds it in a way that excludes this one; else the errno
 * @throws WatchdogError "os.no-ffi" where flock(2) cannot be called
 */
export function tryLock(fd: number, mode: "exclusive" | "shared"): LockResult {
  const operation = (mode === "exclusive" ? LOCK_EX : LOCK_SH) | LOCK_NB;
  for (let interruptions = 0; ; interruptions += 1) {
    const result = sys.flock(fd, operation);
    if (result >= 0) return "locked";
    if (result === -EAGAIN) return "busy";
    if (result !== -EINTR || interruptions >= MOST_INTERRUPTIONS) return { errno: -result };
  }
}

/** Gives the lock back and keeps the descriptor. @throws WatchdogError "lease.unusable" (EBADF) */
export function unlock(fd: number): void {
  const result = sys.flock(fd, LOCK_UN);
  if (result >= 0) return;
  throw new WatchdogError("lease.unusable", `a lock cannot be given back: ${nameErrno(result)}`);
}

/**
 * Step A3: whether the path leads to the open file. False where the file was replaced or removed
 * between open and lock, and where nothing can be told. That it has other names besides (a snapshot
 * made of hard links) does not matter: they are the same inode, and so the same lock.
 */
export function isThePath(fd: number, path: string): boolean {
  try {
    const open = fstatSync(fd, { bigint: true });
    const atPath = lstatSync(path, { bigint: true });
    return nameInode(open) === nameInode(atPath);
  } catch {
    return false; // ENOENT: removed. Anything else: not known to be the same.
  }
}

/** The inode that the path leads to; undefined: nothing there, "unread": it cannot be told. */
export function inodeAt(path: string): string | undefined | "unread" {
  try {
    return nameInode(lstatSync(path, { bigint: true }));
  } catch (cause) {
    return codeOf(cause) === "ENOENT" ? undefined : "unread";
  }
}

/**
 * The kernel's answer for a reader: a momentary LOCK_SH on a descriptor of its own. A newcomer that
 * meets that moment tries again (design A2). A missing file is free: nobody who follows the path
 * can hold it.
 */
export function askLock(path: string): LockAnswer {
  const opened = openOwnFile(path, O_RDONLY);
  if (opened.kind === "missing") return { kind: "free" };
  if (opened.kind !== "open") return { kind: "unaskable", reason: `${path}: ${opened.reason}` };
  try {
    const result = tryLock(opened.fd, "shared");
    if (result === "busy") return { kind: "held" };
    if (result === "locked") return { kind: "free" };
    return { kind: "unaskable", reason: `${path}: ${nameErrno(result.errno)}` };
  } catch (cause) {
    if (!(cause instanceof WatchdogError)) throw cause;
    return { kind: "unaskable", reason: cause.message };
  } finally {
    closeSync(opened.fd);
  }
}
