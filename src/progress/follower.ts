/**
 * Reads on in the progress file of a run, as far as it has grown since the last look.
 *
 * Knows nothing of timers and of what follows from the counts. Always: each byte that the job has
 * appended is taken once and in order, however little or much it is. A file that was written over
 * (`>` in the place of `>>`) or replaced is noticed by its size, its inode, its time or the bytes
 * before the place that was reached: it is read from its beginning, and that is told, because what
 * stood there before may be lost. Clock: MONOTONIC, for the time that one look may take. State
 * after a crash: none of its own.
 */
import { closeSync, fstatSync, lstatSync, readSync, type Stats } from "node:fs";
import type { ItemCounts, ItemLimits, ItemsFailure } from "../core/item-counts.ts";
import { monotonicNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { LOCK_EX, LOCK_NB, sys } from "../os/sys.ts";
import { LineCounter } from "./line-counter.ts";
import { openProgress, type ProgressFile } from "./place.ts";

export const PIECE_BYTES = 65_536;
/** So many bytes before the place that was reached are compared. */
const TAIL_BYTES = 64;

export class ProgressFollower {
  readonly #path: string;
  readonly #counter: LineCounter;
  readonly #piece = new Uint8Array(TAIL_BYTES + PIECE_BYTES);
  #fd: number;
  /** All of them lie in one directory, on one file system. */
  #inode: number;
  /** Not the one that was handed in: closed here. */
  #isOwn = false;
  #readTo = 0;
  #tail: Uint8Array = new Uint8Array();
  #mtimeMs: number | undefined;
  #isSuspected = false;
  #wasOverwritten = false;

  constructor({ path, fd }: ProgressFile, limits: ItemLimits) {
    this.#path = path;
    this.#fd = fd;
    this.#inode = fstatSync(fd).ino;
    this.#counter = new LineCounter(limits);
  }

  get counts(): ItemCounts {
    return this.#counter.counts;
  }

  get failure(): ItemsFailure | undefined {
    return this.#counter.failure;
  }

  /** Whether counts may be missing because the job has not appended. */
  get wasOverwritten(): boolean {
    return this.#wasOverwritten;
  }

  /**
   * Takes what is new.
   *
   * @param budgetMs  for so long; at least one piece is read
   * @returns "behind" where there is more than the time allowed
   * @throws the error of the system call: EIO
   */
  look(budgetMs: number): "caught-up" | "behind" {
    const until = monotonicNow() + budgetMs;
    faultPoint("progress.read", { readTo: this.#readTo });
    const found = this.#find();
    if (this.#isRewritten(found)) this.#beginAgain();
    this.#mtimeMs = found.mtimeMs;
    while (this.#readTo < found.size) {
      if (!this.#readPiece(found.size)) break;
      if (this.#readTo < found.size && monotonicNow() > until) return "behind";
    }
    return "caught-up";
  }

  /** No more comes: nobody is left who could still be writing. */
  end(): void {
    this.#wasOverwritten ||= this.#isSuspected;
    this.#counter.end();
  }

  close(): void {
    if (this.#isOwn) closeSync(this.#fd);
    this.#isOwn = false;
  }

  /**
   * The file as it stands now. The job may have put another one in the place of its own (`mv`,
   * `sed -i`), or removed it and still write.
   */
  #find(): Stats {
    const there = lstatSync(this.#path, { throwIfNoEntry: false });
    if (there?.ino === this.#inode) return there;
    const fd = there === undefined ? undefined : openProgress(this.#path);
    if (fd !== undefined) this.#takeUp(fd);
    // A link, a directory, a pipe: what is reported into it nobody counts.
    else if (there !== undefined) this.#wasOverwritten = true;
    return fstatSync(this.#fd);
  }

  #takeUp(fd: number): void {
    // So that nobody clears it away; whoever does so at this moment has the lock.
    sys.flock(fd, LOCK_EX | LOCK_NB);
    this.close();
    this.#fd = fd;
    this.#isOwn = true;
    this.#inode = fstatSync(fd).ino;
    this.#beginAgain();
  }

  #isRewritten(found: Stats): boolean {
    if (found.size < this.#readTo) return true;
    if (this.#readTo === 0) return false;
    const isTouched = found.mtimeMs !== this.#mtimeMs;
    if (isTouched && !this.#hasSameTail()) return true;
    this.#suspect(found.size === this.#readTo, isTouched);
    return false;
  }

  /**
   * A new time and no new byte: the same bytes written over themselves (`echo fail >` each time),
   * or a time that was set: which, nobody can tell. The kernel sets the time of a file before its
   * size, so that only one that has not grown by the next look has been written over.
   */
  #suspect(isSameSize: boolean, isTouched: boolean): void {
    this.#wasOverwritten ||= isSameSize && this.#isSuspected;
    this.#isSuspected = isSameSize && isTouched;
  }

  #hasSameTail(): boolean {
    const at = this.#readTo - this.#tail.length;
    const count = readSync(this.#fd, this.#piece, 0, this.#tail.length, at);
    return Buffer.compare(this.#piece.subarray(0, count), this.#tail) === 0;
  }

  #beginAgain(): void {
    this.#wasOverwritten ||= this.#readTo > 0;
    this.#readTo = 0;
    this.#tail = new Uint8Array();
    this.#counter.drop();
  }

  /** @returns false where there is nothing: it was cut at this moment */
  #readPiece(size: number): boolean {
    const wanted = Math.min(PIECE_BYTES, size - this.#readTo);
    const count = readSync(this.#fd, this.#piece, 0, wanted, this.#readTo);
    if (count === 0) return false;
    const piece = this.#piece.subarray(0, count);
    this.#counter.take(piece);
    this.#readTo += count;
    this.#tail = tailOf(this.#tail, piece);
    return true;
  }
}

/** A copy: the piece is read into again. */
function tailOf(before: Uint8Array, piece: Uint8Array): Uint8Array {
  if (piece.length >= TAIL_BYTES) return piece.slice(-TAIL_BYTES);
  const both = new Uint8Array(before.length + piece.length);
  both.set(before);
  both.set(piece, before.length);
  return both.slice(-TAIL_BYTES);
}
