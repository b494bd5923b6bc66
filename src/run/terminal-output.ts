/**
 * Output that the command writes to a terminal (or any descriptor that it inherited) is never seen
 * by watchdog; that there was some shows in the times of the device (tty(4): updated on writes, at
 * most every eight seconds) or the size of the file.
 */
import { fstatSync } from "node:fs";
import type { MonotonicAt } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";

/** @returns a function that tells when a change was noticed last; it notices when it is asked */
export function watchTerminals(descriptors: readonly number[]): () => MonotonicAt | undefined {
  let seen = readChanges(descriptors);
  let changedAt: MonotonicAt | undefined;
  return () => {
    const now = readChanges(descriptors);
    if (now !== seen) changedAt = monotonicNow();
    seen = now;
    return changedAt;
  };
}

function readChanges(descriptors: readonly number[]): string {
  return descriptors.map(readChange).join(" ");
}

function readChange(fd: number): string {
  try {
    const found = fstatSync(fd, { bigint: true });
    return `${found.mtimeNs}:${found.size}`;
  } catch {
    return "closed"; // EBADF
  }
}
