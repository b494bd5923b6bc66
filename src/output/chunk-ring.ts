/**
 * A ring in shared memory from one copy Worker to the log Worker: chunks of bytes, each with its
 * number in the order over all streams. Knows nothing of descriptors: both sides use the memory by
 * address, so no chunk is ever copied and nothing is allocated per chunk (a garbage-making loop
 * costs 10 MB of peak memory).
 *
 * Always: one producer, one consumer. A chunk is contiguous, because the memory has one chunk of
 * slack behind its end; so a line is not cut by the ring. An empty ring starts again at its
 * beginning: little output touches little memory. Only the producer moves `published`, only the
 * consumer `consumed`.
 */
import { ptr } from "bun:ffi";

/** What a pipe holds by default (pipe(7)): a larger read would find nothing more. */
export const CHUNK_BYTES = 65_536;
/** How far the log's disk may fall behind before the copy has to wait or to drop. */
export const RING_BYTES = 1_048_576;
/** Small chunks that may wait: lines of a slow job during a stall of the disk. */
export const MAX_RECORDS = 4_096;

const WORD = { published: 0, consumed: 1, count: 4 } as const;
const RECORD_WORDS = 3;
const HEADER_BYTES = WORD.count * 4 + MAX_RECORDS * RECORD_WORDS * 4;

export class ChunkRing {
  readonly memory: SharedArrayBuffer;
  /** The ring's bytes; readers in tests look at them, the Workers use `address`. */
  readonly bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #records: Int32Array;
  readonly #base: number;
  #position = 0;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(HEADER_BYTES + RING_BYTES + CHUNK_BYTES);
    this.#words = new Int32Array(this.memory, 0, WORD.count);
    this.#records = new Int32Array(this.memory, WORD.count * 4, MAX_RECORDS * RECORD_WORDS);
    this.bytes = new Uint8Array(this.memory, HEADER_BYTES);
    this.#base = ptr(this.bytes);
  }

  /**
   * Where the next chunk of up to CHUNK_BYTES may be put, as an offset; -1 while there is no room.
   * Producer.
   */
  claim(): number {
    const consumed = Atomics.load(this.#words, WORD.consumed);
    const waiting = (Atomics.load(this.#words, WORD.published) - consumed) | 0;
    if (waiting === 0) this.#position = 0;
    else if (waiting >= MAX_RECORDS) return -1;
    else if (!this.#hasRoomBefore(this.#recordWord(consumed, 1))) return -1;
    return this.#position;
  }

  /**
   * Whether a chunk fits without touching the oldest one that waits; goes on at the beginning when
   * at the end.
   */
  #hasRoomBefore(oldest: number): boolean {
    if (this.#position > oldest && this.#position < RING_BYTES) return true;
    const start = this.#position > oldest ? 0 : this.#position;
    if (oldest - start < CHUNK_BYTES) return false;
    this.#position = start;
    return true;
  }

  /** Hands the bytes at the last claimed place over. Producer. */
  publish(sequence: number, length: number): void {
    const published = Atomics.load(this.#words, WORD.published);
    const at = recordIndex(published);
    this.#records[at] = sequence;
    this.#records[at + 1] = this.#position;
    this.#records[at + 2] = length;
    this.#position += length;
    Atomics.store(this.#words, WORD.published, (published + 1) | 0);
  }

  /** Blocks this thread until the consumer has released something, at most `waitMs`. Producer. */
  awaitRoom(waitMs: number): void {
    Atomics.wait(this.#words, WORD.consumed, Atomics.load(this.#words, WORD.consumed), waitMs);
  }

  get isEmpty(): boolean {
    const consumed = Atomics.load(this.#words, WORD.consumed);
    return Atomics.load(this.#words, WORD.published) === consumed;
  }

  /**
   * The oldest chunk that waits: its number, offset and length. Consumer, and only while not empty.
   */
  get sequence(): number {
    return this.#recordWord(Atomics.load(this.#words, WORD.consumed), 0);
  }

  get offset(): number {
    return this.#recordWord(Atomics.load(this.#words, WORD.consumed), 1);
  }

  get length(): number {
    return this.#recordWord(Atomics.load(this.#words, WORD.consumed), 2);
  }

  /** Gives the oldest chunk's place back. Consumer. */
  release(): void {
    Atomics.add(this.#words, WORD.consumed, 1);
    Atomics.notify(this.#words, WORD.consumed);
  }

  address(offset: number): number {
    return this.#base + offset;
  }

  #recordWord(index: number, word: number): number {
    return this.#records[recordIndex(index) + word] ?? 0;
  }
}

/** Both counters wrap at 2^32, of which MAX_RECORDS is a divisor. */
function recordIndex(counter: number): number {
  return ((counter >>> 0) % MAX_RECORDS) * RECORD_WORDS;
}
