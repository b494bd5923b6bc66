/**
 * How much room the file system of the state directory has for an ordinary user, and whether that
 * is little. Clock: none.
 */
import { statfsSync } from "node:fs";
import type { RoomSight } from "./request.ts";

/**
 * The journal needs 1 MiB to be touched at all (journal/room.ts); a log of one run is 10 MiB at
 * most by default, so that some runs are still recorded whole after it was told.
 */
export const LOW_ROOM_BYTES = 64 * 1024 ** 2;
export const LOW_INODES = 256;

/** Undefined: it cannot be told, or nothing is counted (tmpfs without a limit). */
export function readRoom(directory: string): RoomSight | undefined {
  try {
    const { blocks, bavail, bsize, files, ffree } = statfsSync(directory);
    if (blocks === 0) return undefined;
    const freeBytes = bavail * bsize;
    // btrfs and others make inodes as they need them, and say 0 of both.
    const lacksInodes = files > 0 && ffree < LOW_INODES;
    const isLow = freeBytes < LOW_ROOM_BYTES || lacksInodes;
    return { freeBytes, totalBytes: blocks * bsize, isLow };
  } catch {
    return undefined; // ENOENT: nothing ran yet. EACCES, EIO: the other looks say so.
  }
}
