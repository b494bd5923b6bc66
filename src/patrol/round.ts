/**
 * One patrol, as a list of steps: look at the leases, mark those that are dead, look at jobs,
 * circuits, outbox, room and journal, write down what is news, deliver what waits, and tell
 * somebody outside that the patrol lives.
 *
 * Guarantees: nobody is signalled and nothing is taken; of leases only those of dead owners with
 * empty trees are marked (repair/), after a second look; each change of state is one event, however
 * often a patrol comes, also where one dies at any step. What cannot be looked at is told and
 * changes nothing. Clock: the wall clock for people and calendars, MONOTONIC for the patrol's own
 * age. Crash behaviour: before the entry nothing was told; after it all was.
 */
import { decideNews, type FindingKind, type PatrolFinding } from "../core/patrol.ts";
import { renderKey } from "../core/lease-key.ts";
import { examineSpool } from "../journal/examine.ts";
import { Journal } from "../journal/journal.ts";
import {
  NOTHING_KNOWN,
  type PatrolKnowledge,
  readPatrolKnowledge,
} from "../journal/schedule-queries.ts";
import { localTimeZone } from "../os/calendar.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { readMachine } from "../os/machine.ts";
import { wakeAfter } from "../os/timers.ts";
import { describeJudged, judgeJobs } from "./jobs.ts";
import type {
  JobSight,
  LeaseSight,
  Patrolled,
  PatrolReport,
  PatrolRequest,
  RoomSight,
} from "./request.ts";
import { readRoom } from "./room.ts";

/** So long the guard of a dead owner has before a patrol speaks for it. */
export const GUARD_WAIT_MS = 2_000;
/** Time for what the journal could not take at once. */
const JOURNAL_MS = 5_000;

/** @throws WatchdogError "state.unusable", "lease.unusable", "lease.refused" */
export async function patrolOnce(request: PatrolRequest): Promise<PatrolReport> {
  const troubles: string[] = [];
  const journal = new Journal(request.stateDirectory, (line) => troubles.push(`journal: ${line}`));
  try {
    faultPoint("patrol.look", { directory: request.stateDirectory });
    const seen = await lookAtLeases(request, journal, troubles);
    const report = describe(request, seen, troubles);
    faultPoint("patrol.record", { findings: report.findings.length });
    journal.put({ kind: "patrolled", ...report.entry });
    journal.close(JOURNAL_MS);
    const isOverdue = ({ decision }: JobSight): boolean => decision.kind === "overdue";
    const found = report.findings.length + report.jobs.filter(isOverdue).length;
    const isComplete = troubles.length === 0;
    await deliver(request, troubles, { stateDirectory: request.stateDirectory, found });
    const { entry: _, ...answer } = report;
    return { ...answer, isComplete, troubles: [...new Set(troubles)] };
  } finally {
    journal.close(0);
  }
}

interface SeenLeases {
  readonly leases: readonly LeaseSight[];
  readonly marked: PatrolReport["marked"];
  readonly abandoned: readonly string[];
}

/**
 * Whose owner has just died is buried by its guard, which knows more: it goes first. Of whom the
 * patrol before has told already, nobody is waited for.
 */
async function lookAtLeases(
  request: PatrolRequest,
  journal: Journal,
  troubles: string[],
): Promise<SeenLeases> {
  const before = readBefore(request.stateDirectory);
  const told = findTold(before);
  const isNews = ({ lost }: LeaseSight): boolean => lost !== undefined && !told.has(lost.runId);
  let leases = await request.readLeases();
  if (leases.some(isNews)) {
    await new Promise<void>((resolve) => wakeAfter(GUARD_WAIT_MS, resolve));
    leases = await request.readLeases();
  }
  const dead = leases.filter(({ verdict }) => verdict === "dead").map(({ key }) => key);
  faultPoint("patrol.mark", { dead: dead.map(renderKey) });
  // What a patrol that died has begun to mark is brought to its end, too.
  const isIdle = dead.length === 0 && !before.hasOpenAct;
  const { marked, lines } = isIdle ? NONE_MARKED : await request.markDead();
  troubles.push(...lines);
  const names = new Set(marked.map(renderKey));
  return {
    leases: leases.filter(({ key }) => !names.has(renderKey(key))),
    marked,
    abandoned: abandonLost(leases.filter(isNews), journal),
  };
}

/** Without the jobs. */
function readBefore(stateDirectory: string): PatrolKnowledge {
  const answer = readPatrolKnowledge(stateDirectory, { drains: false, limit: 0 });
  return answer.kind === "read" ? answer.value : NOTHING_KNOWN;
}

/** Runs of which a patrol has found before that their owner is dead. */
function findTold({ findings }: PatrolKnowledge): ReadonlySet<string> {
  return new Set(
    findings.flatMap(({ runId, state }) =>
      runId !== null && LOST_STATES.has(state) ? [runId] : [],
    ),
  );
}

const LOST_STATES: ReadonlySet<string> = new Set(["dead", "orphaned"]);

const NONE_MARKED = { marked: [], lines: [] } as const;

/**
 * Watchdog and its guard were killed, and the command lives on: that the run is over as a run is
 * proven, and nobody else will tell before the next one comes. Whether anybody of it lives is for
 * the verdict, and nothing is released.
 */
function abandonLost(leases: readonly LeaseSight[], journal: Journal): string[] {
  const told = new Set<string>();
  for (const { lost, rule, because, verdict } of leases) {
    if (lost === undefined || lost.isGuarded || verdict !== "orphaned") continue;
    if (told.has(lost.runId)) continue;
    told.add(lost.runId);
    const { runId, run, leases: granted } = lost;
    const about = { at: wallNow(), runId, run, leases: granted };
    journal.put({ kind: "run-abandoned", ...about, by: "patrol", because: `${rule} ${because}` });
  }
  return [...told];
}

type Described = Omit<PatrolReport, "isComplete" | "troubles"> & {
  readonly entry: Omit<Parameters<Journal["put"]>[0] & { kind: "patrolled" }, "kind">;
};

function describe(request: PatrolRequest, seen: SeenLeases, troubles: string[]): Described {
  const { stateDirectory } = request;
  const at = wallNow();
  const known = readKnown(stateDirectory, troubles);
  const jobs = judgeJobs(known.jobs, at);
  const circuits = request.readCircuits();
  troubles.push(...circuits.troubles);
  const outbox = request.readOutbox?.();
  const room = readRoom(stateDirectory);
  const findings = [
    ...seen.leases.flatMap(findInLease),
    ...circuits.circuits.map(findInCircuit),
    ...findInRoom(room),
    ...findInOutbox(outbox?.dead ?? 0),
    ...findInSpool(stateDirectory),
  ];
  const looked: FindingKind[] = ["lease", "room", "outbox", "journal"];
  if (circuits.isReadable) looked.push("circuit");
  const news = decideNews({ known: known.findings, found: findings, looked });
  const { bootId } = readMachine();
  const held = new Map(seen.leases.map((one) => [renderKey(one.key), one]));
  return {
    stateDirectory,
    at,
    ...seen,
    jobs,
    circuits: circuits.circuits,
    outbox,
    room,
    findings,
    news,
    overdueNews: compareOverdue(jobs),
    last: known.patrol,
    entry: {
      at,
      pid: process.pid,
      bootId,
      monotonicMs: monotonicNow(),
      periodMs: request.periodMs ?? null,
      findings,
      looked,
      // The same run holds it and beats again; whoever else has it has not recovered.
      recovered: news.closed
        .filter(({ subject, runId }) => {
          const now = held.get(subject);
          return now?.verdict === "held" && now.runId === runId;
        })
        .map(({ subject }) => subject),
      jobs: jobs.flatMap(describeJudged),
      declared: findUndeclared(request, known),
      isExpected: true,
    },
  };
}

/** In the local zone of whoever patrols, where the configuration names none. */
function findUndeclared({ configured = [] }: PatrolRequest, known: PatrolKnowledge) {
  const names = new Set(known.jobs.map(({ schedule }) => schedule.job));
  return configured
    .filter(({ job }) => !names.has(job))
    .map((one) => (one.cron === null ? one : { ...one, timeZone: one.timeZone ?? zoneHere() }));
}

function zoneHere(): string | null {
  return localTimeZone() ?? null;
}

function readKnown(stateDirectory: string, troubles: string[]): PatrolKnowledge {
  const answer = readPatrolKnowledge(stateDirectory, { drains: true });
  if (answer.kind === "read") {
    troubles.push(...answer.notes.map((note) => `journal: ${note}`));
    return answer.value;
  }
  if (answer.kind === "unreadable") troubles.push(`journal: ${answer.reason}`);
  return NOTHING_KNOWN;
}

/**
 * Whoever is held or free needs nobody, nor does one whose guard is at work; a dead one that could
 * not be marked does.
 */
function findInLease({ key, verdict, because, runId, job, lost }: LeaseSight): PatrolFinding[] {
  if (verdict === "free" || verdict === "held" || lost?.isGuarded === true) return [];
  const subject = renderKey(key);
  return [{ kind: "lease", subject, state: verdict, because, runId, job, key }];
}

const OF_NOBODY = { runId: null, job: null, key: null };

function findInCircuit({ name, state }: { name: string; state: string }): PatrolFinding {
  return { ...OF_NOBODY, kind: "circuit", subject: name, state: "open", because: state };
}

function findInRoom(room: RoomSight | undefined): PatrolFinding[] {
  if (room === undefined || !room.isLow) return [];
  return [{ ...OF_NOBODY, kind: "room", subject: "room", state: "low", because: "nearly-full" }];
}

function findInOutbox(dead: number): PatrolFinding[] {
  if (dead === 0) return [];
  const because = "given-up";
  return [{ ...OF_NOBODY, kind: "outbox", subject: "outbox", state: "dead", because }];
}

function findInSpool(stateDirectory: string): PatrolFinding[] {
  const { waiting, bad, refusal } = examineSpool(stateDirectory);
  const about = { ...OF_NOBODY, kind: "journal", subject: "journal" } as const;
  if (refusal !== undefined) return [{ ...about, state: "spool", because: "refused" }];
  if (bad > 0) return [{ ...about, state: "spool", because: "unreadable" }];
  return waiting > 0 ? [{ ...about, state: "spool", because: "waiting" }] : [];
}

function compareOverdue(jobs: readonly JobSight[]): PatrolReport["overdueNews"] {
  const isOverdue = ({ decision }: JobSight): boolean => decision.kind === "overdue";
  const was = ({ schedule }: JobSight): boolean => schedule.overdueState !== null;
  const nameOf = ({ schedule }: JobSight): string => schedule.job;
  return {
    opened: jobs.filter((job) => isOverdue(job) && !was(job)).map(nameOf),
    closed: jobs.filter((job) => job.decision.kind === "fine" && was(job)).map(nameOf),
  };
}

/** After the entry: what this patrol has found goes with it. Each is tried whatever the other. */
async function deliver(
  request: PatrolRequest,
  troubles: string[],
  patrolled: Patrolled,
): Promise<void> {
  faultPoint("patrol.flush", { hasOutbox: request.flush !== undefined });
  try {
    troubles.push(...((await request.flush?.()) ?? []));
  } catch (error) {
    troubles.push(`outbox: ${textOf(error)}`);
  }
  faultPoint("patrol.ping", { isAsked: request.ping !== undefined });
  try {
    const trouble = await request.ping?.(patrolled);
    if (trouble !== undefined) troubles.push(trouble);
  } catch (error) {
    troubles.push(`ping: ${textOf(error)}`);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
