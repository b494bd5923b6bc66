/**
 * The words that main and the Workers of one run share: per stream and for the log. Only layout and
 * access; knows nothing of pipes, files or policy.
 *
 * Always: each word has one writer. Main reads counters without asking, so a blocked Worker never
 * blocks main. Byte counts and instants are doubles in shared memory: an aligned double is one
 * store on x64 and arm64, and exact up to 2^53 bytes; `Atomics` has none for them, and BigInt words
 * would make garbage with every chunk.
 */
import type { MonotonicAt } from "../core/time.ts";

/** How the reading of one stream's pipe came to its end. */
export const SOURCE_ENDS = [
  "open",
  "eof",
  "drained",
  "reader-gone",
  "write-failed",
  "read-failed",
  "abandoned",
  "worker-failed",
] as const;

export type SourceEnd = (typeof SOURCE_ENDS)[number];

/** What main wants of a stream: it only ever moves to the right. */
export const ORDERS = ["copy", "drain", "discard", "replay"] as const;

export type Order = (typeof ORDERS)[number];

const INT = { order: 0, end: 1, errno: 2, isQuietAbandoned: 3, count: 8 } as const;
const NUMBER = { read: 0, written: 1, lastOutputAt: 2, writeStartedAt: 3, logDropped: 4, count: 8 };

const WORDS_BYTES = INT.count * 4;

/**
 * One stream's words. The Worker writes all but `order`; main writes `order` and, for a dead
 * Worker, `end`.
 */
export class StreamState {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(WORDS_BYTES + NUMBER.count * 8);
    this.#words = new Int32Array(this.memory, 0, INT.count);
    this.#numbers = new Float64Array(this.memory, WORDS_BYTES, NUMBER.count);
  }

  get order(): Order {
    return ORDERS[Atomics.load(this.#words, INT.order)] ?? "copy";
  }

  /** Blocks this thread until main has given a verdict on the spool. Worker only. */
  awaitVerdict(): "discard" | "replay" {
    for (;;) {
      const found = Atomics.load(this.#words, INT.order);
      const order = ORDERS[found];
      if (order === "discard" || order === "replay") return order;
      Atomics.wait(this.#words, INT.order, found);
    }
  }

  /**
   * Main only. An order that comes later in the list stays: `drain` after a verdict changes
   * nothing.
   */
  setOrder(order: Order): void {
    const wanted = ORDERS.indexOf(order);
    if (Atomics.load(this.#words, INT.order) >= wanted) return;
    Atomics.store(this.#words, INT.order, wanted);
    Atomics.notify(this.#words, INT.order);
  }

  get end(): SourceEnd {
    return SOURCE_ENDS[Atomics.load(this.#words, INT.end)] ?? "open";
  }

  /** The first end stays: an abandoned stream is not "drained" later. */
  setEnd(end: SourceEnd): void {
    Atomics.compareExchange(this.#words, INT.end, 0, SOURCE_ENDS.indexOf(end));
  }

  /** What was held back could not be delivered in the end: this overrides a good end. */
  failReplay(errno: number): void {
    Atomics.store(this.#words, INT.errno, errno);
    Atomics.store(this.#words, INT.end, SOURCE_ENDS.indexOf("write-failed"));
  }

  get errno(): number {
    return Atomics.load(this.#words, INT.errno);
  }

  set errno(value: number) {
    Atomics.store(this.#words, INT.errno, value);
  }

  get isQuietAbandoned(): boolean {
    return Atomics.load(this.#words, INT.isQuietAbandoned) === 1;
  }

  abandonQuiet(): void {
    Atomics.store(this.#words, INT.isQuietAbandoned, 1);
  }

  get readBytes(): number {
    return this.#number(NUMBER.read);
  }

  noteRead(bytes: number, at: MonotonicAt): void {
    this.#numbers[NUMBER.read] = this.#number(NUMBER.read) + bytes;
    this.#numbers[NUMBER.lastOutputAt] = at;
  }

  /** Bytes that have reached the destination (for a quiet run: after its replay). */
  get writtenBytes(): number {
    return this.#number(NUMBER.written);
  }

  noteWritten(bytes: number): void {
    this.#numbers[NUMBER.written] = this.#number(NUMBER.written) + bytes;
  }

  get lastOutputAt(): MonotonicAt | undefined {
    return instant(this.#number(NUMBER.lastOutputAt));
  }

  /**
   * Since when a write to the destination has been waiting; undefined while none is in progress.
   */
  get writeStartedAt(): MonotonicAt | undefined {
    return instant(this.#number(NUMBER.writeStartedAt));
  }

  startWrite(at: MonotonicAt): void {
    this.#numbers[NUMBER.writeStartedAt] = at;
  }

  endWrite(): void {
    this.#numbers[NUMBER.writeStartedAt] = 0;
  }

  /** Bytes that never reached the log's ring because it had no room in time. */
  get logDroppedBytes(): number {
    return this.#number(NUMBER.logDropped);
  }

  dropFromLog(bytes: number): void {
    this.#numbers[NUMBER.logDropped] = this.#number(NUMBER.logDropped) + bytes;
  }

  #number(index: number): number {
    return this.#numbers[index] ?? 0;
  }
}

function instant(value: number): MonotonicAt | undefined {
  return value === 0 ? undefined : (value as MonotonicAt);
}

const LOG_INT = { sequence: 0, signal: 1, errno: 2, count: 4 } as const;
const LOG_NUMBER = { kept: 0, omitted: 1, dropped: 2, count: 4 } as const;

/**
 * The log's words: the order of chunks between streams, the wake-up of the log Worker, and its
 * counts.
 */
export class LogState {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(LOG_INT.count * 4 + LOG_NUMBER.count * 8);
    this.#words = new Int32Array(this.memory, 0, LOG_INT.count);
    this.#numbers = new Float64Array(this.memory, LOG_INT.count * 4, LOG_NUMBER.count);
  }

  /**
   * The next number of the one order over all streams: dense, so the reader knows what must come
   * next.
   */
  takeSequence(): number {
    return Atomics.add(this.#words, LOG_INT.sequence, 1);
  }

  /** Wakes the log Worker: something was published, or a stream has ended. */
  signal(): void {
    Atomics.add(this.#words, LOG_INT.signal, 1);
    Atomics.notify(this.#words, LOG_INT.signal);
  }

  get signals(): number {
    return Atomics.load(this.#words, LOG_INT.signal);
  }

  /** Blocks this thread until there are more signals than the caller has seen. Log Worker only. */
  awaitSignal(seen: number): void {
    Atomics.wait(this.#words, LOG_INT.signal, seen);
  }

  /** The last error of the log's disk as a positive number, 0 for none. */
  get errno(): number {
    return Atomics.load(this.#words, LOG_INT.errno);
  }

  set errno(value: number) {
    Atomics.store(this.#words, LOG_INT.errno, value);
  }

  /** Bytes of output that stand in the log's files. */
  get keptBytes(): number {
    return this.#numbers[LOG_NUMBER.kept] ?? 0;
  }

  set keptBytes(value: number) {
    this.#numbers[LOG_NUMBER.kept] = value;
  }

  /** Bytes of the middle that had to make room for the tail. */
  get omittedBytes(): number {
    return this.#numbers[LOG_NUMBER.omitted] ?? 0;
  }

  set omittedBytes(value: number) {
    this.#numbers[LOG_NUMBER.omitted] = value;
  }

  /** Bytes that the disk did not take. */
  get droppedBytes(): number {
    return this.#numbers[LOG_NUMBER.dropped] ?? 0;
  }

  set droppedBytes(value: number) {
    this.#numbers[LOG_NUMBER.dropped] = value;
  }
}
