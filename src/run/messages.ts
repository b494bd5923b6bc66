/**
 * What `watchdog run` says on standard error: one line each, nothing when all is well. Pure text.
 */
import type { Outcome } from "../core/outcome.ts";
import type { RunOptions } from "../core/run-options.ts";
import { nameSignal } from "../core/signals.ts";

export interface Named {
  readonly pid: number;
  readonly command: string;
}

const MOST_NAMED = 5;
const LIMIT_FLAGS: Readonly<Record<string, string>> = {
  timeout: "--timeout",
  idle: "--idle-timeout",
  "not-after": "--not-after",
};

function list(processes: readonly Named[], total = processes.length): string {
  const shown = processes.slice(0, MOST_NAMED).map((one) => `${one.pid} ${one.command}`);
  const more = total - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function count(total: number): string {
  return total === 1 ? "1 process" : `${total} processes`;
}

export const messages = {
  leftoversEnded: (left: readonly Named[], total = left.length): string =>
    `watchdog: ended ${count(total)} left by the command: ${list(left, total)}; ` +
    "hint: --leftovers leave",
  leftoversLeft: (left: readonly Named[], total = left.length): string =>
    `watchdog: left ${count(total)} of the command running: ${list(left, total)}`,
  limitReached: (outcome: Outcome, options: RunOptions): string => {
    const limit = LIMIT_FLAGS[outcome.because] ?? outcome.because;
    return `watchdog: ended by ${limit}: sent ${nameSignal(options.signal)} to the whole tree`;
  },
  outputLost: (stream: string, reason: string): string =>
    `watchdog: ${stream} cannot be copied: ${reason}; the pipe was closed`,
  notStarted: (name: string, reason: string): string => `watchdog: error: ${name}: ${reason}`,
  interruptIgnored: (): string =>
    "watchdog: the command ignores Ctrl-C; press it again to kill the whole tree",
  notSignalable: (left: readonly Named[], total = left.length): string =>
    `watchdog: ${count(total)} of the command could not be ended and may still run: ` +
    list(left, total),
  leftAlone: (left: readonly Named[], total = left.length): string =>
    `watchdog: left ${count(total)} alone, not proven to be of the command: ${list(left, total)}`,
  undelivered: (bytes: number): string =>
    `watchdog: ${bytes} bytes of output were not delivered: their reader did not take them`,
  outputFailed: (stream: string, reason: string): string =>
    `watchdog: ${stream} could not be written: ${reason}; the pipe was closed`,
  logIncomplete: (bytes: number, reason: string): string =>
    `watchdog: ${bytes} bytes are missing in the log: ${reason}`,
  quietAbandoned: (stream: string): string =>
    `watchdog: ${stream} could not be held back for --quiet: no room in the state directory`,
  bug: (error: unknown): string =>
    `watchdog: trouble of its own: ${error instanceof Error ? error.message : String(error)}`,
  noLog: (reason: string): string => `watchdog: no log is kept: ${reason}`,
  noResultFile: (path: string, reason: string): string =>
    `watchdog: result file ${path} could not be written: ${reason}`,
  degraded: (reason: string): string =>
    `watchdog: running degraded, the tree of the command is not contained: ${reason}`,
} as const;
