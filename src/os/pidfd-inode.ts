/**
 * The inode of a process's pidfd: one per process and boot, never used again, where the kernel has
 * a file system of its own for them (pidfs, Linux 6.9). It tells two processes apart that had the
 * same pid and the same start tick.
 */
import { fstatSync, statfsSync } from "node:fs";
import { sys } from "./sys.ts";

/** PID_FS_MAGIC of linux/magic.h; before pidfs all pidfds share one inode. */
const PIDFS = 0x50494446;

/** 0 where there is none to tell: an older kernel, or the process is gone. */
export function readPidfdInode(pid: number): number {
  const pidfd = sys.pidfdOpen(pid);
  if (pidfd < 0) return 0; // ESRCH, EINVAL: gone. ENOSYS: before 5.3.
  try {
    return inodeOfPidfd(pidfd);
  } finally {
    sys.close(pidfd);
  }
}

/** The same by an open pidfd, whose process may have ended meanwhile. */
export function inodeOfPidfd(pidfd: number): number {
  try {
    if (statfsSync(`/proc/self/fd/${pidfd}`).type !== PIDFS) return 0;
    const inode = fstatSync(pidfd, { bigint: true }).ino;
    return inode <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(inode) : 0;
  } catch {
    return 0; // no /proc: nothing can be told
  }
}
