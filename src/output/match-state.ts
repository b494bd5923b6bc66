/**
 * The words that main, the copy Workers and the match Worker of one run share about patterns. Only
 * layout and access.
 *
 * Always: a pattern goes from open to found or abandoned and never back. While one is tried, `busy`
 * names it; the match Worker takes it back with a compare-exchange, main takes it away with one: so
 * a Worker that was given up and comes back later finds that its answer counts for nothing.
 */

const INT = { signal: 0, busy: 1, tries: 2, isClosed: 3, threadId: 4, statuses: 8 } as const;

/** Each costs time for every line. */
export const MOST_PATTERNS = 64;

export const PATTERN_STATUSES = ["open", "found", "abandoned"] as const;

export type PatternStatus = (typeof PATTERN_STATUSES)[number];

export class MatchState {
  readonly memory: SharedArrayBuffer;
  readonly patternCount: number;
  readonly #words: Int32Array;

  constructor(patternCount: number, memory?: SharedArrayBuffer) {
    this.patternCount = patternCount;
    this.memory = memory ?? new SharedArrayBuffer((INT.statuses + MOST_PATTERNS) * 4);
    this.#words = new Int32Array(this.memory);
  }

  /** Wakes the match Worker: something was published, or a stream has ended. */
  signal(): void {
    Atomics.add(this.#words, INT.signal, 1);
    Atomics.notify(this.#words, INT.signal);
  }

  get signals(): number {
    return Atomics.load(this.#words, INT.signal);
  }

  /** Blocks this thread until there are more signals than the caller has seen. Match Worker. */
  awaitSignal(seen: number): void {
    Atomics.wait(this.#words, INT.signal, seen);
  }

  statusOf(pattern: number): PatternStatus {
    return PATTERN_STATUSES[Atomics.load(this.#words, INT.statuses + pattern)] ?? "open";
  }

  /** The first answer stays. @returns whether it was this one */
  settle(pattern: number, status: "found" | "abandoned"): boolean {
    const word = INT.statuses + pattern;
    return Atomics.compareExchange(this.#words, word, 0, PATTERN_STATUSES.indexOf(status)) === 0;
  }

  get isSettled(): boolean {
    for (let pattern = 0; pattern < this.patternCount; pattern += 1) {
      if (this.statusOf(pattern) === "open") return false;
    }
    return true;
  }

  /** Nobody reads the rings any more: copies go on without them. */
  close(): void {
    Atomics.store(this.#words, INT.isClosed, 1);
  }

  get isClosed(): boolean {
    return Atomics.load(this.#words, INT.isClosed) === 1;
  }

  /** Match Worker: this pattern is about to be tried. */
  beginTry(pattern: number): void {
    Atomics.add(this.#words, INT.tries, 1);
    Atomics.store(this.#words, INT.busy, pattern + 1);
  }

  /** Match Worker, while it tries: false where main has taken the pattern away. */
  holds(pattern: number): boolean {
    return Atomics.load(this.#words, INT.busy) === pattern + 1;
  }

  /** Ends the try, for the match Worker and for main alike. @returns false: the other one has */
  endTry(pattern: number): boolean {
    return Atomics.compareExchange(this.#words, INT.busy, pattern + 1, 0) === pattern + 1;
  }

  /** What is being tried, and the how manyth try it is; undefined: nothing is. */
  get trying(): { readonly pattern: number; readonly number: number } | undefined {
    const busy = Atomics.load(this.#words, INT.busy);
    if (busy === 0) return undefined;
    return { pattern: busy - 1, number: Atomics.load(this.#words, INT.tries) };
  }

  /** Of the match Worker (gettid(2)); 0 before it has started. */
  get threadId(): number {
    return Atomics.load(this.#words, INT.threadId);
  }

  set threadId(value: number) {
    Atomics.store(this.#words, INT.threadId, value);
  }
}
