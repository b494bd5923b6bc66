/**
 * The course of a run: what every step of it needs, made before anything is started.
 */
import { WatchdogError } from "../core/errors.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { WallAt } from "../core/time.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { say } from "../os/say.ts";
import { openStateDirectory, resolveStateDirectory } from "../os/state-dir.ts";
import type { CopyPlan } from "../output/copy.ts";
import { makeEnvironment } from "./environment.ts";
import { makeIdentity, type RunIdentity } from "./identity.ts";
import { RunLedger } from "./ledger.ts";
import { messages } from "./messages.ts";

export interface RunRequest {
  readonly options: RunOptions;
  readonly argv: readonly Uint8Array[];
  readonly inherited: Inheritance;
  /** Whether a variable stands for an option: the command does not get it. */
  readonly isOptionVariable: (name: string) => boolean;
  readonly build: RunRecord["watchdog"];
  readonly workerUrls: CopyPlan["workerUrls"];
}

export interface Course {
  readonly request: RunRequest;
  readonly options: RunOptions;
  readonly identity: RunIdentity;
  readonly ledger: RunLedger;
  readonly stateDirectory: string;
  /** Whether the state directory can be written; without it there is no log. */
  readonly hasState: boolean;
  /** The caller's: ours is changed once the command has it. */
  readonly umask: number;
}

/**
 * @throws WatchdogError "state.refused": a person must change something, and nothing was started
 */
export function prepareCourse(request: RunRequest): Course {
  const identity = makeIdentity(request.options.name, request.argv);
  const ledger = new RunLedger(identity.startedAt);
  const stateDirectory = resolveStateDirectory(request.options.stateDir);
  const hasState = checkState(stateDirectory, ledger);
  const umask = process.umask();
  return { request, options: request.options, identity, ledger, stateDirectory, hasState, umask };
}

/**
 * Without a lease the state directory carries only the log: trouble with it is told, and the job
 * runs.
 */
function checkState(path: string, ledger: RunLedger): boolean {
  try {
    openStateDirectory(path);
    return true;
  } catch (error) {
    if (!(error instanceof WatchdogError) || error.code !== "state.unusable") throw error;
    say(messages.noLog(error.message));
    ledger.noteDegraded("state-unusable");
    return false;
  }
}

/** What the command gets: the caller's environment and the variables of the run. */
export function makeCommandEnvironment(course: Course): Uint8Array[] {
  const { identity, options, request } = course;
  const { timeoutMs } = options;
  const deadlineAt =
    timeoutMs === undefined ? undefined : ((identity.startedWallAt + timeoutMs) as WallAt);
  return makeEnvironment(request.inherited.environment, request.isOptionVariable, {
    runId: identity.runId,
    jobName: identity.jobName,
    stateDirectory: course.stateDirectory,
    deadlineAt,
  });
}
