/**
 * Signals that arrive before there is somebody to hear them: the handlers stand before the spawn,
 * so that a TERM in between neither kills watchdog nor is forgotten.
 */
import { HANDLED_SIGNALS } from "../core/run-state.ts";
import { handleSignals } from "../os/signal-handlers.ts";

/** More than this before the start are not worth telling apart. */
const MOST_PENDING = 64;

export class SignalInbox {
  #pending: number[] = [];
  #reader: ((signal: number) => void) | undefined;
  #early: ((signal: number) => boolean) | undefined;

  /** @param ignored  the mask of signals that were ignored at the start: they get no handler */
  constructor(ignored: bigint) {
    handleSignals(HANDLED_SIGNALS, ignored, (signal) => this.#receive(signal));
  }

  /** Until `open`: hears each signal first. @param take  whether it is done with, else it waits */
  watchEarly(take: (signal: number) => boolean): void {
    this.#early = take;
  }

  /** From now on the reader hears each signal at once; first those that waited. */
  open(reader: (signal: number) => void): void {
    this.#reader = reader;
    for (const signal of this.#pending) reader(signal);
    this.#pending = [];
  }

  #receive(signal: number): void {
    if (this.#reader !== undefined) return this.#reader(signal);
    if (this.#early?.(signal) === true) return;
    if (this.#pending.length < MOST_PENDING) this.#pending.push(signal);
  }
}
