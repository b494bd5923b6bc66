/**
 * What a command line was cut into: which command of watchdog, and what it was asked for.
 *
 * Types alone, so that whoever carries out a command needs nothing of how it was cut. Always: the
 * fields that a person may leave out are there and undefined.
 */

import type { FenceOptions } from "../core/fence-options.ts";
import type { AskedOfJob } from "../core/job-asked.ts";
import type { ItemReport } from "../core/item-report.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import type { ProbeSettings } from "../core/probe-settings.ts";
import type { RetryOptions } from "../core/retry-options.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { ConfiguredJob } from "../core/schedule.ts";
import type { SinkSpec } from "../core/sink.ts";
import type { GivenOptions } from "./cut-options.ts";
import type { RunPart } from "./probe-options.ts";

/** What a person asked `watchdog keep` for. */
export interface KeepOptions {
  /** `--output`: where the kept process writes; undefined: nowhere. */
  readonly outputPath: string | undefined;
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
}

export type HelpTopic =
  | "watchdog"
  | "run"
  | "keep"
  | "fence"
  | "retry"
  | "tick"
  | "job"
  | "status"
  | "history"
  | "report"
  | "why"
  | "logs"
  | "lease"
  | "circuit"
  | "probe"
  | "repair"
  | "patrol"
  | "stop"
  | "notify"
  | "doctor"
  | "config";

/** Where a command looks. */
interface Looking {
  /** Undefined: the state directory of the configuration, or else of the user. */
  readonly stateDir: string | undefined;
  /** `--config`; undefined: the files of the machine and of the user. */
  readonly configFile: string | undefined;
}

/** The name of a job, or undefined: all of them. */
interface LookingForJob extends Looking {
  readonly name: string | undefined;
  readonly isJson: boolean;
}

/** The name of a job or the id of a run. */
interface LookingForRun extends Looking {
  readonly target: string;
}

export type RunCut = {
  readonly kind: "run";
  readonly options: RunOptions;
  readonly commandAt: number;
};
export type KeepCut = {
  readonly kind: "keep";
  readonly options: KeepOptions;
  readonly commandAt: number;
};
export type RetryCut = {
  readonly kind: "retry";
  readonly options: RetryOptions;
  readonly commandAt: number;
};
export type TickCut = { readonly kind: "tick"; readonly report: ItemReport };
/** What is asked of a job. */
export interface JobAsking {
  readonly asked: AskedOfJob;
  /** `--max-parallel`; undefined: that of the file. */
  readonly maxParallel: number | undefined;
}
interface LookingForJobFile extends Looking {
  /** As it was given. */
  readonly file: string;
}
/** `job run`, `job resume`: see finish-job.ts for what it is as a run. */
export type JobRunCut = LookingForJobFile &
  JobAsking & {
    readonly kind: "job-run";
    readonly line: {
      readonly words: readonly string[];
      readonly given: GivenOptions;
      /** Those of variables first. */
      readonly parts: readonly RunPart[];
    };
  };
/** `job plan`, `job run --dry-run`. */
export type JobPlanCut = LookingForJobFile &
  JobAsking & { readonly kind: "job-plan"; readonly isJson: boolean };
export type JobStatusCut = LookingForJobFile & {
  readonly kind: "job-status";
  readonly isJson: boolean;
  readonly isWatching: boolean;
};
export type JobVerifyCut = LookingForJobFile & {
  readonly kind: "job-verify";
  readonly isJson: boolean;
};
export type JobSchemaCut = { readonly kind: "job-schema" };
export type StatusCut = LookingForJob & { readonly kind: "status"; readonly isWatching: boolean };
export type HistoryCut = LookingForJob & { readonly kind: "history"; readonly limit: number };
export type ReportCut = Looking & {
  readonly kind: "report";
  /** Milliseconds before now. */
  readonly sinceMs: number;
  readonly htmlFile: string | undefined;
  readonly isJson: boolean;
};
export type WhyCut = LookingForRun & { readonly kind: "why"; readonly isJson: boolean };
export type LogsCut = LookingForRun & { readonly kind: "logs" };
export type LeaseListCut = Looking & { readonly kind: "lease-list"; readonly isJson: boolean };
export type LeaseShowCut = Looking & {
  readonly kind: "lease-show";
  readonly key: LeaseKey;
  readonly isJson: boolean;
};
export type LeaseExplainCut = Looking & {
  readonly kind: "lease-explain";
  readonly key: LeaseKey;
  readonly isJson: boolean;
};
export type CircuitListCut = Looking & { readonly kind: "circuit-list"; readonly isJson: boolean };
export type CircuitShowCut = Looking & {
  readonly kind: "circuit-show";
  readonly name: string;
  readonly isJson: boolean;
};
export type CircuitResetCut = Looking & { readonly kind: "circuit-reset"; readonly name: string };
export type ProbeCut = Looking & {
  readonly kind: "probe";
  /** In the order of the line, at least one; checked, of role `liveness`. */
  readonly probes: readonly ProbeSettings[];
  readonly isJson: boolean;
  /** Leave with 69 unless every probe is good. */
  readonly isCheck: boolean;
};
/** What a run starts to ask a command how a dependency is; its order stands in memory. */
export type ProbeCommandCut = { readonly kind: "probe-command" };
/** The same for a hook. */
export type HookCut = { readonly kind: "hook" };
/** The runner of a job, inside of the run that has its lease. */
export type JobRunnerCut = { readonly kind: "runner" };
/** Without a command it only checks. */
export type FenceCut = {
  readonly kind: "fence";
  readonly options: FenceOptions;
  readonly commandAt: number | undefined;
};
export type FenceGitPushCut = Looking & {
  readonly kind: "fence-git-push";
  /** None: all leases of the run around; in a step, of its job. */
  readonly keys: readonly LeaseKey[];
  readonly remote: string | undefined;
  readonly refspecs: readonly string[];
  /** Undefined: no limit. */
  readonly timeoutMs: number | undefined;
  readonly waitMs: number;
};
export type FenceInstallGitHooksCut = Looking & {
  readonly kind: "fence-install-git-hooks";
  /** Of the checkout; undefined: the one that the working directory is in. */
  readonly directory: string | undefined;
  readonly keys: readonly LeaseKey[];
  readonly isUninstalling: boolean;
};
/** What an installed hook of git starts; no person does. */
export type GitHookCut = Looking & {
  readonly kind: "git-hook";
  readonly hook: string;
  /** The arguments that git gave to the hook. */
  readonly words: readonly string[];
  readonly keys: readonly LeaseKey[];
};
export type RepairCut = Looking & {
  readonly kind: "repair";
  /** None: every lease of the state directory. */
  readonly keys: readonly LeaseKey[];
  readonly isApplying: boolean;
  /** Ten hex digits. */
  readonly approve: string | undefined;
  readonly setGeneration: number | undefined;
  readonly repairIntervalMs: number;
  readonly maxRepairs: number;
  readonly isJson: boolean;
};
export type PatrolCut = Looking & {
  readonly kind: "patrol";
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  /** Undefined: once. */
  readonly loopMs: number | undefined;
  /** `--every`; undefined: nobody has said how often patrols come. */
  readonly periodMs: number | undefined;
  /** The name of a job; undefined: none. */
  readonly forget: string | undefined;
  readonly isRetiring: boolean;
  /** `--ping`: of the patrol itself; undefined: nobody is told that it lives. */
  readonly ping: SinkSpec | undefined;
  /** Of the configuration, whether they ever ran or not. */
  readonly configured: readonly ConfiguredJob[];
  /** Of the environment and the configuration: whose targets are known here. */
  readonly sinks: readonly SinkSpec[];
};
export type DoctorCut = Looking & {
  readonly kind: "doctor";
  readonly stateGroup: string | undefined;
  readonly isJson: boolean;
};
/** What `watchdog doctor` starts to try a lock; no person does. */
export type LockProbeCut = { readonly kind: "lock-probe"; readonly path: string };
export type NotifyCut = Looking & {
  readonly kind: "notify";
  readonly action: "list" | "test" | "flush" | "drop";
  /** To drop: as `notify list` shows them. */
  readonly ids: readonly number[];
  /** Known here, by whomever: each target once. */
  readonly sinks: readonly SinkSpec[];
  readonly masks: readonly string[];
  /** Undefined: that of the action. */
  readonly timeoutMs: number | undefined;
  readonly isJson: boolean;
  readonly isAll: boolean;
  readonly isAllDead: boolean;
  readonly isWithDead: boolean;
  readonly limit: number;
};
export type ConfigShowCut = Looking & { readonly kind: "config-show"; readonly isJson: boolean };
export type ConfigCheckCut = Looking & { readonly kind: "config-check"; readonly isJson: boolean };
export type StopCut = LookingForRun & {
  readonly kind: "stop";
  /** Undefined: DEFAULT_KILL_AFTER_MS. */
  readonly killAfterMs: number | undefined;
};
/** What the guard of a killed watchdog starts; no person does. */
export type BuryCut = { readonly kind: "bury"; readonly runId: string; readonly stateDir: string };

export type Cut =
  | RunCut
  | KeepCut
  | RetryCut
  | TickCut
  | JobRunCut
  | JobPlanCut
  | JobStatusCut
  | JobVerifyCut
  | JobSchemaCut
  | StatusCut
  | HistoryCut
  | ReportCut
  | WhyCut
  | LogsCut
  | LeaseListCut
  | LeaseShowCut
  | LeaseExplainCut
  | CircuitListCut
  | CircuitShowCut
  | CircuitResetCut
  | ProbeCut
  | FenceCut
  | FenceGitPushCut
  | FenceInstallGitHooksCut
  | GitHookCut
  | RepairCut
  | PatrolCut
  | NotifyCut
  | DoctorCut
  | ConfigShowCut
  | ConfigCheckCut
  | StopCut
  | BuryCut
  | LockProbeCut
  | ProbeCommandCut
  | HookCut
  | JobRunnerCut
  | { readonly kind: "help"; readonly topic: HelpTopic }
  | { readonly kind: "version" };

/** How far back `watchdog report` looks where `--since` is not given. */
export const DEFAULT_SINCE_MS = 86_400_000;

/** How many runs `watchdog history` shows where `--limit` is not given. */
export const DEFAULT_HISTORY_LIMIT = 20;
