/**
 * The course of a run: what every step of it needs, made before anything is started.
 */
import { splitRunPath, valueOf } from "../core/environment-entries.ts";
import { WatchdogError } from "../core/errors.ts";
import type { PolicyFile } from "../core/policy.ts";
import { circuitNameOf } from "../core/probe-settings.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { WallAt } from "../core/time.ts";
import { faultPoint } from "../os/faults.ts";
import { findFfiTrouble } from "../os/libc.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { requireRight } from "../os/rights.ts";
import { say } from "../os/say.ts";
import { openStateDirectory, resolveStateDirectory } from "../os/state-dir.ts";
import { checkStateFormat } from "../os/state-format.ts";
import type { OwnProgram } from "../os/own-program.ts";
import { sharingOf } from "../os/state-sharing.ts";
import { Journal } from "../journal/journal.ts";
import type { CopyPlan } from "../output/copy.ts";
import { extendRunPath, makeEnvironment } from "./environment.ts";
import { beginNow, makeIdentity, type RunIdentity } from "./identity.ts";
import { RunLedger } from "./ledger.ts";
import { maskRun } from "./masking.ts";
import { messages } from "./messages.ts";
import { RunTelling } from "./telling.ts";

export interface RunRequest {
  readonly options: RunOptions;
  readonly argv: readonly Uint8Array[];
  /** What is started in the place of `argv`, which is shown; undefined: `argv` itself. */
  readonly program?: OwnProgram;
  readonly inherited: Inheritance;
  /** The configuration files that have a `[policy]`; none: whoever can open the state may run. */
  readonly policyFiles?: readonly PolicyFile[];
  /** Whether a variable stands for an option: the command does not get it. */
  readonly isOptionVariable: (name: string) => boolean;
  readonly build: RunRecord["watchdog"];
  readonly workerUrls: CopyPlan["workerUrls"] & {
    readonly beat: URL;
    readonly wait: URL;
    readonly scan: URL;
    readonly probe: URL;
  };
}

export interface Course {
  readonly request: RunRequest;
  readonly options: RunOptions;
  readonly identity: RunIdentity;
  readonly ledger: RunLedger;
  readonly stateDirectory: string;
  /** Whether the state directory can be written; without it there is no log and no journal. */
  readonly hasState: boolean;
  readonly journal: Journal | undefined;
  readonly telling: RunTelling;
  /** Ids of the runs around this one, outermost first. */
  readonly runsAround: readonly string[];
  /** The same and our own, as the command finds it in its environment. */
  readonly runPath: string;
  /** The caller's: ours is changed once the command has it. */
  readonly umask: number;
}

/** How long the journal may take at the end of a start or run; what is left goes to the spool. */
export const JOURNAL_LIMIT_MS = 500;
/** For files of ours, until it is known whether the state directory is shared. */
const PRIVATE_UMASK = 0o077;

/**
 * A0, and what needs no state. From here on the umask of this process is our own; the command gets
 * the caller's back at its spawn.
 *
 * @throws WatchdogError "state.refused": a person must change something, and nothing was started;
 *   "state.unusable" where a lease was to be had there; "rights.missing" (77) by the policy
 */
export function prepareCourse(request: RunRequest): Course {
  const { options, inherited } = request;
  maskRun(request);
  const identity = makeIdentity(options.name, request.argv);
  const ledger = new RunLedger(identity.startedAt);
  const stateDirectory = resolveStateDirectory(options.stateDir);
  const umask = process.umask(PRIVATE_UMASK);
  const { policyFiles = [] } = request;
  if (policyFiles.length > 0) requireRight("run", stateDirectory, policyFiles);
  const hasState = checkState(stateDirectory, options, ledger);
  const around = valueOf(inherited.environment, "WATCHDOG_RUN_PATH");
  const tell = (line: string): void => ledger.tellOnce(messages.journalTrouble(line));
  const journal = hasState ? new Journal(stateDirectory, tell) : undefined;
  const telling = new RunTelling({
    options,
    inherited,
    stateDirectory,
    runId: identity.runId,
    journal,
    version: request.build.version,
    environment: () => makeCommandEnvironment(course),
    umask,
    onBug: (error) => ledger.noteBug(error),
    tell,
  });
  const course: Course = {
    request,
    options,
    identity,
    ledger,
    stateDirectory,
    hasState,
    journal,
    telling,
    runsAround: splitRunPath(around),
    runPath: extendRunPath(around, identity.runId),
    umask,
  };
  return course;
}

/** The leases are ours: the run begins. */
export function beginCourse(course: Course): Course {
  const identity = beginNow(course.identity);
  course.ledger.restart(identity.startedAt);
  return { ...course, identity };
}

/**
 * Without a lease the state directory carries only the log and the journal: trouble with it is
 * told, and the job runs.
 */
function checkState(path: string, options: RunOptions, ledger: RunLedger): boolean {
  try {
    faultPoint("acquire.A0", { path });
    const { assumesLocalState: assumesLocal, stateGroup: group } = options;
    openStateDirectory(path, { assumesLocal, group });
    process.umask(sharingOf(path).umask);
    // The one try of the lock needs FFI, and without a lease nothing is locked.
    if (findFfiTrouble() === undefined) checkStateFormat(path);
    return true;
  } catch (error) {
    if (options.hasLease) throw error;
    if (!(error instanceof WatchdogError) || error.code !== "state.unusable") throw error;
    say(messages.noLog(error.message));
    ledger.noteDegraded("state-unusable");
    return false;
  }
}

/** What the command gets: the caller's environment and the variables of the run. */
export function makeCommandEnvironment(course: Course, progressPath?: string): Uint8Array[] {
  const { identity, options, request } = course;
  const { timeoutMs } = options;
  const deadlineAt =
    timeoutMs === undefined ? undefined : ((identity.startedWallAt + timeoutMs) as WallAt);
  return makeEnvironment(request.inherited.environment, request.isOptionVariable, {
    runId: identity.runId,
    jobName: identity.jobName,
    stateDirectory: course.stateDirectory,
    leases: course.ledger.leases,
    pausesOn: options.probes.filter(({ onOpen }) => onOpen === "pause").map(circuitNameOf),
    deadlineAt,
    progressPath,
    isStep: options.isStep === true,
  });
}
