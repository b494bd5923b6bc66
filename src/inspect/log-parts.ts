/**
 * The kept output of one run as a reader finds it: one file, or the head and the tail's segments of
 * a run that goes on or was killed (output/log-segments.ts).
 *
 * Guarantees: what is written out is what the joined log would hold, byte for byte; never more than
 * one buffer of it is in memory. Non-guarantees: of a run that goes on, more than it had written
 * when its last part was read. Clock: none. Crash behaviour: none, nothing is changed.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { WatchdogError } from "../core/errors.ts";
import { parseSegmentName, renderOmission, type Segment } from "../output/log-segments.ts";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const COPY_BYTES = 65_536;
/** The writer drops its oldest segment while we list them, or joins them all: then from anew. */
const MOST_TRIES = 10;

export interface OpenLog {
  /** In the order of the output. */
  readonly fds: readonly number[];
  /** Of the output between the first part and the second, that was not kept. */
  readonly omittedBytes: number;
}

/**
 * Opens all parts at once, so that the writer may go on meanwhile.
 * @returns undefined: there is no such log
 * @throws WatchdogError "state.unusable": EACCES, EMFILE, EIO, no regular file in its place …
 */
export function openLog(path: string): OpenLog | undefined {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const fds: number[] = [];
    try {
      const opened = openParts(path, fds);
      if (opened !== "changed") return opened;
    } catch (cause) {
      closeAll(fds);
      throw cause;
    }
    closeAll(fds);
  }
  throw unreadable(path, "its parts changed each time that they were listed");
}

export function closeLog(log: OpenLog): void {
  closeAll(log.fds);
}

function closeAll(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}

/** @param fds  takes what was opened, for the caller to close */
function openParts(path: string, fds: number[]): OpenLog | undefined | "changed" {
  const head = openPart(path);
  if (head === undefined) return undefined;
  fds.push(head);
  const segments = findSegments(path);
  const [first] = segments;
  const headBytes = fstatSync(head).size;
  // Longer than its head: joined, and the segments are left-overs (log-segments.ts).
  const isWhole = first === undefined || headBytes > first.headBytes;
  for (const { name } of isWhole ? [] : segments) {
    const fd = openPart(`${dirname(path)}/${name}`);
    if (fd === undefined) return "changed";
    fds.push(fd);
  }
  // Joined in between: the head at this path is another file now.
  if (!isAt(head, path)) return "changed";
  return { fds, omittedBytes: isWhole ? 0 : first.offset - first.headBytes };
}

function openPart(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw unreadable(path, cause);
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw unreadable(path, "it is not a regular file");
}

function findSegments(path: string): Segment[] {
  const logName = basename(path);
  return listNames(dirname(path))
    .map(parseSegmentName)
    .filter((segment) => segment !== undefined)
    .filter((segment) => segment.logName === logName)
    .toSorted((one, other) => one.offset - other.offset);
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (cause) {
    throw unreadable(directory, cause); // also ENOENT: pruned with all that was in it
  }
}

function isAt(fd: number, path: string): boolean {
  const open = fstatSync(fd, { bigint: true });
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found?.dev === open.dev && found.ino === open.ino;
}

/** Where the bytes go. @returns whether there is any use in more of them */
export type Sink = (bytes: Uint8Array) => boolean;

/** Writes the parts out, the marker of what is missing between them, and stops where told. */
export function copyLog({ fds, omittedBytes }: OpenLog, sink: Sink): void {
  const buffer = new Uint8Array(COPY_BYTES);
  for (const [index, fd] of fds.entries()) {
    if (index === 1 && omittedBytes > 0 && !sink(Buffer.from(renderOmission(omittedBytes)))) return;
    if (!copyPart(fd, buffer, sink)) return;
  }
}

/** The last bytes of the last part, which ends with the output; whether that is all of it. */
export function readLogEnd(
  { fds }: OpenLog,
  mostBytes: number,
): { readonly bytes: Uint8Array; readonly isWhole: boolean } {
  const fd = fds.at(-1);
  if (fd === undefined) return { bytes: new Uint8Array(), isWhole: true };
  const { size } = fstatSync(fd);
  const from = Math.max(0, size - mostBytes);
  const bytes = new Uint8Array(size - from);
  const count = bytes.length === 0 ? 0 : readSync(fd, bytes, 0, bytes.length, from);
  return { bytes: bytes.subarray(0, count), isWhole: from === 0 && fds.length === 1 };
}

function copyPart(fd: number, buffer: Uint8Array, sink: Sink): boolean {
  for (;;) {
    const count = readSome(fd, buffer);
    if (count === 0) return true;
    if (!sink(buffer.subarray(0, count))) return false;
  }
}

function readSome(fd: number, buffer: Uint8Array): number {
  try {
    return readSync(fd, buffer, 0, buffer.length, null);
  } catch (cause) {
    throw unreadable("the log", cause);
  }
}

function unreadable(path: string, cause: unknown): WatchdogError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new WatchdogError("state.unusable", `${path} cannot be read: ${text}`, { cause });
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}
