/**
 * Short mutual exclusion among the writers of one journal by flock(2), asked once and never waited
 * for: who finds it taken comes back later. The kernel lets go when the holder dies.
 */
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { findFfiTrouble } from "../os/libc.ts";
import { fileModeAt, settleMode } from "../os/state-sharing.ts";
import { LOCK_EX, LOCK_NB, sys } from "../os/sys.ts";

const { O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

export const BUSY = { kind: "busy" } as const;

/**
 * Acts while holding the lock of a file, which is made where it is missing.
 * @returns what the act returns, or "busy"
 * @throws what the act throws; the error of open(2)
 */
export function withLock<T>(path: string, act: () => T): T | typeof BUSY {
  const mode = fileModeAt(path);
  const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode);
  try {
    settleMode(fd, fstatSync(fd), mode);
    return actLocked(fd, act);
  } finally {
    closeSync(fd);
  }
}

/** The same with the lock of a directory that is there. */
export function withDirectoryLock<T>(path: string, act: () => T): T | typeof BUSY {
  const fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    return actLocked(fd, act);
  } finally {
    closeSync(fd);
  }
}

function actLocked<T>(fd: number, act: () => T): T | typeof BUSY {
  return findFfiTrouble() !== undefined || sys.flock(fd, LOCK_EX | LOCK_NB) < 0 ? BUSY : act();
}
