/**
 * Whether the file system of a journal has room enough for it to be touched at all.
 *
 * SQLite maps `journal.db-shm` into memory and writes one byte into each 4096 of it beforehand
 * (sqlite.org/wal.html, "The WAL-Index File"). Where blocks are smaller than a page (ext4 -b 1024),
 * or are written anew each time (btrfs), a store into that memory still needs room on the disk, and
 * where there is none the kernel answers with SIGBUS (mmap(2)): the supervisor would be dead for
 * the sake of its journal. SQLite cuts the file off and makes it grow again by itself, so that
 * nobody can reserve it.
 *
 * Non-guarantees: who fills the disk between the look and the store. Clock: none.
 */
import { statfsSync } from "node:fs";
import type { Trouble } from "./trouble.ts";

/**
 * Many times the 32 KiB of a -shm: others write while we do, and the -wal needs room too.
 */
export const LEAST_ROOM_BYTES = 1_048_576;

/** The same text each time, so that it is told once. */
const LACK: Trouble = {
  kind: "unusable",
  reason: `its file system is nearly full (less than ${LEAST_ROOM_BYTES / 1_048_576} MiB is free)`,
};

/**
 * Asks statfs(2) for what an ordinary user may still write.
 * @returns undefined: there is room, or the file system does not count (tmpfs without a limit)
 * @throws the error of statfs(2)
 */
export function findLackOfRoom(directory: string): Trouble | undefined {
  const { blocks, bavail, bsize } = statfsSync(directory, { bigint: true });
  return blocks > 0n && bavail * bsize < BigInt(LEAST_ROOM_BYTES) ? LACK : undefined;
}
