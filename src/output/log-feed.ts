/**
 * The copy Worker's side of the log: room in the ring, waiting for it, and giving up on it. Knows
 * nothing of files.
 *
 * Always: output is never slowed to less than half of its speed by the log, and never by more than
 * 100 ms at once: a copy may wait for the log's disk only as long as it went on without waiting
 * before (at most WAIT_BUDGET_MS). What has no room then is dropped from the log and counted, and
 * is still delivered.
 */
import type { MonotonicAt } from "../core/time.ts";
import type { ChunkRing } from "./chunk-ring.ts";
import type { LogState, StreamState } from "./shared-state.ts";

export const WAIT_BUDGET_MS = 100;

export class LogFeed {
  readonly #ring: ChunkRing;
  readonly #log: LogState;
  readonly #state: StreamState;
  readonly #now: () => MonotonicAt;
  #budgetMs = WAIT_BUDGET_MS;
  #countedAt: MonotonicAt;
  #hasClaim = false;
  #isFirst = true;
  readonly #onFirst: () => void;

  constructor(parts: {
    ring: ChunkRing;
    log: LogState;
    state: StreamState;
    now: () => MonotonicAt;
    /** Called once, after the first chunk: the log's reader is started only when it is needed. */
    onFirst: () => void;
  }) {
    this.#ring = parts.ring;
    this.#log = parts.log;
    this.#state = parts.state;
    this.#now = parts.now;
    this.#onFirst = parts.onFirst;
    this.#countedAt = parts.now();
  }

  /** The address for the next chunk, or `elsewhere` if the log has to do without it. */
  claim(elsewhere: number): number {
    let offset = this.#ring.claim();
    if (offset < 0) offset = this.#waitForRoom();
    this.#hasClaim = offset >= 0;
    return this.#hasClaim ? this.#ring.address(offset) : elsewhere;
  }

  /** Hands the chunk that was read to the claimed place over, or counts it as dropped. */
  publish(length: number): void {
    if (!this.#hasClaim) {
      this.#state.dropFromLog(length);
      return;
    }
    this.#ring.publish(this.#log.takeSequence(), length);
    this.#log.signal();
    if (this.#isFirst) this.#onFirst();
    this.#isFirst = false;
  }

  /** A chunk that was read to another place: copied, or counted as dropped. */
  publishCopy(chunk: Uint8Array): void {
    let offset = this.#ring.claim();
    if (offset < 0) offset = this.#waitForRoom();
    this.#hasClaim = offset >= 0;
    if (this.#hasClaim) this.#ring.bytes.set(chunk, offset);
    this.publish(chunk.length);
  }

  #waitForRoom(): number {
    const startedAt = this.#now();
    this.#budgetMs = Math.min(WAIT_BUDGET_MS, this.#budgetMs + (startedAt - this.#countedAt));
    this.#countedAt = startedAt;
    let offset = -1;
    while (offset < 0 && this.#budgetMs > 0) {
      this.#ring.awaitRoom(this.#budgetMs);
      offset = this.#ring.claim();
      const at = this.#now();
      this.#budgetMs -= at - this.#countedAt;
      this.#countedAt = at;
    }
    return offset;
  }
}
