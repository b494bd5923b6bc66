/**
 * `watchdog run`: one run from start to end, as a list of steps.
 *
 * Order for speed: the command is spawned before any thread of ours starts. Order for safety: the
 * leases are had before anything is started; signal handlers and the reaper stand before the first
 * spawn, so that no signal and no death of a child can fall between; the guard stands by before the
 * command does.
 */
import { WatchdogError } from "../core/errors.ts";
import { expectsAnything } from "../core/expectations.ts";
import { type Leaving, outcomeOfRefusal } from "../core/outcome.ts";
import type { RunState } from "../core/run-state.ts";
import { wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { findFfiTrouble } from "../os/libc.ts";
import { readProcessIdentity } from "../os/machine.ts";
import { readPidfdInode } from "../os/pidfd-inode.ts";
import { becomeReaper, killChildren } from "../os/reaper.ts";
import { say } from "../os/say.ts";
import { type SpawnResult, spawnProcess } from "../os/spawn.ts";
import { nameErrno } from "../os/sys.ts";
import { traceStep } from "../os/trace.ts";
import { type ClaimedRun, claimForRun, type ClaimOfRun, describeClaim } from "./claim-for-run.ts";
import { conclude, releaseRun } from "./conclude.ts";
import {
  beginCourse,
  type Course,
  makeCommandEnvironment,
  prepareCourse,
  type RunRequest,
} from "./course.ts";
import type { Dependencies } from "./dependencies/dependencies.ts";
import { describeStart } from "./evidence.ts";
import { noteFailedClaim } from "./leave-refused.ts";
import { Judging, lookBefore } from "./judging.ts";
import type { Look } from "./checks/expected-files.ts";
import { messages } from "./messages.ts";
import { readOwnSelf } from "./own-self.ts";
import { RunOutput } from "./output.ts";
import { RunProgress } from "./progress/run-progress.ts";
import type { Protection } from "./protection.ts";
import { guardRun } from "./run-guard.ts";
import { RunLeases } from "./run-leases.ts";
import { recordOfEnded, recordOfRunning, unstarted, writeRecord } from "./record.ts";
import { slotStateOf } from "./slot-state.ts";
import { declareSchedule } from "./schedule.ts";
import { SignalInbox } from "./signal-inbox.ts";
import { untilStopped } from "./early-stop.ts";
import { beginWatch, type Watch } from "./watch.ts";

/**
 * Runs the command and everything around it.
 *
 * @returns how watchdog itself must leave
 * @throws WatchdogError "state.refused", "lease.refused" (78), "state.unusable", "lease.unusable"
 *   before anything was started; "spawn.failed" where no pipe is to be had
 */
export async function runCommand(request: RunRequest): Promise<Leaving> {
  const prepared = await prepare(request);
  traceStep("state directory open");
  const trouble = findFfiTrouble();
  if (trouble !== undefined) return runWithoutFfi(prepared, trouble);
  const inbox = new SignalInbox(request.inherited.ignoredSignals);
  const readying = Promise.race([makeReady(prepared), untilStopped(prepared, inbox)]);
  const ready = await noting(prepared, () => readying);
  if (ready.kind === "refused") {
    await prepared.telling.finish();
    return ready.leaving;
  }
  const { claimed, dependencies } = ready;
  const course = beginCourse(ready.course);
  const output = new RunOutput(course);
  becomeReaper();
  const granted = claimed.kind === "claimed" ? claimed : undefined;
  const protection = await noting(course, () => protect(course, granted));
  if (course.options.isVerbose) tellStart(course, output, claimed);
  try {
    const progress = new RunProgress(course, ready.before);
    const judging = new Judging({ course, output, progress, before: ready.before });
    return await start({ course, output, inbox, protection, dependencies, judging, progress });
  } catch (error) {
    // Nothing can watch the command: rather none than one that nobody watches.
    course.ledger.noteBug(error);
    const guard = protection.guard?.identity;
    killChildren([
      ...request.inherited.inbornChildren,
      ...(guard === undefined ? [] : [guard.pid]),
    ]);
    throw error;
  }
}

/** What has no state directory has no outbox either: whoever is to be told is told at once. */
async function prepare(request: RunRequest): Promise<Course> {
  try {
    return prepareCourse(request);
  } catch (error) {
    if (error instanceof WatchdogError && request.options.sinks.length > 0) {
      await (await import("./direct-telling.ts")).tellRefusedStart(request, error);
    }
    throw error;
  }
}

type Ready =
  | {
      readonly kind: "ready";
      /** With what its probes are told by files. */
      readonly course: Course;
      readonly claimed: Exclude<ClaimOfRun, { readonly kind: "refused" }>;
      /** Undefined: there is nothing to probe. */
      readonly dependencies: Dependencies | undefined;
      /** Of the files that the command is expected to write. */
      readonly before: readonly Look[];
    }
  | { readonly kind: "refused"; readonly leaving: Leaving };

/**
 * A1 to A6, then what the job depends on, and at last what it is to write: with the locks, and
 * without a number taken.
 */
async function makeReady(prepared: Course): Promise<Ready> {
  const { probes, readyProbes } = prepared.options;
  const isProbing = probes.length + readyProbes.length > 0;
  const starting = isProbing ? await import("./dependencies/start.ts") : undefined;
  const course = starting?.readGivenFiles(prepared) ?? prepared;
  const claimed = await claimForRun(course);
  traceStep("leases claimed");
  if (claimed.kind === "refused") return claimed;
  const awaited = await starting?.awaitDependencies(course);
  traceStep("dependencies have answered");
  if (awaited?.kind !== "refused") {
    const before = await lookBefore(course);
    return { kind: "ready", course, claimed, dependencies: awaited?.dependencies, before };
  }
  if (claimed.kind === "claimed") claimed.claim.release();
  return awaited;
}

/** A lease that cannot be had is written down, whatever else is said about it. */
async function noting<T>(course: Course, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    noteFailedClaim(course, error);
    await course.telling.finish();
    throw error;
  }
}

/** No lease can be had without FFI, and a lease was asked for. */
async function runWithoutFfi(course: Course, trouble: WatchdogError): Promise<Leaving> {
  const { hasLease, probes, readyProbes, maxFailRate, maxConsecutiveFails } = course.options;
  if (maxFailRate !== undefined || maxConsecutiveFails !== undefined) {
    throw new WatchdogError(trouble.code, `no items can be counted: ${trouble.message}`, {
      cause: trouble,
    });
  }
  if (probes.length + readyProbes.length > 0) {
    throw new WatchdogError(trouble.code, `nothing can be probed: ${trouble.message}`, {
      cause: trouble,
    });
  }
  if (expectsAnything(course.options) || course.options.isStrict) {
    throw new WatchdogError(trouble.code, `nothing can be checked: ${trouble.message}`, {
      cause: trouble,
    });
  }
  if (!hasLease) {
    const { runDegraded } = await import("./degraded.ts");
    const leaving = await runDegraded(course, trouble);
    await course.telling.finish();
    return leaving;
  }
  throw new WatchdogError(trouble.code, `no lease can be had: ${trouble.message}`, {
    hint: "watchdog run --no-lease -- COMMAND",
    cause: trouble,
  });
}

/** A7 to A9, and the guard of A10. */
function protect(course: Course, claimed: ClaimedRun | undefined): Protection {
  const leases = new RunLeases(course, claimed);
  traceStep("leases granted");
  const guard = guardRun(course, (identity) => leases.setGuard(identity));
  traceStep("guard stands by");
  return { leases, guard };
}

function tellStart(
  course: Course,
  output: RunOutput,
  claimed: { readonly kind: "without" } | ({ readonly kind: "claimed" } & ClaimedRun),
): void {
  const lines = claimed.kind === "claimed" ? describeClaim(claimed.claim) : [];
  for (const line of [...describeStart(course, output.names), ...lines]) say(line);
}

type Starting = Omit<Attendance, "main">;

async function start(starting: Starting): Promise<Leaving> {
  const { course, output, protection, dependencies, progress } = starting;
  writeRecord(course, recordOfRunning(course, undefined));
  traceStep("record written");
  traceStep("ready to spawn");
  const spawned = spawn(course, output, progress.path);
  traceStep("spawned");
  output.release();
  if (spawned.kind === "started") return attend({ ...starting, main: spawned.pid });
  progress.remove();
  dependencies?.end();
  return leaveUnstarted(course, spawned, protection);
}

interface Attendance {
  readonly course: Course;
  readonly main: number;
  readonly output: RunOutput;
  readonly inbox: SignalInbox;
  readonly protection: Protection;
  readonly dependencies: Dependencies | undefined;
  readonly judging: Judging;
  readonly progress: RunProgress;
}

/** From the spawn to the end. */
async function attend(attendance: Attendance): Promise<Leaving> {
  const { course, main, output, inbox, protection, dependencies, judging, progress } = attendance;
  const { guard, leases } = protection;
  faultPoint("spawn.after", { runId: course.identity.runId, pid: main });
  // Before anything else: what is not written down yet is found by its cookie alone.
  const child = readProcessIdentity(main) ?? { pid: main, start_time: 0 };
  const mainChild = { ...child, pidfd_inode: readPidfdInode(main) };
  guard?.note({ mainChild, phase: "running" });
  let onLost = (): void => undefined;
  beginBeats(course, () =>
    leases.begin({ mainChild, guard: guard?.identity, onLost: () => onLost() }),
  );
  traceStep("beating");
  // The copy first: the watch may find that a quick command has ended already, and end the output.
  output.start();
  const watch = beginWatch({
    course,
    main,
    output,
    inbox,
    guard,
    dependencies,
    finishProgress: () => progress.finish(),
    isGood: (state) => judging.isGood(state),
    onState: (state) => showState(protection, state),
  });
  onLost = () => watch.supervisor.loseLease();
  traceStep("watching");
  beginProgress(attendance, watch);
  const schedule = declareSchedule(course.options);
  guard?.note({ record: recordOfRunning(course, main), schedule });
  leases.sweep();
  // A slow disk under the record holds up neither the copy nor what the kernel delivers meanwhile.
  writeRecord(course, recordOfRunning(course, main));
  leases.writeTakeovers();
  course.journal?.put({
    kind: "run-started",
    at: wallNow(),
    run: recordOfRunning(course, main),
    runPath: course.runPath,
    owner: readOwnSelf().identity,
    child,
    leases: leases.grants,
    schedule,
    ...course.telling.field({ logPath: null, verdict: null }),
  });
  course.telling.begin();
  traceStep("start written down");
  const state = await watch.supervisor.finished;
  dependencies?.end();
  traceStep("tree empty, output delivered");
  const { tree } = watch;
  return conclude({ course, main, output, judging, tree, state, protection, progress });
}

function beginProgress({ output, progress, protection }: Attendance, watch: Watch): void {
  const { clock, supervisor, tree } = watch;
  progress.begin({
    clock,
    lastOutputAt: () => output.lastOutputAt(),
    tree: {
      members: () => tree.members(),
      collectedCpuMs: () => supervisor.collectedCpuMs,
    },
    onFailure: (failure) => supervisor.failItems(failure),
    onProgress: (shown, isNews) => protection.leases.showProgress(shown, isNews),
  });
}

/** A run without beats is held by the kernel's lock all the same. */
function beginBeats(course: Course, begin: () => void): void {
  try {
    begin();
  } catch (error) {
    course.ledger.noteBug(error);
  }
}

/** What the slot and the guard know of the run is what the machine has decided. */
function showState({ guard, leases }: Protection, state: RunState): void {
  const phase = slotStateOf(state);
  // The guard first: what the beat tells, it knows already.
  guard?.note({ phase, mainEnd: state.end ?? null });
  leases.setRunState(phase);
  if (state.end !== undefined) leases.setMainEnded();
}

function spawn(course: Course, output: RunOutput, progressPath: string | undefined): SpawnResult {
  const { inherited, program, argv } = course.request;
  faultPoint("spawn.before", { runId: course.identity.runId });
  const ours = process.umask(course.umask);
  try {
    return spawnProcess(
      {
        argv: program?.argv ?? argv,
        environment: [
          ...makeCommandEnvironment(course, progressPath),
          ...(program?.environment ?? []),
        ],
        group: inherited.hasTerminal ? "shared" : "own-group",
        redirections: [...output.redirections(), ...(program?.redirections ?? [])],
      },
      inherited,
    );
  } finally {
    process.umask(ours);
  }
}

async function leaveUnstarted(
  course: Course,
  refused: Extract<SpawnResult, { kind: "refused" }>,
  protection: Protection,
): Promise<Leaving> {
  const outcome = outcomeOfRefusal(refused.because);
  const name = Buffer.from(course.request.argv[0] ?? "").toString("utf8");
  say(messages.notStarted(name, nameErrno(refused.errorNumber)));
  if (refused.because === "system") say("watchdog: hint: ulimit -a");
  const record = recordOfEnded(course, undefined, unstarted(outcome));
  protection.leases.writeTakeovers();
  await releaseRun({ course, protection, record, isReleased: true });
  return outcome.leaving;
}
