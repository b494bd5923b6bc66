/**
 * The one limit that a probe has for everything: name, connections, TLS, request and answer.
 *
 * Always: it ends once, by its time or because whoever asked has stopped it, and every step that
 * waits hears of it; nothing of it keeps the process alive after `close`, nor before anybody waits:
 * there is a timer as long as somebody does. Clock: monotonic, so that a suspended machine is not
 * taken for a slow server. State after a crash: none.
 */
import type { MonotonicAt } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { wakeAfter, type Timer } from "../os/timers.ts";

export type LimitEnd = "time" | "stopped";

export class TimeLimit {
  readonly limitMs: number;
  readonly #startedAt: MonotonicAt;
  readonly #listeners = new Set<(end: LimitEnd) => void>();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#finish("stopped");
  #timer: Timer | undefined;
  #end: LimitEnd | undefined;

  /** @param limitMs  milliseconds from now */
  constructor(limitMs: number, signal?: AbortSignal) {
    this.limitMs = limitMs;
    this.#startedAt = monotonicNow();
    this.#signal = signal;
  }

  /** As of now, whether or not anybody waited for it. */
  get end(): LimitEnd | undefined {
    if (this.#end === undefined && this.#signal?.aborted === true) this.#finish("stopped");
    if (this.#end === undefined && this.remainingMs <= 0) this.#finish("time");
    return this.#end;
  }

  /** For people: `2 s`, `1500 ms`. */
  get shown(): string {
    return this.limitMs % 1000 === 0 ? `${this.limitMs / 1000} s` : `${this.limitMs} ms`;
  }

  get spentMs(): number {
    return monotonicNow() - this.#startedAt;
  }

  get remainingMs(): number {
    return Math.max(0, this.limitMs - this.spentMs);
  }

  /** Calls back once, at once if it has ended already. @returns takes the call back */
  onEnd(listener: (end: LimitEnd) => void): () => void {
    const { end } = this;
    if (end !== undefined) {
      listener(end);
      return () => undefined;
    }
    this.#listeners.add(listener);
    if (this.#timer === undefined) this.#watch();
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#listeners.clear();
  }

  #watch(): void {
    this.#signal?.addEventListener("abort", this.#onAbort);
    this.#arm();
  }

  /** A timer wakes at most some seconds ahead: the clock is asked again each time. */
  #arm(): void {
    this.#timer = wakeAfter(this.remainingMs, () => {
      if (this.remainingMs <= 0) this.#finish("time");
      else this.#arm();
    });
  }

  #finish(end: LimitEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    const listeners = [...this.#listeners];
    this.close();
    for (const listener of listeners) listener(end);
  }
}
