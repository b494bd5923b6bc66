/**
 * The lines of one stream, as they come: bytes are put behind what was there, whole lines are
 * handed out together, and a line that is too long in windows that overlap. Knows no pattern.
 *
 * Guarantees: every byte is handed out, in order, at least once; memory is bounded, whatever the
 * length of a line; a window begins and ends between characters of UTF-8. All that it knows is in
 * shared memory, so that another thread can go on at the very same place.
 */
import { CHUNK_BYTES } from "./chunk-ring.ts";

/** What a pattern may see of one line at once. */
export const WINDOW_BYTES = 65_536;
/** So far two windows of one line overlap: a match up to this length is always found. */
export const OVERLAP_BYTES = 4_096;

const INT = { fill: 0, isInside: 1, count: 4 } as const;
const HEADER_BYTES = INT.count * 4;
const CAPACITY = WINDOW_BYTES + CHUNK_BYTES;
const LINE_FEED = 10;
/** A character of UTF-8 has at most three bytes that continue it. */
const MOST_CONTINUATIONS = 3;

/** Bytes from the beginning of the memory to `end` (exclusive), to be looked at together. */
export interface Region {
  readonly end: number;
  /** Its first line has begun in an earlier window. */
  readonly startsInside: boolean;
  /** Its last line goes on behind it. */
  readonly endsInside: boolean;
  /** Where what comes next begins. */
  readonly next: number;
}

export class LineWindow {
  readonly memory: SharedArrayBuffer;
  readonly bytes: Uint8Array;
  readonly #words: Int32Array;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(HEADER_BYTES + CAPACITY);
    this.#words = new Int32Array(this.memory, 0, INT.count);
    this.bytes = new Uint8Array(this.memory, HEADER_BYTES);
  }

  get fill(): number {
    return this.#words[INT.fill] ?? 0;
  }

  hasRoomFor(length: number): boolean {
    return this.fill + length <= CAPACITY;
  }

  append(chunk: Uint8Array): void {
    this.bytes.set(chunk, this.fill);
    this.#words[INT.fill] = this.fill + chunk.length;
  }

  /** What can be looked at now. @param isLast  nothing comes any more: the rest is a line, too */
  region(isLast: boolean): Region | undefined {
    const { fill } = this;
    if (fill === 0) return undefined;
    const startsInside = this.#words[INT.isInside] === 1;
    const first = this.bytes.indexOf(LINE_FEED);
    const hasLine = first >= 0 && first < fill;
    if (hasLine && first <= WINDOW_BYTES) {
      const end = this.bytes.lastIndexOf(LINE_FEED, fill - 1);
      return { end, startsInside, endsInside: false, next: end + 1 };
    }
    if (fill > WINDOW_BYTES) {
      const end = this.#characterStart(WINDOW_BYTES);
      const next = this.#characterStart(end - OVERLAP_BYTES);
      return { end, startsInside, endsInside: true, next };
    }
    return isLast ? { end: fill, startsInside, endsInside: false, next: fill } : undefined;
  }

  /** The region was looked at. */
  consume(region: Region): void {
    this.bytes.copyWithin(0, region.next, this.fill);
    this.#words[INT.isInside] = region.endsInside ? 1 : 0;
    this.#words[INT.fill] = this.fill - region.next;
  }

  /** The next place at or before `at` where a character begins; `at` itself in what is no UTF-8. */
  #characterStart(at: number): number {
    for (let back = 0; back <= MOST_CONTINUATIONS; back += 1) {
      if (((this.bytes[at - back] ?? 0) & 0xc0) !== 0x80) return at - back;
    }
    return at;
  }
}
