/**
 * Whether a process that has the pid and the start tick of a recorded one is another: a pid that is
 * used again within the 10 ms of a tick. Signals nobody, and decides nothing about who is a member.
 *
 * Guarantees: yes only where both inodes are known and differ; a pidfd inode is never used again in
 * a boot (os/pidfd-inode.ts). Non-guarantee: where one of them is not known the pid and the start
 * are all there is. Clock: none. State after a crash: none.
 */
import type { RecordedProcess } from "../core/survivors-view.ts";
import { inodeOfPidfd, readPidfdInode } from "../os/pidfd-inode.ts";

export function isStranger({ pid, pidfd_inode: recorded }: RecordedProcess): boolean {
  return recorded !== undefined && differs(recorded, readPidfdInode(pid));
}

/** The same by the descriptor through which it would be signalled. */
export function isStrangerAt(pidfd: number, recorded: number | undefined): boolean {
  return recorded !== undefined && differs(recorded, inodeOfPidfd(pidfd));
}

function differs(recorded: number, found: number): boolean {
  return recorded !== 0 && found !== 0 && recorded !== found;
}
