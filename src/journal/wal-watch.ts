/**
 * Whether anybody has written to the database since, by what its -wal looks like: each commit
 * writes there first (sqlite.org/wal.html), and a look at it costs a fraction of a question to
 * SQLite. Refuses to know what was written.
 *
 * Always: `isStill` is true only where nobody has committed between the two looks. Two writes
 * within one tick of the file system's clock (10 ms at most, CONFIG_HZ of 100) may look like one:
 * therefore what was written a moment ago is never taken for still. It opens nothing. Clock: the
 * wall clock, which the file system goes by; where it was set back, it is asked more often and
 * nothing else. State after a crash: none.
 */
import { lstatSync } from "node:fs";
import { wallNow } from "../os/clock.ts";

const SETTLED_MS = 100;
const MAY_BE_MISSING = { throwIfNoEntry: false } as const;

export interface WalStamp {
  readonly inode: number;
  readonly size: number;
  readonly writtenAt: number;
}

/**
 * @param path  of the -wal
 * @returns undefined: there is none, or it was written a moment ago
 */
export function stampSettledWal(path: string): WalStamp | undefined {
  const found = lstatSync(path, MAY_BE_MISSING);
  if (found === undefined || wallNow() - found.mtimeMs < SETTLED_MS) return undefined;
  return { inode: found.ino, size: found.size, writtenAt: found.mtimeMs };
}

export function isStill(before: WalStamp | undefined, now: WalStamp | undefined): boolean {
  if (before === undefined || now === undefined) return false;
  const isSameFile = before.inode === now.inode && before.size === now.size;
  return isSameFile && before.writtenAt === now.writtenAt;
}
