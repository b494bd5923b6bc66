/**
 * The parts of a bounded log on disk and how they become one file. Knows nothing of streams, rings
 * or retention.
 *
 *     <run id>.log                          the head, then (once joined) the marker and the tail
 *     <run id>.log.tail-<head>-<offset>     a part of the tail: the full head's size, the place
 *                                           of the part's first byte in the output
 *     <run id>.log.joining                  a join in progress; worthless after a crash
 *
 * Always: the names alone say what is missing between head and tail, so that a log whose writer was
 * killed can be joined by anybody. Joining is atomic (written beside, renamed) and safe to repeat:
 * a log that is longer than its head has been joined, and only left-over segments remain to be
 * removed. The caller holds the log's flock.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync } from "node:fs";
import { readSync, renameSync, statSync, unlinkSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { createStateFile } from "../os/state-sharing.ts";
import { LOCK_EX, LOCK_NB, sys } from "../os/sys.ts";
import { errnoOf, injectedError } from "./memory-io.ts";

const { O_NOFOLLOW, O_RDONLY } = constants;
const O_CLOEXEC = 0o2000000;
const COPY_BYTES = 65_536;

export interface LogLayout {
  readonly headBytes: number;
  readonly segmentBytes: number;
}

/**
 * Half for the head, a quarter for each of two segments: all together never more than `maxBytes`.
 */
export function layOutLog(maxBytes: number): LogLayout {
  const segmentBytes = Math.max(1, Math.floor(maxBytes / 4));
  return { headBytes: Math.max(1, maxBytes - 2 * segmentBytes), segmentBytes };
}

export interface Segment {
  readonly name: string;
  readonly headBytes: number;
  readonly offset: number;
}

export function renderSegmentName(logName: string, headBytes: number, offset: number): string {
  return `${logName}.tail-${headBytes}-${offset}`;
}

/**
 * The segment that this file name stands for, with the name of its log; undefined for any other
 * file.
 */
export function parseSegmentName(name: string): (Segment & { logName: string }) | undefined {
  const match = /^(.+\.log)\.tail-(\d{1,15})-(\d{1,15})$/.exec(name);
  if (match === null) return undefined;
  const [, logName = "", head, offset] = match;
  return { name, logName, headBytes: Number(head), offset: Number(offset) };
}

export function renderOmission(bytes: number): string {
  return `\n[watchdog: ${bytes} bytes omitted here]\n`;
}

export function renderDropped(bytes: number): string {
  return `\n[watchdog: ${bytes} bytes could not be kept]\n`;
}

export type JoinOutcome =
  | { readonly kind: "joined"; readonly omittedBytes: number }
  | { readonly kind: "nothing-to-join" }
  | { readonly kind: "failed"; readonly errno: number };

/**
 * Makes one file of a log and its segments.
 *
 * After a crash: the parts as they were, or the joined log with segments beside it that the next
 * call removes.
 * Safe to repeat: yes. Blocks: reads and writes of at most the log's size; no fsync (a log is not
 * worth one).
 */
export function joinSegments(path: string): JoinOutcome {
  try {
    // A join that died before its rename; this one starts afresh.
    removeIfThere(joiningPath(path));
    const segments = findSegments(path);
    const first = segments[0];
    if (first === undefined) return { kind: "nothing-to-join" };
    const injected = injectedError("log.join", -1, segments.length);
    if (injected < 0) return { kind: "failed", errno: -injected };
    if (statSync(path).size <= first.headBytes) writeJoined(path, segments);
    else removeSegments(path, segments);
    return { kind: "joined", omittedBytes: first.offset - first.headBytes };
  } catch (error) {
    removeIfThere(joiningPath(path));
    return { kind: "failed", errno: errnoOf(error) };
  }
}

function findSegments(path: string): Segment[] {
  const logName = basename(path);
  return readdirSync(dirname(path))
    .map(parseSegmentName)
    .filter((segment) => segment !== undefined)
    .filter((segment) => segment.logName === logName)
    .sort((one, other) => one.offset - other.offset);
}

function joiningPath(path: string): string {
  return `${path}.joining`;
}

function writeJoined(path: string, segments: readonly Segment[]): void {
  const first = segments[0];
  if (first === undefined) return;
  const target = createLogFile(joiningPath(path));
  try {
    // Locked before it has the log's name: pruning never finds it free before it is whole.
    sys.flock(target, LOCK_EX | LOCK_NB);
    appendFile(target, path);
    const omitted = first.offset - first.headBytes;
    if (omitted > 0) writeText(target, renderOmission(omitted));
    for (const segment of segments) appendFile(target, `${dirname(path)}/${segment.name}`);
    renameSync(joiningPath(path), path);
    // Still locked: without its segments there is nothing that pruning could join again.
    removeSegments(path, segments);
  } finally {
    closeSync(target);
  }
}

function removeSegments(path: string, segments: readonly Segment[]): void {
  for (const segment of segments) unlinkSync(`${dirname(path)}/${segment.name}`);
}

/** A new file with the mode of its place whatever the umask; through no link, never one there. */
export function createLogFile(path: string): number {
  return createStateFile(path);
}

function appendFile(target: number, path: string): void {
  const source = openSync(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  try {
    const buffer = new Uint8Array(COPY_BYTES);
    for (let left = fstatSync(source).size; left > 0;) {
      const count = readSync(source, buffer, 0, Math.min(left, buffer.length), null);
      if (count === 0) return;
      writeWhole(target, buffer.subarray(0, count));
      left -= count;
    }
  } finally {
    closeSync(source);
  }
}

export function writeText(fd: number, text: string): void {
  writeWhole(fd, Buffer.from(text));
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done);
}

export function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    // ENOENT: it is not there, which is what we wanted.
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
}
