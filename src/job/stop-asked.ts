/**
 * Whether somebody has asked for the end of the job, while a step ran or between two of them, or
 * something else keeps the rest of it back.
 *
 * Always: nothing is started any more once a signal has come whose default would end this process,
 * or processes of a step have outlived KILL; a wait ends at once then. Clock: MONOTONIC, by timers.
 * State after a crash: none.
 */
import { SIGHUP, SIGINT, SIGQUIT, SIGTERM } from "../core/signals.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { listenBetween } from "../tree/operation.ts";

const STOPS: readonly number[] = [SIGTERM, SIGINT, SIGQUIT, SIGHUP];

export class StopAsked {
  readonly #stopListening: () => void;
  readonly #wakes = new Set<() => void>();
  readonly #parent = parentNow();
  #signal: number | undefined;
  #isHeldBack = false;

  constructor(inherited: Inheritance) {
    this.#stopListening = listenBetween(inherited, (signal) => this.note([signal]));
  }

  /**
   * The first one; TERM where the watchdog around us is dead: its guard ends us in a moment, and
   * nothing is to be begun meanwhile.
   */
  get signal(): number | undefined {
    if (this.#signal === undefined && parentNow() !== this.#parent) this.#signal = SIGTERM;
    return this.#signal;
  }

  /** Whether nothing may be started any more. */
  get isAsked(): boolean {
    return this.#isHeldBack || this.signal !== undefined;
  }

  /** Whether what has outlived KILL is there, beside which nothing may be started. */
  get isHeldBack(): boolean {
    return this.#isHeldBack;
  }

  /** For good: nobody can tell how long such processes will be there. */
  holdBack(): void {
    this.#isHeldBack = true;
    for (const wake of this.#wakes) wake();
  }

  /** What came while a step ran, and was passed on to it. @returns whether the end was asked for */
  note(signals: Iterable<number>): boolean {
    const asking = [...signals].find((signal) => STOPS.includes(signal));
    if (asking === undefined) return false;
    this.#signal ??= asking;
    for (const wake of this.#wakes) wake();
    return true;
  }

  /** Resolves when the time is over, or nothing may be started any more. */
  async wait(delayMs: number): Promise<void> {
    const began = monotonicNow();
    const { promise, resolve } = Promise.withResolvers<void>();
    let timer: Timer | undefined;
    const arm = (): void => {
      const leftMs = delayMs - spanMs(began, monotonicNow());
      timer = wakeAfter(leftMs, () => (isOver(began, delayMs) ? resolve() : arm()));
    };
    this.#wakes.add(resolve);
    if (this.#signal === undefined && !this.#isHeldBack) arm();
    else resolve();
    await promise;
    timer?.cancel();
    this.#wakes.delete(resolve);
  }

  /**
   * What a look says, which may take as long as there is to read; undefined as soon as nothing may
   * be started any more, and then nobody waits for it.
   */
  async during<T>(look: Promise<T>): Promise<T | undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const wake = (): void => resolve(undefined);
    this.#wakes.add(wake);
    if (this.#signal !== undefined || this.#isHeldBack) wake();
    const found = await Promise.race([look, promise]);
    this.#wakes.delete(wake);
    return this.isAsked ? undefined : found;
  }

  end(): void {
    this.#stopListening();
  }
}

/** Of now: `process.ppid` asks the kernel each time (getppid(2)). */
function parentNow(): number {
  return process.ppid;
}

function isOver(began: MonotonicAt, delayMs: number): boolean {
  return spanMs(began, monotonicNow()) >= delayMs;
}
