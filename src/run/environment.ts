/**
 * The environment of the command: the caller's bytes, untouched and in order, less what stands for
 * options of watchdog's or names another pid, plus the variables of the run.
 */
import { DEADLINE, renderDeadline } from "../core/deadline.ts";
import { keyOf, splitRunPath, valueOf } from "../core/environment-entries.ts";
import { joinNames, PAUSES_ON, splitNames } from "../core/environment-names.ts";
import type { GrantedLease } from "../core/journal-entry.ts";
import { encodeKeys } from "../core/lease-key.ts";
import { isFaultVariable } from "../os/faults.ts";
import type { WallAt } from "../core/time.ts";

export interface RunVariables {
  readonly runId: string;
  readonly jobName: string;
  readonly stateDirectory: string;
  /** The wall time at which `--timeout` ends the run, as first estimated. */
  readonly deadlineAt: WallAt | undefined;
  /** Circuits for which this run stands still while they are open. */
  readonly pausesOn: readonly string[];
  /** The file to report progress to; undefined: there is none. */
  readonly progressPath: string | undefined;
  /** A step of a job: the number of its attempt and the leases of the job are for it, too. */
  readonly isStep: boolean;
  /** Empty with `--no-lease`: then neither variable is set. */
  readonly leases: readonly GrantedLease[];
}

/**
 * systemd's socket hand-over names the pid that it is meant for, and that is not the command's
 * (sd_listen_fds(3)).
 */
const NAMES_ANOTHER_PID = ["LISTEN_PID", "LISTEN_FDS"];
/** Of the run around this one, where they mean something else. */
const OF_ANOTHER_RUN = ["WATCHDOG_PROGRESS"];
/** But for a step, which is a run of its own within the run of its job. */
const OF_ANOTHER_JOB = ["WATCHDOG_LEASE", "WATCHDOG_GENERATION", "WATCHDOG_ATTEMPT"];
/** Ids of one run path; a deeper nesting drops the outermost. */
export const LONGEST_RUN_PATH = 64;

/** @param isOption  whether a variable stands for an option: a nested watchdog starts fresh */
export function makeEnvironment(
  inherited: readonly Uint8Array[],
  isOption: (name: string) => boolean,
  variables: RunVariables,
): Uint8Array[] {
  const own = listVariables(inherited, variables);
  const ofOthers = variables.isStep ? OF_ANOTHER_RUN : [...OF_ANOTHER_RUN, ...OF_ANOTHER_JOB];
  const removed = new Set([...NAMES_ANOTHER_PID, ...ofOthers, ...own.keys()]);
  const kept = inherited.filter((entry) => {
    const key = keyOf(entry);
    return !removed.has(key) && !isOption(key) && !isFaultVariable(key);
  });
  const added = [...own].map(([key, value]) => new TextEncoder().encode(`${key}=${value}`));
  return [...kept, ...added];
}

function listVariables(
  inherited: readonly Uint8Array[],
  variables: RunVariables,
): Map<string, string> {
  const own = new Map([
    ["WATCHDOG_RUN_ID", variables.runId],
    ["WATCHDOG_RUN_PATH", extendRunPath(valueOf(inherited, "WATCHDOG_RUN_PATH"), variables.runId)],
    ["WATCHDOG_JOB", variables.jobName],
    ["WATCHDOG_STATE_DIR", variables.stateDirectory],
  ]);
  if (variables.progressPath !== undefined) own.set("WATCHDOG_PROGRESS", variables.progressPath);
  if (variables.leases.length > 0) {
    own.set("WATCHDOG_LEASE", encodeKeys(variables.leases));
    own.set("WATCHDOG_GENERATION", variables.leases.map((one) => one.generation).join(" "));
  }
  // What a run around this one stands still for stops this one too.
  const around = splitNames(valueOf(inherited, PAUSES_ON));
  const pausesOn = [...new Set([...around, ...variables.pausesOn])];
  if (pausesOn.length > 0) own.set(PAUSES_ON, joinNames(pausesOn));
  if (variables.deadlineAt !== undefined) {
    own.set(DEADLINE, renderDeadline(inherited, variables.deadlineAt));
  }
  return own;
}

/** The path of the runs around this one, as far as it is one, and our own id. */
export function extendRunPath(around: string | undefined, runId: string): string {
  return [...splitRunPath(around), runId].slice(-LONGEST_RUN_PATH).join("/");
}
