/** What `watchdog retry` says on standard error: one line each. Pure text. */
import type { AttemptEnd } from "../core/retry.ts";
import type { BackoffEnd } from "../core/backoff.ts";
import type { SharedCircuit } from "../core/shared-circuit.ts";
import { nameSignal } from "../core/signals.ts";
import type { MonotonicAt } from "../core/time.ts";

interface Named {
  readonly pid: number;
  readonly command: string;
}

/** An attempt that is over. */
interface Last {
  readonly end: AttemptEnd;
  readonly reason: string | undefined;
}

const MOST_NAMED = 5;

/** `410 ms`, `12.3 s`, `302 s`. */
function showSpan(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${Number((ms / 1000).toPrecision(3))} s`;
}

function showEnd(end: AttemptEnd, reason: string | undefined): string {
  switch (end.kind) {
    case "exited":
      return `exited with status ${end.code}`;
    case "signaled":
      return `was killed by ${nameSignal(end.signal)}`;
    case "timed-out":
      return "was ended by --attempt-timeout";
    case "not-started":
      return `could not be started: ${reason ?? end.because}`;
  }
}

function countAttempts(count: number): string {
  return count === 1 ? "1 attempt" : `${count} attempts`;
}

/** How long it has been so, and when the next one is let through. */
function showCircuit({ name, state, settings }: SharedCircuit, nowMs: MonotonicAt): string {
  if (state.kind === "closed") return `circuit ${name} is closed`;
  // An instant that is to come, or one beyond the cap, is of another clock.
  const ageMs = nowMs - state.openedAt;
  const age = ageMs >= 0 ? ` for ${showSpan(ageMs)}` : "";
  if (state.kind === "half-open") {
    return `circuit ${name} has not been closed${age}, and its one trial is out`;
  }
  const bound = state.kind === "permanent" ? " (the bound of its retries is reached)" : "";
  const restMs = Math.min(Math.max(0, state.retryAt - nowMs), settings.backoff.capMs);
  return `circuit ${name} has been open${age}${bound}, next trial in ${showSpan(restMs)}`;
}

export const messages = {
  gaveUp: (
    last: Last,
    all: { readonly count: number; readonly spentMs: number; readonly because: BackoffEnd },
  ): string => {
    const bound = all.because === "max-elapsed" ? " (--max-elapsed)" : "";
    const after = `after ${countAttempts(all.count)} in ${showSpan(all.spentMs)}${bound}`;
    return `watchdog: retry: gave up ${after}: the last one ${showEnd(last.end, last.reason)}`;
  },
  refused: (
    circuit: SharedCircuit,
    nowMs: MonotonicAt,
    before: { readonly last: Last | undefined; readonly count: number },
  ): string => {
    const { last, count } = before;
    const shown = showCircuit(circuit, nowMs);
    if (last === undefined) return `watchdog: retry: not started: ${shown}`;
    const end = `the last one ${showEnd(last.end, last.reason)}`;
    return `watchdog: retry: gave up after ${countAttempts(count)}: ${end}, and ${shown}`;
  },
  waitingForCircuit: (circuit: SharedCircuit, nowMs: MonotonicAt): string =>
    `watchdog: retry: ${showCircuit(circuit, nowMs)}; waiting for the run to stand still`,
  attempt: (
    number: number,
    last: Last,
    { durationMs, because }: { readonly durationMs: number; readonly because: string },
  ): string =>
    `watchdog: retry: attempt ${number} ${showEnd(last.end, last.reason)} ` +
    `after ${showSpan(durationMs)} (${because})`,
  waiting: (delayMs: number, next: number, most: number): string =>
    `watchdog: retry: waiting ${showSpan(delayMs)} before attempt ${next} of at most ${most}`,
  unended: (left: readonly Named[]): string => {
    const shown = left.slice(0, MOST_NAMED).map((one) => `${one.pid} ${one.command}`);
    const more = left.length - shown.length;
    const names = `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    return `watchdog: retry: these could not be ended and may still run: ${names}`;
  },
  notStarted: (name: string, reason: string): string => `watchdog: error: ${name}: ${reason}`,
  unshared: (name: string, reason: string): string =>
    `watchdog: retry: circuit ${name} is not shared with others: ${reason}`,
  trouble: (text: string): string => `watchdog: retry: ${text}`,
  noResultFile: (path: string, reason: string): string =>
    `watchdog: result file ${path} could not be written: ${reason}`,
  bug: (error: unknown): string =>
    `watchdog: trouble of its own: ${error instanceof Error ? error.message : String(error)}`,
} as const;
