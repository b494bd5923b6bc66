/**
 * Descriptors that are to become small numbers in a new process: kept under high ones here, so that
 * no `dup2` on the way there overwrites the source of the next. All of them close-on-exec.
 *
 * Always: NONE is an answer, never an error; whoever asked knows what is missing then. State after
 * a crash: none.
 */
import { closeSync, openSync } from "node:fs";
import { F_DUPFD_CLOEXEC, sys } from "./sys.ts";

/** No descriptor. */
export const NONE = -1;
/** Above every number that is given to a new process. */
const FIRST_HIGH = 10;

/** Opened under a high number; NONE: EMFILE, ENFILE, ENOENT … */
export function openHigh(path: string, flags: number): number {
  try {
    return moveHigh(openSync(path, flags));
  } catch {
    return NONE; // the error is told by whoever needed the file
  }
}

/** The same open file under a high number (fcntl(2), F_DUPFD_CLOEXEC); `fd` itself is closed. */
export function moveHigh(fd: number): number {
  if (fd < 0) return NONE;
  const moved = sys.fcntl(fd, F_DUPFD_CLOEXEC, FIRST_HIGH);
  closeSync(fd);
  return moved < 0 ? NONE : moved;
}

/** Closes what is one; for `fd = close(fd)`. */
export function close(fd: number): typeof NONE {
  if (fd !== NONE) sys.close(fd);
  return NONE;
}
