/**
 * What runs now, under which leases, what it waits for, and how each job last ended. Gathers;
 * decides nothing.
 *
 * Always: read only, but that the journal reads its spool in; without a state directory everything
 * is empty. Clock and crash behaviour: as leases.ts.
 */
import { isRefusedStart } from "../core/refused-start.ts";
import {
  findRun,
  type JournalAnswer,
  type JournalRun,
  lastRuns,
  readHistory,
  runningRuns,
} from "../journal/queries.ts";
import { isOfOneStep } from "../core/one-step.ts";
import { showCircuit } from "./circuit-facts.ts";
import { type CircuitView, readBrokenCircuits } from "./circuits.ts";
import {
  isGoingOn,
  type JournalView,
  showJournalRun,
  showRun,
  supervisorOf,
  viewAnswer,
} from "./journal-runs.ts";
import { isTaken, runIdOf, showLease } from "./lease-facts.ts";
import { findPlaceTroubles } from "./lease-places.ts";
import { type LeaseView, readLeases, type TreeLook } from "./leases.ts";
import { isLeaseNamed, isRunNamed } from "./names.ts";

export interface StatusQuestion {
  readonly stateDirectory: string;
  /** The name of a job, a whole key, or the id of a run; undefined: everything. */
  readonly name: string | undefined;
  readonly treeLook: TreeLook;
}

export interface StatusView {
  readonly stateDirectory: string;
  readonly name: string | undefined;
  /** Those that are free too. */
  readonly leases: readonly LeaseView[];
  /** They hold no lease, and their watchdog lives. */
  readonly runs: readonly JournalRun[];
  /**
   * How each job last ended, newest first; a refusal, or a run of one step alone, only where a job
   * has nothing else.
   */
  readonly lastRuns: readonly JournalRun[];
  /** Those that are not closed; asked for one job, those whose settings are of its probe. */
  readonly circuits: readonly CircuitView[];
  readonly troubles: readonly string[];
}

/** Jobs beyond that are in the history. */
const MOST_JOBS = 100;
/** So far back the last run of one job that is over is looked for. */
const LOOK_BACK = 20;

/** @throws WatchdogError "state.unusable", "lease.unusable" */
export async function readStatus(question: StatusQuestion): Promise<StatusView> {
  const { stateDirectory, name, treeLook } = question;
  const isAsked = (view: LeaseView): boolean => name === undefined || isLeaseNamed(view, name);
  const leases = await readLeases({ stateDirectory, isAsked }, treeLook);
  const running = findRunning(stateDirectory, name);
  const held = new Set(leases.filter(isTaken).map(runIdOf));
  // Of one whose lock is taken the process may be out of sight (another pid namespace).
  const isOver = (run: JournalRun): boolean =>
    run.state === "ended" || !(held.has(run.runId) || isGoingOn(run));
  const last = findLast(question, leases, isOver);
  const broken = readBrokenCircuits(stateDirectory);
  return {
    stateDirectory,
    name,
    leases,
    runs: running.value.filter(({ runId }) => !held.has(runId)),
    lastRuns: last.value.filter(isOver),
    circuits: broken.circuits.filter(({ circuit }) => name === undefined || circuit.job === name),
    troubles: [
      ...findPlaceTroubles(stateDirectory),
      ...new Set([...running.troubles, ...last.troubles, ...broken.troubles]),
    ],
  };
}

/** Runs that go on without a lease; one with a lease is shown by it. */
function findRunning(stateDirectory: string, name: string | undefined): JournalView<JournalRun[]> {
  const found = viewAnswer<JournalRun[]>(runningRuns(stateDirectory), []);
  const isAsked = (run: JournalRun): boolean => name === undefined || isRunNamed(run, name);
  const value = found.value.filter(
    (run) => run.leases.length === 0 && isAsked(run) && isGoingOn(run),
  );
  return { ...found, value };
}

/** @param isOver  it has ended, or nobody is left who could write down how */
function findLast(
  { stateDirectory, name }: StatusQuestion,
  leases: readonly LeaseView[],
  isOver: (run: JournalRun) => boolean,
): JournalView<JournalRun[]> {
  if (name === undefined) return viewAnswer(lastRuns(stateDirectory, MOST_JOBS), []);
  const history = viewAnswer<JournalRun[]>(
    readHistory(stateDirectory, { target: name, limit: LOOK_BACK }),
    [],
  );
  const over = history.value.filter(isOver);
  const granted = over.filter((run) => !isRefusedStart(run));
  const last = granted.find((run) => !isOfOneStep(run)) ?? granted[0] ?? over[0];
  if (last !== undefined) return { ...history, value: [last] };
  const ids = [name, ...leases.flatMap((view) => runIdOf(view) ?? [])];
  const answers = ids.map((id) => findRun(stateDirectory, id));
  return viewAnswer(firstFound(answers), []);
}

function firstFound(
  answers: readonly JournalAnswer<JournalRun | undefined>[],
): JournalAnswer<JournalRun[]> {
  const found = answers.find((one) => one.kind === "read" && one.value !== undefined);
  const answer = found ?? answers[0] ?? { kind: "missing" };
  if (answer.kind !== "read") return answer;
  return { ...answer, value: answer.value === undefined ? [] : [answer.value] };
}

/** As `status --json` shows it. A contract; ignore unknown fields. */
export function showStatus(view: StatusView): Record<string, unknown> {
  return {
    format: 1,
    state_directory: view.stateDirectory,
    leases: view.leases.map(showLease),
    runs: view.runs.map((run) => ({
      ...showRun(run),
      pid_start_time: supervisorOf(run)?.start_time ?? null,
    })),
    last_runs: view.lastRuns.map(showJournalRun),
    circuits: view.circuits.map(showCircuit),
    troubles: view.troubles,
  };
}
