/**
 * What `watchdog run` says on standard error: one line each, nothing when all is well. Pure text.
 */
import type { ItemsFailure } from "../core/item-counts.ts";
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

const SEE_NOTICES = "hint: watchdog notify list";

export const messages = {
  leftoversEnded: (left: readonly Named[], total = left.length): string =>
    `watchdog: ended ${count(total)} left by the command: ${list(left, total)}; ` +
    "hint: --leftovers leave",
  survivorsEnded: (ended: readonly Named[]): string =>
    `watchdog: ended ${count(ended.length)} of the run before: ${list(ended)}`,
  leftoversLeft: (left: readonly Named[], total = left.length): string =>
    `watchdog: left ${count(total)} of the command running: ${list(left, total)}`,
  limitReached: (outcome: Outcome, options: RunOptions): string => {
    const limit = LIMIT_FLAGS[outcome.because] ?? outcome.because;
    return `watchdog: ended by ${limit}: sent ${nameSignal(options.signal)} to the whole tree`;
  },
  notPaused: (left: readonly Named[], total = left.length): string =>
    `watchdog: ${count(total)} of the command could not be paused: ${list(left, total)}`,
  resumed: (): string => "watchdog: the processes of the command go on",
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
  leaseLost: (key: string, found: string): string =>
    `watchdog: the lease ${key} is not ours any more: ${found}`,
  lockRestored: (key: string): string =>
    `watchdog: the lock file of ${key} was gone or replaced; restored it, the job goes on`,
  recordSetAside: (key: string, path: string): string =>
    `watchdog: the record of ${key} could not be read; kept as ${path}`,
  unreleased: (key: string, reason: string): string =>
    `watchdog: the record of ${key} could not be marked released: ${reason}`,
  beatFailing: (key: string, reason: string): string =>
    `watchdog: heartbeats of ${key} cannot be written: ${reason}`,
  itemsFailed: (failure: ItemsFailure, options: RunOptions, isEnded: boolean): string => {
    const { failed, done, failedInRow } = failure;
    const sent = `: sent ${nameSignal(options.signal)} to the whole tree`;
    const end = isEnded ? sent : "";
    if (failure.because === "too-many-failed-in-row") {
      const flag = `--max-consecutive-fails ${options.maxConsecutiveFails}`;
      return `watchdog: ${failedInRow} items in a row failed (${flag})${end}`;
    }
    const flag = `--max-fail-rate ${options.maxFailRate}%`;
    return `watchdog: ${failed} of ${done} items failed (${flag})${end}`;
  },
  noProgressFile: (reason: string): string =>
    `watchdog: items cannot be counted, so no bound on them holds: ${reason}`,
  progressUnreadable: (reason: string): string =>
    `watchdog: the progress file cannot be read any more: ${reason}`,
  progressUnread: (): string =>
    "watchdog: the progress file was too long to be read to its end; not all items were counted",
  progressOverwritten: (): string =>
    "watchdog: the progress file was written over, so that items may not have been counted; " +
    'append to it: echo ok >>"$WATCHDOG_PROGRESS"',
  historyUnread: (): string =>
    "watchdog: good runs before cannot be read, so that --strict and :min-ratio compare nothing",
  journalTrouble: (reason: string): string => `watchdog: journal: ${reason}`,
  noGuard: (reason: string): string =>
    `watchdog: no guard, so nobody ends the command if watchdog is killed: ${reason}`,
  noticesLeft: (
    total: number,
    first: { readonly shown: string; readonly because: string; readonly isDead: boolean },
  ): string => {
    const what = total === 1 ? "1 notice was" : `${total} notices were`;
    const fate = first.isDead ? "given up" : "not delivered yet";
    return `watchdog: ${what} ${fate}: ${first.because}, ${first.shown}; ${SEE_NOTICES}`;
  },
  noticesLost: (
    total: number,
    first: { readonly shown: string; readonly because: string },
  ): string => {
    const what = total === 1 ? "1 notice is" : `${total} notices are`;
    return `watchdog: ${what} lost: ${first.because}, ${first.shown}`;
  },
  noticesLeftInSpool: (
    total: number,
    first: { readonly shown: string; readonly because: string },
  ): string => {
    const what = total === 1 ? "1 notice waits" : `${total} notices wait`;
    return `watchdog: ${what} in spool/: ${first.because}, ${first.shown}; ${SEE_NOTICES}`;
  },
  noticesNotMade: (reason: string): string =>
    `watchdog: notices are left for later: ${reason}; ${SEE_NOTICES}`,
  degraded: (reason: string): string =>
    `watchdog: running degraded, the tree of the command is not contained: ${reason}`,
} as const;
