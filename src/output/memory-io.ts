/**
 * Reads and writes between a descriptor and memory given by address. Results as in `os/sys.ts`: 0
 * or more, or -errno. No retries, no policy. By address, because a view per chunk would be garbage
 * per chunk.
 */
import type { Pointer } from "bun:ffi";
import { faultPoint } from "../os/faults.ts";
import { errno, libc } from "../os/libc.ts";

declare const FAULT_BUILD: boolean;

const EIO = 5;

export function readInto(fd: number, address: number, length: number): number {
  const count = Number(libc().read(fd, address as Pointer, length));
  return count === -1 ? -errno() : count;
}

export function writeFrom(fd: number, address: number, length: number): number {
  const count = Number(libc().write(fd, address as Pointer, length));
  return count === -1 ? -errno() : count;
}

/**
 * The error that the fault build injects at this place as -errno; 0 for none, and always in the
 * release.
 */
export function injectedError(point: string, fd: number, length: number): number {
  if (typeof FAULT_BUILD === "undefined" || !FAULT_BUILD) return 0;
  try {
    faultPoint(point, { fd, length });
    return 0;
  } catch (error) {
    return -errnoOf(error);
  }
}

/** The positive error number of a failed `fs` call; EIO where it carries none. */
export function errnoOf(error: unknown): number {
  const found = error instanceof Error && "errno" in error ? Number(error.errno) : Number.NaN;
  return Number.isInteger(found) && found !== 0 ? Math.abs(found) : EIO;
}
