/**
 * The Worker that probes, seen from the thread that wants probes.
 *
 * Guarantees: each probe has an answer within its limit and ANSWER_GRACE_MS (twice that where
 * another one's expression has taken the Worker with it); nothing rejects; a Worker that does not
 * answer is given up and the next probe has a new one; the Worker keeps nobody alive while no probe
 * is waited for.
 *
 * Non-guarantee: an expression that runs away is not stopped. Measured with Bun 1.4.5: neither
 * `terminate` nor anything else ends `a*b` on a megabyte of `a`, it burns a core until it is
 * through. So its order is remembered: as long as that Worker lives, the same order is answered
 * `expression-too-slow` without being tried, and no more than one core is lost to it.
 *
 * Clock: timers of the calling thread. State after a crash: none, the Worker ends with the process.
 */
import type { ProbeFailure, ProbeResult } from "../core/probe-result.ts";
import type { ProbeAnswer, ProbeTask } from "./probe-messages.ts";
import type { ProbeOrder } from "./probe.ts";
import { TimeLimit } from "./time-limit.ts";

/** For the Worker's start and the messages, on a machine that is busy. */
export const ANSWER_GRACE_MS = 1_000;

/** Each costs a core: with so many expressions that run, no other one is tried. */
export const MOST_RUNAWAYS = 2;

interface Waiting {
  readonly order: ProbeOrder;
  readonly ticket: number;
  readonly resolve: (result: ProbeResult) => void;
  readonly signal: AbortSignal | undefined;
  readonly limit: TimeLimit;
  /** Asked again in a new Worker, because another one's expression had taken the first. */
  readonly isSecond: boolean;
}

export class ProbeHandle {
  readonly #url: string | URL;
  readonly #waiting = new Map<number, Waiting>();
  /** Orders whose expression still runs in a Worker that was given up. */
  readonly #runaways = new Map<Worker, string>();
  #worker: Worker | undefined;
  #nextTicket = 1;
  /** What is being tried at the moment; its probe may have been stopped meanwhile. */
  #trying: { readonly ticket: number; readonly source: string } | undefined;

  /** @param url  of probe/probe-worker.ts, known to the program's front door only */
  constructor(url: string | URL) {
    this.#url = url;
  }

  /** @param signal  ends the probe: `stopped` */
  probe(order: ProbeOrder, signal?: AbortSignal): Promise<ProbeResult> {
    const refusal = this.#refusalOf(order);
    if (refusal !== undefined) return Promise.resolve(refusal);
    return new Promise((resolve) => this.#ask({ order, signal, resolve, isSecond: false }));
  }

  /** Ends the Worker; probes that run are answered `stopped`. */
  close(): void {
    const detail = "probing was ended";
    for (const waiting of this.#waiting.values()) this.#answer(waiting, fail("stopped", detail));
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #refusalOf({ http }: ProbeOrder): ProbeResult | undefined {
    if (http.expectBody === undefined || this.#runaways.size === 0) return undefined;
    const isKnown = [...this.#runaways.values()].includes(http.expectBody);
    if (!isKnown && this.#runaways.size < MOST_RUNAWAYS) return undefined;
    return fail("expression-too-slow", "an expression for a body still runs from before");
  }

  #ask(asked: Pick<Waiting, "order" | "signal" | "resolve" | "isSecond">): void {
    const worker = this.#worker ?? this.#start();
    if (worker === undefined) {
      return asked.resolve(fail("worker-lost", "there is no thread for probes to be had"));
    }
    const ticket = this.#nextTicket;
    this.#nextTicket += 1;
    const limit = new TimeLimit(asked.order.timeoutMs + ANSWER_GRACE_MS, asked.signal);
    const waiting: Waiting = { ...asked, ticket, limit };
    this.#waiting.set(ticket, waiting);
    worker.ref();
    this.#post({ kind: "probe", ticket, order: asked.order });
    limit.onEnd((end) => {
      if (end === "stopped") {
        this.#post({ kind: "stop", ticket });
        return this.#answer(waiting, fail("stopped", "stopped before it was over"));
      }
      this.#giveUp(waiting);
    });
  }

  #post(task: ProbeTask): void {
    this.#worker?.postMessage(task);
  }

  #answer(waiting: Waiting, result: ProbeResult): void {
    if (!this.#waiting.delete(waiting.ticket)) return;
    waiting.limit.close();
    if (this.#waiting.size === 0) this.#worker?.unref();
    waiting.resolve(result);
  }

  /** EAGAIN: the caller's limit of processes counts threads too (pthread_create(3)). */
  #start(): Worker | undefined {
    let worker: Worker;
    try {
      worker = new Worker(this.#url);
    } catch {
      return undefined; // told by the result: `worker-lost`
    }
    this.#worker = worker;
    worker.addEventListener("message", (event: MessageEvent<ProbeAnswer>) => {
      if (worker === this.#worker) this.#take(event.data);
    });
    // What it says would go to standard error; its end follows.
    worker.addEventListener("error", (event) => event.preventDefault());
    worker.addEventListener("close", () => this.#lose(worker));
    return worker;
  }

  #take(answer: ProbeAnswer): void {
    const { ticket } = answer;
    const waiting = this.#waiting.get(ticket);
    this.#trying = answer.kind === "expression" ? { ticket, source: answer.source } : undefined;
    if (waiting !== undefined && answer.kind === "result") this.#answer(waiting, answer.result);
  }

  /** The Worker of a probe that has no answer in time is another probe's too. */
  #giveUp(late: Waiting): void {
    const worker = this.#worker;
    const trying = this.#trying;
    this.#worker = undefined;
    this.#trying = undefined;
    if (worker !== undefined) {
      if (trying !== undefined) this.#runaways.set(worker, trying.source);
      worker.unref();
      worker.terminate();
    }
    if (trying === undefined) this.#answer(late, sayNoAnswer());
    // A copy: who is asked again waits again, with a new ticket.
    const pending = [...this.#waiting.values()];
    for (const each of pending) {
      if (each.ticket === trying?.ticket) this.#answer(each, sayTooSlow(each.order));
      else this.#askAgain(each);
    }
  }

  #askAgain(waiting: Waiting): void {
    const refusal = this.#refusalOf(waiting.order);
    if (refusal !== undefined) return this.#answer(waiting, refusal);
    if (waiting.isSecond) return this.#answer(waiting, sayNoAnswer());
    this.#waiting.delete(waiting.ticket);
    waiting.limit.close();
    this.#ask({ ...waiting, isSecond: true });
  }

  /** It has ended, by itself or at last. */
  #lose(worker: Worker): void {
    this.#runaways.delete(worker);
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    this.#trying = undefined;
    const lost = fail("worker-lost", "the thread that probes has ended");
    for (const waiting of this.#waiting.values()) this.#answer(waiting, lost);
  }
}

function sayNoAnswer(): ProbeResult {
  return fail("worker-lost", "the thread that probes did not answer");
}

function sayTooSlow({ timeoutMs }: ProbeOrder): ProbeResult {
  const limit = `${timeoutMs + ANSWER_GRACE_MS} ms`;
  return fail("expression-too-slow", `the expression for the body had no end within ${limit}`);
}

function fail(because: ProbeFailure, detail: string): ProbeResult {
  return { isGood: false, because, stages: [], detail };
}
