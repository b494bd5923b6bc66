/**
 * watchdog's own lines: to standard error, whole or not at all, and never waiting. The descriptor
 * is the caller's: its O_NONBLOCK flag is left alone, so a line goes out only when `poll` says that
 * there is room; what does not fit is dropped and counted, because a stalled reader must never hold
 * up a signal, a limit or a kill.
 */
import { writeSync } from "node:fs";
import { escapeUnprintable } from "../core/printable.ts";
import { ownMask } from "./mask.ts";
import { placeIn } from "./own-line.ts";
import { POLLOUT, sys } from "./sys.ts";
import { blockTerminalStop } from "./terminal-stop.ts";

const STDERR = 2;
const STDOUT = 1;
/** poll(2) promises room for this much in a pipe, no more. */
const ROOM_BYTES = 4096;

/** `watchdog: hint: watchdog lease list`, or at the end of a line: `…; hint: watchdog …`. */
const HINT = /\bhint: watchdog /;

let dropped = 0;

/** Lines that had no room so far. */
export function droppedLines(): number {
  return dropped;
}

/**
 * Writes `watchdog: <text>` lines; control characters of foreign words were escaped by whoever
 * rendered them. A hint that is a command of ours gets the place that our own line has given.
 */
export function say(line: string): void {
  const text = ownMask().text(HINT.test(line) ? placeIn(line) : line);
  const bytes = Buffer.from(`${escapeUnprintable(text)}\n`).subarray(0, ROOM_BYTES);
  if (!hasRoom()) {
    dropped += 1;
    return;
  }
  const unblock = letThrough();
  try {
    writeSync(STDERR, bytes);
  } catch {
    dropped += 1; // EPIPE, EIO, EAGAIN, EBADF: nobody reads; there is no other place to tell it
  } finally {
    unblock();
  }
}

function letThrough(): () => void {
  try {
    return blockTerminalStop();
  } catch {
    return () => undefined; // os.no-ffi: the documented degraded way
  }
}

function hasRoom(): boolean {
  try {
    const ready: number[] = [];
    return sys.poll([[STDERR, POLLOUT]], 0, ready) > 0 && ((ready[0] ?? 0) & POLLOUT) !== 0;
  } catch {
    return true; // os.no-ffi: nothing to ask; a blocking write is the documented degraded way
  }
}

/**
 * The answer of a command other than `run`, to standard output; all of it, waiting for the reader.
 * @returns false where it could not be written (ENOSPC, EIO); a reader who has had enough is fine
 */
export function writeAnswer(text: string): boolean {
  return writeAnswerBytes(Buffer.from(text)) !== "failed";
}

/** `reader-gone`: EPIPE, the reader has had enough. `failed`: ENOSPC, EIO, EBADF … */
export type AnswerEnd = "written" | "reader-gone" | "failed";

/** A part of an answer that is too long to be held, byte for byte; waits for the reader. */
export function writeAnswerBytes(bytes: Uint8Array): AnswerEnd {
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(STDOUT, bytes, offset);
    } catch (error) {
      if (codeOf(error) === "EPIPE") return "reader-gone";
      if (!isAgain(error)) return "failed";
      sys.poll([[STDOUT, POLLOUT]], -1, []);
    }
  }
  return "written";
}

function isAgain(error: unknown): boolean {
  return codeOf(error) === "EAGAIN";
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
