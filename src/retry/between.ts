/**
 * The time in which no attempt runs: waiting, and hearing meanwhile that somebody asks for the end.
 *
 * Always: a signal whose default would end this process ends the wait at once; CONT and WINCH do
 * not, and the keys that stop a process stop it, as every other. Clock: CLOCK_MONOTONIC. State
 * after a crash: none.
 */
import { SIGCONT, SIGWINCH } from "../core/signals.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { listenBetween } from "../tree/operation.ts";

/** Nobody ends by them (signal(7)). */
const HARMLESS: readonly number[] = [SIGCONT, SIGWINCH];

export class BetweenAttempts {
  readonly #stopListening: () => void;
  #asking: number | undefined;
  #wake: (() => void) | undefined;

  constructor(inherited: Inheritance) {
    this.#stopListening = listenBetween(inherited, (signal) => {
      if (HARMLESS.includes(signal)) return;
      this.#asking ??= signal;
      this.#wake?.();
    });
  }

  /** The first signal that has asked for the end while no attempt ran. */
  get asking(): number | undefined {
    return this.#asking;
  }

  /** Resolves when the time is over, or somebody asks for the end. */
  async wait(delayMs: number): Promise<void> {
    const began = monotonicNow();
    const { promise, resolve } = Promise.withResolvers<void>();
    let timer: Timer | undefined;
    const arm = (): void => {
      const leftMs = delayMs - spanMs(began, monotonicNow());
      // Once at least, however short: what has come at the end of the attempt is heard first.
      timer = wakeAfter(leftMs, () => (isOver(began, delayMs) ? resolve() : arm()));
    };
    this.#wake = resolve;
    if (this.#asking === undefined) arm();
    else resolve();
    await promise;
    timer?.cancel();
    this.#wake = undefined;
  }

  end(): void {
    this.#stopListening();
  }
}

function isOver(began: MonotonicAt, delayMs: number): boolean {
  return spanMs(began, monotonicNow()) >= delayMs;
}
