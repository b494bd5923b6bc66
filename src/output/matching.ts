/**
 * The patterns of one run, seen from main: starts the match Worker when there is something to look
 * at, gives up on an expression that does not come back, and says at the end what was found.
 *
 * Guarantees: the copy waits for one region at most about LONGEST_TRY_MS for each pattern; a
 * pattern that was given up takes nothing from the others, which another Worker goes on with at the
 * very same place; a Worker that dies is no answer: what it had not found counts as abandoned.
 *
 * Non-guarantee: an expression that runs away is not stopped (nothing but its end stops it: see
 * probe/probe-handle.ts). Its thread is made one that runs only where nobody else wants the CPU.
 *
 * Clock: ticks of main's own timer. They stand still while the process is stopped, as the Worker
 * does.
 */
import { faultPoint } from "../os/faults.ts";
import { sys } from "../os/sys.ts";
import { tickEvery, type Timer } from "../os/timers.ts";
import { ChunkRing } from "./chunk-ring.ts";
import { LineWindow } from "./line-window.ts";
import { MatchState, type PatternStatus } from "./match-state.ts";
import { LONGEST_TRY_MS } from "./matcher.ts";
import type { StreamState } from "./shared-state.ts";
import type { CopyTask, MatchMessage, MatchTask } from "./worker-messages.ts";

const LOOK_MS = 500;
const MOST_LOOKS = LONGEST_TRY_MS / LOOK_MS;

export interface MatchedPattern {
  readonly source: string;
  readonly status: PatternStatus;
  /** The first line that it was found in; cut where it is long. */
  readonly line: string | undefined;
  /** Why it was abandoned. */
  readonly reason: string | undefined;
}

interface MatchSource {
  readonly state: StreamState;
  readonly ring: ChunkRing;
  readonly window: LineWindow;
}

export class Matching {
  readonly #url: string | URL;
  readonly #patterns: readonly string[];
  readonly #state: MatchState;
  readonly #sources: readonly MatchSource[];
  readonly #lines = new Map<number, string>();
  readonly #reasons = new Map<number, string>();
  readonly #ended = Promise.withResolvers<void>();
  #worker: Worker | undefined;
  #hasStarted = false;
  #isOver = false;
  #timer: Timer | undefined;
  #seenTry = -1;
  #looks = 0;

  constructor(url: string | URL, patterns: readonly string[], streams: readonly StreamState[]) {
    this.#url = url;
    this.#patterns = patterns;
    this.#state = new MatchState(patterns.length);
    this.#sources = streams.map((state) => ({
      state,
      ring: new ChunkRing(),
      window: new LineWindow(),
    }));
  }

  /** What the copy Worker of this stream is told. */
  taskOf(stream: StreamState): CopyTask["match"] {
    const ring = this.#sources.find(({ state }) => state === stream)?.ring.memory;
    if (ring === undefined) return undefined;
    return { ring, state: this.#state.memory, patternCount: this.#patterns.length };
  }

  /** The first byte is there. May be called again. */
  start(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#startWorker();
    this.#timer = tickEvery(LOOK_MS, () => this.#look());
  }

  /** A stream has ended: maybe it was the last. */
  signal(): void {
    this.#state.signal();
  }

  /** When everything was looked at; at once where there was nothing. Never rejects. */
  ended(): Promise<void> {
    return this.#hasStarted ? this.#ended.promise : Promise.resolve();
  }

  /** Nobody waits for it any more: what has no answer by now has none. */
  abandon(reason: string): void {
    this.#giveUpAll(reason);
  }

  report(): readonly MatchedPattern[] {
    return this.#patterns.map((source, index) => ({
      source,
      status: this.#state.statusOf(index),
      line: this.#lines.get(index),
      reason: this.#reasons.get(index),
    }));
  }

  /** EAGAIN: the caller's limit of processes counts threads too (pthread_create(3)). */
  #startWorker(): void {
    let worker: Worker;
    try {
      worker = new Worker(this.#url);
    } catch {
      return this.#giveUpAll("no thread was to be had");
    }
    this.#worker = worker;
    worker.addEventListener("message", (event: MessageEvent<MatchMessage>) => {
      if (event.data.kind === "found") {
        this.#lines.set(event.data.pattern, event.data.line);
        return;
      }
      worker.unref();
      if (worker === this.#worker) this.#end();
    });
    worker.addEventListener("error", (event) => event.preventDefault());
    worker.addEventListener("close", () => {
      if (worker === this.#worker) this.#giveUpAll("the thread that looks at the output has died");
    });
    worker.postMessage(this.#task());
  }

  #task(): MatchTask {
    return {
      kind: "match",
      state: this.#state.memory,
      patterns: this.#patterns,
      sources: this.#sources.map(({ state, ring, window }) => ({
        state: state.memory,
        ring: ring.memory,
        window: window.memory,
      })),
    };
  }

  #look(): void {
    const trying = this.#state.trying;
    if (trying === undefined || trying.number !== this.#seenTry) {
      this.#seenTry = trying?.number ?? -1;
      this.#looks = 0;
      return;
    }
    this.#looks += 1;
    if (this.#looks >= MOST_LOOKS) this.#giveUpOn(trying.pattern);
  }

  #giveUpOn(pattern: number): void {
    faultPoint("match.give-up", { pattern });
    // It may have come back in this very moment.
    if (!this.#state.endTry(pattern)) return;
    this.#state.settle(pattern, "abandoned");
    this.#reasons.set(pattern, `no end within ${LONGEST_TRY_MS / 1_000} s on one window`);
    this.#letGo();
    if (this.#state.isSettled) return this.#end();
    this.#startWorker();
  }

  #letGo(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker === undefined) return;
    sys.makeIdle(this.#state.threadId);
    worker.unref();
    worker.terminate();
  }

  /** What is open when all was looked at was not found, and stays so. */
  #giveUpAll(reason: string): void {
    if (this.#isOver) return;
    for (const [index] of this.#patterns.entries()) {
      if (this.#state.settle(index, "abandoned")) this.#reasons.set(index, reason);
    }
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#state.close();
    this.#timer?.cancel();
    this.#ended.resolve();
  }
}
