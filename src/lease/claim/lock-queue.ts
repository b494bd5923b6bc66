/**
 * Waiting in the kernel's queue for one lock, in a Worker (`wait-worker.ts`), while main stays
 * awake. Knows nothing of leases.
 *
 * Guarantees: a lock that comes at the very end of a wait is either handed out or given back, never
 * kept unnoticed; a descriptor is not closed while a thread may still lock it. Non-guarantees: the
 * order, where no Worker can be started ("no-queue": the caller polls). Clock: timers
 * only, which keep the process alive while a wait is asked for; the Worker does not. Crash
 * behaviour: the kernel drops the wait with the process.
 */
import { closeSync, openSync } from "node:fs";
import { wakeAfter } from "../../os/timers.ts";

/** Words of the shared state of one wait. */
export const WAITING = 0;
export const GRANTED = 1;
export const ABANDONED = 2;

/** As for the thread of the heartbeat (beat/thread.ts). */
const WORKER_DESCRIPTORS = 8;

export interface WaitTask {
  readonly ticket: number;
  readonly fd: number;
  readonly state: SharedArrayBuffer;
}

/** `errno` 0: the flock has come back with the lock. */
export interface WaitAnswer {
  readonly ticket: number;
  readonly errno: number;
}

export type WaitEnd =
  | { readonly kind: "locked" }
  | { readonly kind: "failed"; readonly errno: number }
  /** There is no thread to wait in (EAGAIN: the limit of processes counts threads). */
  | { readonly kind: "no-queue" };

/** One wait in progress. */
export interface Waiting {
  /** Waits for its end, at most so long; undefined: it goes on. Asked again and again. */
  until(waitMs: number): Promise<WaitEnd | undefined>;
  /**
   * Gives the wait up. "locked": it was had just then, and is the caller's; else the descriptor
   * belongs to the queue from now on, and must not be used or closed.
   */
  abandon(): "abandoned" | "locked";
}

/** One Worker for all waits of a claim, started with the first. One wait at a time. */
export class LockQueue {
  readonly #url: URL;
  #worker: Worker | undefined;
  #ticket = 0;
  #onAnswer: ((end: WaitEnd) => void) | undefined;
  #isBroken = false;
  /** The Worker sits in a call that nothing interrupts. */
  #isStuck = false;

  constructor(url: URL) {
    this.#url = url;
  }

  /** @param fd  an open lock file; its lock must not be held */
  begin(fd: number): Waiting {
    const state = new Int32Array(new SharedArrayBuffer(4));
    this.#ticket += 1;
    const { promise, resolve } = Promise.withResolvers<WaitEnd>();
    let end: WaitEnd | undefined;
    this.#onAnswer = (answer) => {
      end ??= answer;
      resolve(end);
    };
    this.#send({ ticket: this.#ticket, fd, state: state.buffer as SharedArrayBuffer });
    return {
      until: (waitMs) => (end === undefined ? raceTimer(promise, waitMs) : Promise.resolve(end)),
      abandon: () => this.#abandon(state, fd, end),
    };
  }

  /** After the last wait. The thread of an abandoned one ends with the process. */
  close(): void {
    if (!this.#isStuck) this.#worker?.terminate();
    this.#worker = undefined;
  }

  #send(task: WaitTask): void {
    if (!this.#isBroken) this.#worker ??= this.#start();
    if (this.#worker === undefined) this.#break();
    else this.#worker.postMessage(task);
  }

  /** Once without a thread, always without: the caller polls. */
  #break(): void {
    this.#isBroken = true;
    this.#worker = undefined;
    this.#onAnswer?.({ kind: "no-queue" });
  }

  #start(): Worker | undefined {
    const worker = makeWorker(this.#url);
    if (worker === undefined) return undefined;
    worker.addEventListener("message", (event: MessageEvent<WaitAnswer>) => {
      const { ticket, errno } = event.data;
      if (ticket !== this.#ticket) return;
      this.#onAnswer?.(errno === 0 ? { kind: "locked" } : { kind: "failed", errno });
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#break();
    });
    worker.addEventListener("close", () => this.#break());
    return worker;
  }

  #abandon(state: Int32Array, fd: number, end: WaitEnd | undefined): "abandoned" | "locked" {
    if (Atomics.compareExchange(state, 0, WAITING, ABANDONED) === GRANTED) return "locked";
    // The thread has come back without the lock, or never was: nobody else knows the descriptor.
    if (end !== undefined) closeSync(fd);
    else this.#isStuck = true;
    return "abandoned";
  }
}

/**
 * EAGAIN: the caller's limit of processes counts threads too (pthread_create(3)). EMFILE: a Worker
 * that finds no descriptor takes the whole process with it, so that they are looked for before.
 */
function makeWorker(url: URL): Worker | undefined {
  const taken: number[] = [];
  try {
    while (taken.length < WORKER_DESCRIPTORS) taken.push(openSync("/dev/null", "r"));
    for (const fd of taken.splice(0)) closeSync(fd);
    return new Worker(url, { ref: false });
  } catch {
    for (const fd of taken) closeSync(fd);
    return undefined; // told by "no-queue"
  }
}

async function raceTimer(promise: Promise<WaitEnd>, waitMs: number): Promise<WaitEnd | undefined> {
  const { promise: woken, resolve } = Promise.withResolvers<undefined>();
  const timer = wakeAfter(waitMs, () => resolve(undefined));
  try {
    return await Promise.race([promise, woken]);
  } finally {
    timer.cancel();
  }
}
