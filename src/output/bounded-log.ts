/**
 * One run's log while it is written: head first, then a tail in segments of which the last two are
 * kept. Knows nothing of streams, order or retention.
 *
 * Guarantees: files appear with the first byte; on disk there is never more than `maxBytes` of
 * output; what is there stays readable when this process is killed at any moment. Not guaranteed:
 * fsync, and bytes that the disk refused (counted). Crash behaviour: head and segments remain and
 * can be joined later (`log-segments.ts`).
 * Always: LOCK_EX of flock(2) on the log from its birth to `finish`, so that pruning leaves a
 * running log alone.
 */
import { closeSync, fstatSync } from "node:fs";
import { makeStateDirectory } from "../os/state-sharing.ts";
import { EINTR, LOCK_EX, nameErrno, sys } from "../os/sys.ts";
import type { LogLayout } from "./log-segments.ts";
import {
  createLogFile,
  joinSegments,
  layOutLog,
  removeIfThere,
  renderDropped,
  renderSegmentName,
  writeText,
} from "./log-segments.ts";
import { errnoOf, injectedError, writeFrom } from "./memory-io.ts";
import type { LogState } from "./shared-state.ts";

const EIO = 5;
/**
 * Pruning may remove the directory or the new, still unlocked file; more often than this it cannot
 * be chance.
 */
const MAX_CREATE_ATTEMPTS = 8;

export class BoundedLog {
  readonly #directory: string;
  readonly #fileName: string;
  readonly #layout: LogLayout;
  readonly #state: LogState;
  #head: number | undefined;
  #headBytes = 0;
  #segment: number | undefined;
  #segmentBytes = 0;
  /** Offsets of the segments on disk, the oldest first; at most two. */
  readonly #offsets: number[] = [];

  constructor(parts: { directory: string; fileName: string; maxBytes: number; state: LogState }) {
    this.#directory = parts.directory;
    this.#fileName = parts.fileName;
    this.#layout = layOutLog(parts.maxBytes);
    this.#state = parts.state;
  }

  get path(): string {
    return `${this.#directory}/${this.#fileName}`;
  }

  get isOpen(): boolean {
    return this.#head !== undefined;
  }

  /**
   * Appends bytes of memory given by address. Never throws: what the disk refuses is counted as
   * dropped.
   */
  append(address: number, length: number): void {
    let done = 0;
    try {
      while (done < length) done += this.#appendSome(address + done, length - done);
    } catch (error) {
      this.#state.errno = errnoOf(error);
      this.#state.droppedBytes += length - done;
    }
  }

  #appendSome(address: number, length: number): number {
    this.#head ??= this.#createHead();
    const isHead = this.#headBytes < this.#layout.headBytes;
    if (
      !isHead &&
      (this.#segment === undefined || this.#segmentBytes >= this.#layout.segmentBytes)
    ) {
      this.#startSegment();
    }
    const room = isHead
      ? this.#layout.headBytes - this.#headBytes
      : this.#layout.segmentBytes - this.#segmentBytes;
    const fd = isHead ? this.#head : (this.#segment ?? this.#head);
    const count = writeOnce(fd, address, Math.min(length, room));
    if (isHead) this.#headBytes += count;
    else this.#segmentBytes += count;
    this.#state.keptBytes += count;
    return count;
  }

  #createHead(): number {
    raise(injectedError("log.open", -1, 0));
    for (let attempt = 1; ; attempt += 1) {
      try {
        makeStateDirectory(this.#directory);
        const fd = createLogFile(this.path);
        sys.flock(fd, LOCK_EX);
        if (fstatSync(fd).nlink > 0) return fd;
        closeSync(fd);
      } catch (error) {
        // ENOENT: pruning took the empty directory between the two calls.
        const isGone = error instanceof Error && "code" in error && error.code === "ENOENT";
        if (!isGone || attempt >= MAX_CREATE_ATTEMPTS) throw error;
      }
      if (attempt >= MAX_CREATE_ATTEMPTS) raise(-EIO);
    }
  }

  /** The oldest segment goes before the next one comes, so that the bound holds at every moment. */
  #startSegment(): void {
    const last = this.#offsets.at(-1);
    const next = last === undefined ? this.#layout.headBytes : last + this.#layout.segmentBytes;
    const oldest = this.#offsets.length >= 2 ? this.#offsets[0] : undefined;
    if (oldest !== undefined) {
      removeIfThere(this.#segmentPath(oldest));
      this.#offsets.shift();
      this.#state.omittedBytes += this.#layout.segmentBytes;
      this.#state.keptBytes -= this.#layout.segmentBytes;
    }
    if (this.#segment !== undefined) closeSync(this.#segment);
    this.#segment = undefined;
    this.#segment = createLogFile(this.#segmentPath(next));
    this.#segmentBytes = 0;
    this.#offsets.push(next);
  }

  #segmentPath(offset: number): string {
    const name = renderSegmentName(this.#fileName, this.#layout.headBytes, offset);
    return `${this.#directory}/${name}`;
  }

  /**
   * Joins the parts and lets the log go. @param droppedBytes  all that is missing without a place,
   * for the last line
   */
  finish(droppedBytes: number): void {
    if (this.#head === undefined) return;
    if (droppedBytes > 0) this.#tellDropped(droppedBytes);
    if (this.#segment !== undefined) closeSync(this.#segment);
    this.#segment = undefined;
    const outcome = joinSegments(this.path);
    if (outcome.kind === "failed") this.#state.errno = outcome.errno;
    closeSync(this.#head);
    this.#head = undefined;
  }

  /**
   * The line goes where the output ends. Never into the head where segments exist: a head that is
   * longer than its name in the segments says counts as joined, and the segments would be thrown
   * away.
   */
  #tellDropped(bytes: number): void {
    const fd = this.#offsets.length === 0 ? this.#head : this.#segment;
    if (fd === undefined) return;
    try {
      writeText(fd, renderDropped(bytes));
    } catch (error) {
      // ENOSPC, most likely the reason for the loss itself: the count is still told to main.
      this.#state.errno = errnoOf(error);
    }
  }
}

/** One write(2) of at least one byte. @throws an error with `errno` */
function writeOnce(fd: number, address: number, length: number): number {
  raise(injectedError("log.write", fd, length));
  for (;;) {
    const count = writeFrom(fd, address, length);
    if (count > 0) return count;
    if (count !== -EINTR) raise(count === 0 ? -EIO : count);
  }
}

function raise(outcome: number): void {
  if (outcome < 0) throw Object.assign(new Error(nameErrno(outcome)), { errno: outcome });
}
