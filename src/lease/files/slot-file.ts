/**
 * `beat.<generation>`: the file of a slot. Its name takes the number, its bytes are the heartbeat.
 * Knows when it may be read, not what a beat means.
 *
 * Guarantees: a number is taken by one creator alone, and stays taken after a crash; a beat is one
 * write of SLOT_BYTES in place, so it needs no room on a full disk, and a holder that was paused in
 * the middle of it can only touch the slot of its own generation. Non-guarantees: that a beat
 * survives a power cut (no fsync). Clock: none. Crash behaviour: an empty slot is a number that
 * nobody was granted.
 */
import { closeSync, writeSync } from "node:fs";
import type { Slot } from "../../core/lease-record.ts";
import { syncDirectory } from "../../os/files.ts";
import { createStateFile } from "../../os/state-sharing.ts";
import { pauseThread } from "../../os/timers.ts";
import { readOwnFile } from "./own-file.ts";
import { type LeasePlace, slotPath } from "./places.ts";
import { decodeSlot, encodeSlot, SLOT_BYTES, type WholeSlot } from "./slot.ts";

const MOST_READS = 5;
const PAUSE_MS = 2;
/** A slot of a later version may be longer; what is behind SLOT_BYTES is not ours. */
const LONGEST_SLOT_BYTES = 65_536;

/** "empty": the number is taken, nothing was granted yet. "unread": it cannot be read as one. */
export type SlotReading = Slot | "missing" | "empty" | "unread";

/**
 * Step A7: takes a number. The caller closes the descriptor.
 *
 * @throws the error of the system call: EEXIST where the number is taken, ENOSPC …; where fsync(2)
 *   of the directory failed, the number stays taken
 * Blocks: one fsync.
 */
export function createSlot(place: LeasePlace, generation: number): number {
  const fd = createStateFile(slotPath(place, generation));
  try {
    syncDirectory(place.directory);
    return fd;
  } catch (cause) {
    closeSync(fd);
    throw cause;
  }
}

/** One beat. @throws the error of the system call; ENOSPC also for a write that was cut short */
export function writeSlot(fd: number, slot: WholeSlot): void {
  const written = writeSync(fd, encodeSlot(slot), 0, SLOT_BYTES, 0);
  if (written === SLOT_BYTES) return;
  // pwrite(2): a short count on a regular file is a full disk, a quota, or a limit of file sizes.
  throw Object.assign(new Error(`ENOSPC: ${written} of ${SLOT_BYTES} bytes written`), {
    code: "ENOSPC",
  });
}

/**
 * Reads a slot that may be written at this moment: up to five reads, 2 ms apart, until both parts
 * are whole. A slot whose body never is comes without it.
 */
export function readSlot(path: string): SlotReading {
  let reading: SlotReading = "unread";
  for (let reads = 1; reads <= MOST_READS; reads += 1) {
    if (reads > 1) pauseThread(PAUSE_MS);
    const file = readOwnFile(path, LONGEST_SLOT_BYTES);
    if (file.kind === "missing") return "missing";
    if (file.kind !== "read") return "unread";
    if (file.bytes.length === 0) return "empty";
    const slot = decodeSlot(file.bytes);
    if (slot?.body !== undefined) return slot;
    reading = slot ?? reading;
  }
  return reading;
}
