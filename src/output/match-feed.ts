/**
 * The copy Worker's side of the patterns: room in their ring, and waiting for it. Knows nothing of
 * expressions.
 *
 * Always: as long as patterns are tried, no chunk gets past them; the copy waits for room, and by
 * that the command does, as it would for any slow reader. The wait ends when the patterns all have
 * their answer, or main closes them: so it is bounded by what main bounds. The log beside it gets a
 * copy of each chunk, or does without (`log-feed.ts`).
 */
import type { ChunkRing } from "./chunk-ring.ts";
import type { LogFeed } from "./log-feed.ts";
import type { MatchState } from "./match-state.ts";

/** A wake-up that was missed costs no more than this. */
const LONGEST_WAIT_MS = 20;

export class MatchFeed {
  readonly #ring: ChunkRing;
  readonly #state: MatchState;
  readonly #log: LogFeed | undefined;
  readonly #onFirst: () => void;
  #offset = -1;
  #isFirst = true;

  constructor(parts: {
    ring: ChunkRing;
    state: MatchState;
    log: LogFeed | undefined;
    /** Called once, after the first chunk: the match Worker is started only when it is needed. */
    onFirst: () => void;
  }) {
    this.#ring = parts.ring;
    this.#state = parts.state;
    this.#log = parts.log;
    this.#onFirst = parts.onFirst;
  }

  /** The address for the next chunk; blocks until the patterns have room, or want no more. */
  claim(elsewhere: number): number {
    this.#offset = -1;
    while (!this.#state.isClosed) {
      this.#offset = this.#ring.claim();
      if (this.#offset >= 0) return this.#ring.address(this.#offset);
      this.#ring.awaitRoom(LONGEST_WAIT_MS);
    }
    return this.#log?.claim(elsewhere) ?? elsewhere;
  }

  publish(length: number): void {
    if (this.#offset < 0) return this.#log?.publish(length);
    // Before the patterns have it: they may give the place back at once.
    this.#log?.publishCopy(this.#ring.bytes.subarray(this.#offset, this.#offset + length));
    this.#ring.publish(0, length);
    this.#state.signal();
    if (this.#isFirst) this.#onFirst();
    this.#isFirst = false;
  }
}
