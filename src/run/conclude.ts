/**
 * The end of a run: stops the heartbeat, decides the outcome, names what is left, tells it on
 * stderr where a person must know, writes it down, and gives the leases back (R0 to R5).
 *
 * Always: the guard knows the end before R2, and the result file tells it after the journal does,
 * so that wherever watchdog is killed no two of them tell two ends. State after a crash: by the
 * step that was reached; until R5 the kernel's lock is ours, and after it nothing touches a file of
 * the keys.
 */
import { decideOutcome, type Leaving, type Outcome } from "../core/outcome.ts";
import type { RunState } from "../core/run-state.ts";
import type { NamedProcess, RunRecord } from "../core/run-record.ts";
import { wallNow } from "../os/clock.ts";
import { collectChildren } from "../os/reaper.ts";
import { wakeEvery } from "../os/timers.ts";
import { faultPoint } from "../os/faults.ts";
import { say } from "../os/say.ts";
import { nameProcesses, type Tree } from "../tree/tree.ts";
import { type Course, JOURNAL_LIMIT_MS } from "./course.ts";
import type { Guard } from "./guard.ts";
import type { RunProgress } from "./progress/run-progress.ts";
import type { Protection } from "./protection.ts";
import { describeEnd } from "./evidence.ts";
import { forgetKept } from "./kept-registry.ts";
import { messages } from "./messages.ts";
import { tellResults } from "./checks/messages.ts";
import type { Judging } from "./judging.ts";
import type { RunOutput } from "./output.ts";
import { NO_RESULTS, recordOfEnded, type RunResults, writeRecord } from "./record.ts";
import { declareSchedule } from "./schedule.ts";
import type { RunTelling } from "./telling.ts";

export interface EndedRun {
  readonly course: Course;
  readonly main: number;
  readonly output: RunOutput;
  readonly judging: Judging;
  readonly tree: Tree;
  readonly state: RunState;
  readonly protection: Protection;
  readonly progress: RunProgress;
}

/** The status is decided before it is told: whatever goes wrong in telling does not change it. */
export async function conclude(run: EndedRun): Promise<Leaving> {
  const { course, protection, state } = run;
  const leases = protection.leases.grants;
  // Judged while the output was delivered, and while beats went on; a second request does not wait.
  const judged = await run.judging.judge(state);
  await attempt(course, () => faultPoint("release.R0", { leases, end: state.end ?? null }));
  await attempt(course, () => protection.leases.stopBeat());
  let hasLostLease = state.hasLostLease;
  await attempt(course, () => {
    faultPoint("release.R1", { runId: course.identity.runId, isTreeEmpty: !state.isStuck });
    hasLostLease ||= protection.leases.isLost();
  });
  await attempt(course, () => run.progress.finish());
  const { program } = course.request;
  const verdict = program?.readVerdict();
  if (verdict === undefined) program?.tellKilled(course.identity.runId);
  const outcome = decideOutcome({
    ...state,
    verdict,
    finalItemsFailure: run.progress.failure,
    hasLostLease,
    successExitCodes: course.options.successExitCodes,
    hasLostOutput: run.output.writeError() !== undefined,
    failedChecks: judged.failedChecks,
  });
  const isJudged = outcome.name === "ok" || outcome.name === "bad_output";
  let record: RunRecord | undefined;
  await attempt(course, () => {
    const results = isJudged ? judged.results : NO_RESULTS;
    record = report(run, outcome, { results, steps: verdict?.steps ?? null });
  });
  await releaseRun({ course, protection, record, isReleased: !state.isStuck });
  run.progress.remove();
  // A guard that buries this run must spare them, so not before it has left.
  await attempt(course, () => forgetKept(course.stateDirectory, course.identity.runId));
  return outcome.leaving;
}

/** Trouble of our own in one step must not cost the others. */
async function attempt(course: Course, act: () => void | Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    course.ledger.noteBug(error);
  }
}

export interface Release {
  readonly course: Course;
  readonly protection: Protection;
  /** Undefined where it could not be made. */
  readonly record: RunRecord | undefined;
  /** False where members survived KILL: then nobody may take the lease for free. */
  readonly isReleased: boolean;
}

/** R2 to R5, each whatever became of the one before, and then the notices, outside of the lease. */
export async function releaseRun(release: Release): Promise<void> {
  const { course, record, isReleased } = release;
  const { leases, guard } = release.protection;
  const { runId } = course.identity;
  let hasDue = false;
  course.telling.conclude();
  await attempt(course, () => {
    if (record !== undefined) guard?.note({ record, isReleased });
  });
  await attempt(course, () => {
    faultPoint("release.R2", { leases: leases.grants, isTreeEmpty: isReleased });
    if (isReleased) leases.markReleased();
  });
  await attempt(course, () => faultPoint("release.R3", { runId, outcome: record?.outcome }));
  await attempt(course, () => {
    if (record !== undefined) {
      const { runPath, ledger } = course;
      const declared = { schedule: declareSchedule(course.options) };
      const told = course.telling.fieldOfEnd(record);
      const entry = { run: record, runPath, leases: ledger.leases, isReleased };
      course.journal?.put({ kind: "run-ended", at: wallNow(), ...entry, ...declared, ...told });
    }
    hasDue = course.journal?.hasDueNotices() === true;
    course.journal?.close(JOURNAL_LIMIT_MS);
  });
  if (record !== undefined) await attempt(course, () => writeRecord(course, record));
  await attempt(course, () => {
    faultPoint("release.R4", { runId, guard: guard?.identity?.pid });
    return sayBye(guard, course.telling);
  });
  await attempt(course, () => {
    faultPoint("release.R5", { leases: leases.grants });
    leases.close();
  });
  await attempt(course, () => course.telling.finish(hasDue));
}

/** Nobody collects children for us where no watch was begun. */
async function sayBye(guard: Guard | undefined, telling: RunTelling): Promise<void> {
  if (guard === undefined) return;
  const collecting = wakeEvery(COLLECT_MS, () => {
    for (const change of collectChildren()) {
      guard.onEnded(change.pid);
      telling.onCollected(change);
    }
  });
  await guard.sayBye();
  collecting.cancel();
}

const COLLECT_MS = 1;

interface Brought {
  readonly results: RunResults;
  readonly steps: RunRecord["steps"];
}

function report(run: EndedRun, outcome: Outcome, { results, steps }: Brought): RunRecord {
  const { course, state, output } = run;
  const hasChildren = run.tree.hasChildren();
  const kept = hasChildren ? nameProcesses(run.tree.kept()) : [];
  const leftAlone = hasChildren ? nameProcesses(run.tree.leftAlone()) : [];
  if (!(course.options.isQuiet && outcome.name === "ok")) tell(run, outcome, leftAlone);
  const { unsignalable } = course.ledger;
  if (unsignalable.length > 0) say(messages.notSignalable(unsignalable));
  for (const line of output.troubles()) say(line);
  for (const line of tellResults(results, toldOf(course))) say(line);
  faultPoint("record.end", { outcome: outcome.name });
  const record = recordOfEnded(course, run.main, {
    outcome,
    end: state.end,
    endedLeftovers: endsLeftovers(run),
    kept,
    leftAlone,
    output: output.summary(),
    log: output.logSummary(),
    results,
    steps,
  });
  if (course.options.isVerbose) for (const line of describeEnd(outcome, record)) say(line);
  return record;
}

/** Nobody asked for the comparison: cron would mail it. */
function toldOf({ options, request }: Course): Parameters<typeof tellResults>[1] {
  const { isVerbose, isQuiet } = options;
  const isSuspicionTold = isVerbose || (request.inherited.hasTerminal && !isQuiet);
  return { isVerbose, isSuspicionTold };
}

/** Whether watchdog ended what was left, or waited for it, or left it. */
function endsLeftovers({ course, state }: EndedRun): boolean {
  if (course.options.leftovers === "kill") return true;
  return state.isKilling || isEndedByUs(state);
}

/** Then the whole tree was meant. */
function isEndedByUs({ limit, dependency, itemsFailure }: RunState): boolean {
  return [limit, dependency, itemsFailure].some((one) => one !== undefined);
}

function tell(run: EndedRun, outcome: Outcome, leftAlone: readonly NamedProcess[]): void {
  const { course, state } = run;
  for (const line of course.ledger.heldLines) say(line);
  // What has become of a dependency was told when it was seen.
  if (state.limit !== undefined && state.dependency === undefined) {
    say(messages.limitReached(outcome, course.options));
  }
  const failure = state.itemsFailure ?? run.progress.failure;
  if (outcome.name === "bad_output" && failure?.because === outcome.because) {
    say(messages.itemsFailed(failure, course.options, state.itemsFailure !== undefined));
  }
  tellLeftovers(run);
  if (leftAlone.length > 0) say(messages.leftAlone(leftAlone));
}

function tellLeftovers(run: EndedRun): void {
  const { course, state } = run;
  const left = course.ledger.leftovers(true);
  // After a limit or a request the whole tree was meant: who outlived the main command is no news.
  if (left.length === 0 || isEndedByUs(state) || state.stop !== undefined) return;
  const { unnamedLeftovers } = course.ledger;
  if (endsLeftovers(run)) {
    // Who could not be ended has a line of its own.
    const ended = left.filter((one) => one.ended_by !== null);
    if (ended.length > 0) say(messages.leftoversEnded(ended, ended.length + unnamedLeftovers));
    return;
  }
  if (course.options.leftovers === "leave") {
    say(messages.leftoversLeft(left, left.length + unnamedLeftovers));
  }
}
