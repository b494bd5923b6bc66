/**
 * The Worker that looks at artifacts, seen from the thread that runs steps: a file of 10 GiB, or a
 * file system that hangs, must not keep signals and other steps waiting.
 *
 * Guarantees: each task has an answer, in the order of the tasks; nothing rejects; a task that has
 * come no further for STALL_MS is given up, its answer says so, and the next one has a new Worker;
 * the Worker keeps nobody alive while there is no task. A task that comes further may take any
 * time.
 *
 * Clock: ticks of the calling thread, so that a time in which the process was stopped counts as one
 * of them. State after a crash: what was removed is removed; the Worker ends with the process.
 */
import type { ArtifactCheck, ArtifactSight, ArtifactVerdict, Hashing } from "../core/artifact.ts";
import type { ArtifactSpec } from "../core/job-spec.ts";
import type { ArtifactRecord } from "../core/step-record.ts";
import { type Timer, wakeEvery } from "../os/timers.ts";
import type {
  ArtifactAnswer,
  ArtifactAnswers,
  ArtifactMessage,
  ArtifactOrder,
  ArtifactTask,
} from "./artifact-messages.ts";
import type { Removal } from "./removal.ts";

/** For one read of a mebibyte, one entry, or the tick of an old file system. */
export const STALL_MS = 60_000;
const TICKS = 60;
/** A thread that hangs in the kernel stays as long as the process: with so many, no new one. */
const MOST_LOST = 4;

interface Waiting {
  readonly task: ArtifactTask;
  readonly resolve: (answer: ArtifactAnswer) => void;
}

export class ArtifactHandle {
  readonly #url: string | URL;
  readonly #tickMs: number;
  readonly #queue: Waiting[] = [];
  #current: Waiting | undefined;
  #worker: Worker | undefined;
  #timer: Timer | undefined;
  #lost = 0;
  #isClosed = false;

  /**
   * @param url  of job/artifact-worker.ts, known to the program's front door only
   * @param stallMs  milliseconds
   */
  constructor(url: string | URL, stallMs: number = STALL_MS) {
    this.#url = url;
    this.#tickMs = stallMs / TICKS;
  }

  hash(directory: string, path: string): Promise<Hashing> {
    return this.#ask<"hash">({ kind: "hash", directory, path });
  }

  verify(directory: string, records: readonly ArtifactRecord[]): Promise<readonly ArtifactCheck[]> {
    return this.#ask<"verify">({ kind: "verify", directory, records });
  }

  look(directory: string, specs: readonly ArtifactSpec[]): Promise<readonly ArtifactSight[]> {
    return this.#ask<"look">({ kind: "look", directory, specs });
  }

  check(
    directory: string,
    specs: readonly ArtifactSpec[],
    before: readonly ArtifactSight[],
  ): Promise<readonly ArtifactVerdict[]> {
    return this.#ask<"check">({ kind: "check", directory, specs, before });
  }

  remove(directory: string, paths: readonly string[]): Promise<readonly Removal[]> {
    return this.#ask<"remove">({ kind: "remove", directory, paths });
  }

  /** Ends the Worker, in the middle of a file; tasks that wait, and later ones, are answered so. */
  close(): void {
    this.#isClosed = true;
    this.#drop();
    const waiting = [this.#current, ...this.#queue.splice(0)];
    this.#current = undefined;
    for (const one of waiting) one?.resolve(despair(one.task, "looking at artifacts was ended"));
  }

  #ask<Kind extends ArtifactTask["kind"]>(task: ArtifactTask): Promise<ArtifactAnswers[Kind]> {
    return new Promise((resolve) => {
      this.#queue.push({ task, resolve: resolve as Waiting["resolve"] });
      this.#next();
    });
  }

  #next(): void {
    while (this.#current === undefined) {
      const waiting = this.#queue.shift();
      if (waiting === undefined) return this.#worker?.unref();
      this.#worker ??= this.#start();
      if (this.#worker === undefined) {
        waiting.resolve(despair(waiting.task, "there is no thread to read it with"));
        continue;
      }
      this.#current = waiting;
      this.#worker.ref();
      const pulse = new SharedArrayBuffer(4);
      this.#watch(new Int32Array(pulse));
      this.#worker.postMessage({ task: waiting.task, pulse } satisfies ArtifactOrder);
    }
  }

  /** Ticks without a pulse between them: not the clock, which goes on while we are stopped. */
  #watch(pulse: Int32Array): void {
    let seen = Atomics.load(pulse, 0);
    let still = 0;
    this.#timer = wakeEvery(this.#tickMs, () => {
      const now = Atomics.load(pulse, 0);
      still = now === seen ? still + 1 : 0;
      seen = now;
      if (still < TICKS) return;
      this.#lost += 1;
      this.#fail("the file system did not answer");
    });
  }

  #answer(answer: ArtifactAnswer): void {
    const waiting = this.#current;
    this.#timer?.cancel();
    this.#current = undefined;
    waiting?.resolve(answer);
    this.#next();
  }

  /** The Worker, and the task that it has, are given up. */
  #fail(reason: string): void {
    this.#drop();
    if (this.#current !== undefined) this.#answer(despair(this.#current.task, reason));
  }

  #drop(): void {
    this.#timer?.cancel();
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.unref();
    worker?.terminate();
  }

  /** EAGAIN: the caller's limit of processes counts threads too (pthread_create(3)). */
  #start(): Worker | undefined {
    if (this.#isClosed || this.#lost >= MOST_LOST) return undefined;
    let worker: Worker;
    try {
      worker = new Worker(this.#url);
    } catch {
      return undefined; // told by the answer
    }
    worker.addEventListener("message", ({ data }: MessageEvent<ArtifactMessage>) => {
      if (worker !== this.#worker || this.#current === undefined) return;
      const { task } = this.#current;
      this.#answer(data.kind === "answer" ? data.answer : despair(task, data.reason));
    });
    // What it says would go to standard error; its end follows.
    worker.addEventListener("error", (event) => event.preventDefault());
    worker.addEventListener("close", () => {
      if (worker === this.#worker) this.#fail("the thread that reads it has ended");
    });
    return worker;
  }
}

/** The answer where nothing could be found out: everything is unreadable, nothing was removed. */
function despair(task: ArtifactTask, reason: string): ArtifactAnswer {
  switch (task.kind) {
    case "hash":
      return { kind: "unreadable", path: task.path, reason };
    case "verify":
      return task.records.map(({ step, path }): ArtifactCheck => {
        return { step, path, kind: "unreadable", detail: reason };
      });
    case "look":
      return task.specs.map(({ path }): ArtifactSight => {
        return { path, sight: { kind: "unread", reason } };
      });
    case "check":
      return task.specs.map(({ path }): ArtifactVerdict => {
        const detail = `${path}: ${reason}`;
        return { kind: "bad", path, because: "artifact-unreadable", detail };
      });
    case "remove":
      return task.paths.map((path): Removal => ({ path, kind: "refused", reason }));
  }
}
