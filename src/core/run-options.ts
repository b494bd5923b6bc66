/**
 * What a person asked `watchdog run` for, after reading and checking. Plain data: spans in
 * milliseconds, sizes in bytes, signals as numbers. The words, flags and defaults live in
 * `cli/run-options-table.ts`.
 */

/** A wall time of the day, local time zone: `--not-after 06:00`. */
export interface TimeOfDay {
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

/** What happens to members that are alive when the main command has ended. */
export type LeftoverPolicy = "kill" | "wait" | "leave";

/** Whether the output is kept: `auto` keeps it where the stream is not a terminal. */
export type LogMode = "auto" | "on" | "off";

export interface RunOptions {
  /** `--name`; undefined: derived from the command and the directory. */
  readonly name: string | undefined;
  /** `--state-dir` or WATCHDOG_STATE_DIR; undefined: the default of the user. */
  readonly stateDir: string | undefined;
  readonly timeoutMs: number | undefined;
  readonly idleTimeoutMs: number | undefined;
  /** Percent of one core below which the tree counts as idle. */
  readonly idleCpuPercent: number;
  /** Bytes per minute below which the tree counts as idle. */
  readonly idleIoBytes: number;
  readonly notAfter: TimeOfDay | undefined;
  /** The signal that a limit sends first. */
  readonly signal: number;
  /**
   * `--kill-after`; undefined: not given on the line (then only limits and leftovers escalate,
   * after the default).
   */
  readonly killAfterMs: number | undefined;
  readonly leftovers: LeftoverPolicy;
  readonly log: LogMode;
  /** Bytes of output kept for one run (half of them head, the rest tail). */
  readonly logMaxBytes: number;
  /** Bytes of all logs of the state directory together; the oldest go first. */
  readonly logKeepBytes: number;
  readonly isQuiet: boolean;
  /** `-v`: tell the evidence behind each decision on stderr. */
  readonly isVerbose: boolean;
  readonly resultFile: string | undefined;
  /** Exit codes of the command that count as `ok`; always contains 0. */
  readonly successExitCodes: readonly number[];
}

/** The grace between TERM and KILL where `--kill-after` is not given (product.md, section 2). */
export const DEFAULT_KILL_AFTER_MS = 10_000;
