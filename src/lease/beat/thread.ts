/**
 * The thread of the heartbeat as main keeps it: started, started again when it died, and stopped
 * with an answer. Knows nothing of leases and files.
 *
 * Guarantees: at most one thread beats at a time; it never keeps the process alive; `stop` answers
 * within STOP_LIMIT_MS. Non-guarantees: beats after MOST_RESTARTS deaths (the kernel's lock stays
 * ours, the lease looks `stalled`). Clock: timers only. Crash behaviour: none, the thread dies with
 * the process.
 */
import { closeSync, openSync } from "node:fs";
import { type Timer, wakeAfter } from "../../os/timers.ts";
import type { BeatEvent } from "./events.ts";
import type { BeatTask } from "./loop.ts";
import type { BeatOrder, BeatReport } from "./beat-worker.ts";
import { textOf } from "../files/own-file.ts";

export const RESTART_PAUSE_MS = 1000;
export const MOST_RESTARTS = 10;
export const STOP_LIMIT_MS = 2000;
/** A Worker without any can take the whole process with it. Measured: this one needs 2. */
const WORKER_DESCRIPTORS = 4;

export type StopResult = "stopped" | "abandoned";

export class BeatThread {
  readonly #url: string | URL;
  readonly #task: BeatTask;
  readonly #onEvent: (event: BeatEvent) => void;
  readonly #restartPauseMs: number;
  #worker: Worker | undefined;
  #deaths = 0;
  #restart: Timer | undefined;
  #stopping: PromiseWithResolvers<StopResult> | undefined;
  #isOver = false;

  constructor(
    url: string | URL,
    task: BeatTask,
    onEvent: (event: BeatEvent) => void,
    restartPauseMs = RESTART_PAUSE_MS,
  ) {
    this.#url = url;
    this.#restartPauseMs = restartPauseMs;
    this.#task = task;
    this.#onEvent = onEvent;
  }

  start(): void {
    if (this.#isOver || this.#stopping !== undefined) return;
    try {
      takeDescriptors();
      this.#listen(new Worker(this.#url, { ref: false }));
    } catch (error) {
      // EAGAIN of pthread_create(3), EMFILE: perhaps not in a second.
      this.#died(undefined, textOf(error));
    }
  }

  beatNow(): void {
    this.#send({ kind: "beat-now" });
  }

  showNow(): void {
    this.#send({ kind: "show-now" });
  }

  stop(): Promise<StopResult> {
    if (this.#stopping !== undefined) return this.#stopping.promise;
    const stopping = Promise.withResolvers<StopResult>();
    this.#stopping = stopping;
    this.#restart?.cancel();
    if (this.#worker === undefined) {
      this.#end("stopped");
      return stopping.promise;
    }
    const limit = wakeAfter(STOP_LIMIT_MS, () => this.#end("abandoned"));
    this.#send({ kind: "stop" });
    return stopping.promise.finally(() => limit.cancel());
  }

  #send(order: BeatOrder): void {
    this.#worker?.postMessage(order);
  }

  #listen(worker: Worker): void {
    let reason = "it ended by itself";
    this.#worker = worker;
    worker.addEventListener("message", ({ data }: MessageEvent<BeatReport>) => {
      if (this.#isOver || this.#worker !== worker) return;
      if (data.kind === "stopped") return this.#end("stopped");
      this.#onEvent(data);
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      reason = event.message;
    });
    worker.addEventListener("close", () => this.#died(worker, reason));
    worker.postMessage(this.#task);
  }

  #died(worker: Worker | undefined, reason: string): void {
    if (this.#isOver || this.#worker !== worker) return;
    this.#worker = undefined;
    if (this.#stopping !== undefined) return this.#end("stopped");
    this.#deaths += 1;
    if (this.#deaths > MOST_RESTARTS) return this.#onEvent({ kind: "thread-gone", reason });
    this.#onEvent({ kind: "thread-restarted", attempt: this.#deaths, reason });
    this.#restart = wakeAfter(this.#restartPauseMs, () => this.start());
  }

  #end(how: StopResult): void {
    this.#isOver = true;
    this.#stopping?.resolve(how);
  }
}

/** @throws EMFILE, ENFILE: there are not enough of them now */
function takeDescriptors(): void {
  const taken: number[] = [];
  try {
    for (let count = 0; count < WORKER_DESCRIPTORS; count += 1) {
      taken.push(openSync("/dev/null", "r"));
    }
  } finally {
    for (const fd of taken) closeSync(fd);
  }
}
