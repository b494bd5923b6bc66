/**
 * What a person asked `watchdog run` for, after reading and checking. Plain data: spans in
 * milliseconds, sizes in bytes, signals as numbers. The words, flags and defaults live in
 * `cli/options-table.ts`.
 */
import type { Expectations } from "./expectations.ts";
import type { LeaseKey } from "./lease-key.ts";
import type { ProbeSettings } from "./probe-settings.ts";
import type { SinkSpec } from "./sink.ts";

/** A wall time of the day, local time zone: `--not-after 06:00`. */
export interface TimeOfDay {
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

/** What happens to members that are alive when the main command has ended. */
export type LeftoverPolicy = "kill" | "wait" | "leave";

/** What a newcomer does about living members of a run whose watchdog is dead. */
export type SurvivorPolicy = "kill" | "wait" | "refuse";

/** Whether the output is kept: `auto` keeps it where the stream is not a terminal. */
export type LogMode = "auto" | "on" | "off";

export interface RunOptions extends Expectations {
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
  /** `--kill-after`, its variable or a file; undefined: DEFAULT_KILL_AFTER_MS. */
  readonly killAfterMs: number | undefined;
  /**
   * The flag stands on the line: then it also bounds what a signal that is passed on began. A
   * variable and a file are for many runs, and a clean-up must not be killed because of them.
   */
  readonly isKillAfterOnLine: boolean;
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
  /**
   * The keys of every `--lock`, and those of `--lane` and `--task`; without the one of the run's
   * name and the one of `--worktree`, which only the run can make. Each once, in their one order.
   */
  readonly locks: readonly LeaseKey[];
  readonly lane: string | undefined;
  readonly task: string | undefined;
  /** `--worktree`: a path as it was written; the run finds the top level of its checkout. */
  readonly worktree: string | undefined;
  /** `--wait`; undefined: a lease that is held is refused at once. */
  readonly waitMs: number | undefined;
  /** False with `--no-lease`: then none of the five above is given. */
  readonly hasLease: boolean;
  /** What watchdog exits with where the lease is held: 0 to 255. */
  readonly conflictExitCode: number;
  /** SHORTEST_HEARTBEAT_INTERVAL_MS to half of LONGEST_STALE_AFTER_MS. */
  readonly heartbeatIntervalMs: number;
  /** At least two of these intervals, at most LONGEST_STALE_AFTER_MS. */
  readonly staleAfterMs: number;
  /** What the guard leaves a tree whose watchdog was killed between TERM and KILL; 0: KILL. */
  readonly guardGraceMs: number;
  /** `--assume-local-state`: a state directory on a network file system is not refused. */
  readonly assumesLocalState: boolean;
  readonly onSurvivors: SurvivorPolicy;
  /** `--strict-worktree`: whoever works in the checkout is in the way, not only other runs. */
  readonly isStrictWorktree: boolean;
  /** Nobody gets a key for so long after a repair has ended its living owner. */
  readonly repairCooldownMs: number;
  /** `--state-group`: the group that shares the state directory; undefined: nobody does. */
  readonly stateGroup: string | undefined;
  /** `--config`; undefined: the files of the machine and of the user. */
  readonly configFile: string | undefined;
  /** Each `--probe`: asked before the start and during the run; no circuit twice. */
  readonly probes: readonly ProbeSettings[];
  /** Each `--ready-probe`: asked during the run, opens no circuit. */
  readonly readyProbes: readonly ProbeSettings[];
  /** `--count-paused`: paused time counts for `--timeout` and `--idle-timeout`, too. */
  readonly countsPaused: boolean;

  /** `--max-fail-rate`: more of the items than this percentage may not fail; undefined: any may. */
  readonly maxFailRate: number | undefined;
  /** `--max-consecutive-fails`: so many in a row end the run; undefined: none do. */
  readonly maxConsecutiveFails: number | undefined;
  /** `--every`: a good run of the job is expected at least so often; undefined: not said. */
  readonly everyMs: number | undefined;
  /** `--schedule`, as core/cron-expression.ts has read it; never together with `everyMs`. */
  readonly cron: string | undefined;
  /** `--time-zone` of it; undefined: that of this process. */
  readonly timeZone: string | undefined;
  /** Who is told, each target once: of the line, of variables, of `[run]` and `[sinks.NAME]`. */
  readonly sinks: readonly SinkSpec[];
  /** Each `--mask`: the sources of regular expressions (compilePattern of masking.ts). */
  readonly masks: readonly string[];
  /** `--remind-every`: what lasts is told again after so long. */
  readonly remindEveryMs: number;
  /** It is the run of a step within a job: the number of the attempt is that of the step. */
  readonly isStep?: true;
  /** `--notify-timeout`: how long the end of a run waits for its notices; 0: not at all. */
  readonly notifyTimeoutMs: number;
}

/** How long the end of a run waits for its notices. */
export const DEFAULT_NOTIFY_TIMEOUT_MS = 5_000;

/** The grace between TERM and KILL where `--kill-after` is not given (product.md, section 2). */
export const DEFAULT_KILL_AFTER_MS = 10_000;

/** EX_TEMPFAIL of sysexits.h, "try again later" (product.md, section 3). */
export const DEFAULT_CONFLICT_EXIT_CODE = 75;
export const DEFAULT_HEARTBEAT_INTERVAL_MS = 10_000;
export const DEFAULT_STALE_AFTER_MS = 40_000;
/** Below this a beat would come later than planned on any busy machine. */
export const SHORTEST_HEARTBEAT_INTERVAL_MS = 100;
export const LONGEST_STALE_AFTER_MS = 86_400_000;
/** So long a person has for looking after ending a living owner (product.md, section 4). */
export const DEFAULT_REPAIR_COOLDOWN_MS = 600_000;
