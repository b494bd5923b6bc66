/**
 * Signals that come to watchdog itself. A signal that was ignored at the start stays ignored
 * (nohup): it gets no handler, so it is neither acted on nor passed on.
 */
import { maskHolds, nameSignal } from "../core/signals.ts";
import { stopBySignal } from "./leave.ts";
import { type Timer, wakeAfter } from "./timers.ts";

/** Within this span after CONT the default action is in force. */
const STALE_MS = 20;
const returning = new Map<number, Timer>();
const installed = new Map<number, () => void>();

function eventOf(signal: number): NodeJS.Signals {
  return `SIG${nameSignal(signal)}` as NodeJS.Signals;
}

/** Handlers run on the main loop, in the order of arrival; while it is blocked they queue up. */
export function handleSignals(
  signals: readonly number[],
  ignored: bigint,
  onSignal: (signal: number) => void,
): void {
  for (const signal of signals) {
    if (maskHolds(ignored, signal)) continue;
    const handler = (): void => onSignal(signal);
    installed.set(signal, handler);
    process.on(eventOf(signal), handler);
  }
}

/**
 * Calls back when the handlers of all signals should have run that had come by now. Of two that
 * come to be delivered together the kernel runs the handler of the later one first, and what waits
 * in the loop for one of them goes on before the other is told: two turns of the loop, of which the
 * first may be the end of the one that is going on. A signal that the kernel has given to another
 * thread is heard of when that thread has run, which a loaded machine puts off: one that is likely
 * is worth some milliseconds.
 */
export function afterQueuedSignals(atLeastMs: number, then: () => void): void {
  const wait = (): void => void wakeAfter(atLeastMs, then);
  setImmediate(() => setImmediate(atLeastMs > 0 ? wait : then));
}

/**
 * Stops this process by the given signal, so that the shell sees what it would have seen from the
 * command; returns when it was continued. The handler is taken away for that time, because only the
 * default action stops.
 */
export function stopAs(signal: number): void {
  const handler = installed.get(signal);
  if (handler === undefined) return; // ignored from the start: the shell does not expect us to stop
  returning.get(signal)?.cancel();
  process.off(eventOf(signal), handler);
  stopBySignal(signal);
  // What queued up before we stopped is of the past and must not stop us again.
  returning.set(
    signal,
    wakeAfter(STALE_MS, () => process.on(eventOf(signal), handler)),
  );
}
