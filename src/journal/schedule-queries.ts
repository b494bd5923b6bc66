/**
 * What whoever looks for overdue jobs asks the journal: the schedules with the facts about their
 * runs, what patrols have found so far, and when the last one was here. Read-only, as queries.ts.
 *
 * Always bounded: so many schedules, so many runs of each. Whether a run that says `running` does
 * is for the caller. Clock: none.
 */
import type { Database } from "bun:sqlite";
import type { KnownFinding, PatrolRow } from "../core/patrol.ts";
import type { JobSchedule } from "../core/schedule.ts";
import { hasOpenAct } from "./audit-rows.ts";
import { readFindings, readPatrol } from "./patrol-rows.ts";
import { askJournal, type JournalAnswer } from "./queries.ts";
import { IS_OF_ONE_STEP } from "./rows.ts";
import { hasScheduleTables, MOST_SCHEDULES, readSchedules } from "./schedule-rows.ts";

/** A row that says `running`, as far as it can be told whether it does. */
export interface RunningRow {
  readonly startedAt: number;
  readonly pid: number;
  readonly pidStartTime: number | null;
}

export interface ScheduledJob {
  readonly schedule: JobSchedule;
  /** Newest first. */
  readonly running: readonly RunningRow[];
  /** The longest of the last good runs, where one goes on; undefined: none is known. */
  readonly longestGoodMs: number | undefined;
}

export interface PatrolKnowledge {
  readonly jobs: readonly ScheduledJob[];
  readonly findings: readonly KnownFinding[];
  readonly patrol: PatrolRow | undefined;
  /** An act of a repair has been begun and has no end. */
  readonly hasOpenAct: boolean;
}

export const NOTHING_KNOWN: PatrolKnowledge = {
  jobs: [],
  findings: [],
  patrol: undefined,
  hasOpenAct: false,
};

/** Good runs of a job that tell how long one takes. */
const GOOD_RUNS = 10;
/** They are looked for among so many. */
const LOOK_BACK = 200;
/** Rows that say `running`; there are as many as runs go on, and some that nobody could end. */
const MOST_RUNNING = 10_000;
const MOST_OF_A_JOB = 20;

/** @param drains  whether entries that wait in the spool are read in first */
export function readPatrolKnowledge(
  stateDirectory: string,
  { drains, limit = MOST_SCHEDULES }: { readonly drains: boolean; readonly limit?: number },
): JournalAnswer<PatrolKnowledge> {
  return askJournal(stateDirectory, (db) => readKnowledge(db, limit), drains);
}

function readKnowledge(db: Database, limit: number): PatrolKnowledge {
  if (!hasScheduleTables(db)) return NOTHING_KNOWN;
  const running = readRunning(db);
  const jobs = readSchedules(db, limit).map((schedule) => {
    const rows = running.get(schedule.job) ?? [];
    // Only of a run that goes on it is asked how long good ones take.
    const longestGoodMs = rows.length === 0 ? undefined : readLongestGood(db, schedule.job);
    return { schedule, running: rows, longestGoodMs };
  });
  const findings = readFindings(db);
  return { jobs, findings, patrol: readPatrol(db), hasOpenAct: hasOpenAct(db) };
}

interface RunningCells {
  readonly job: string;
  readonly started_at: number;
  readonly pid: number;
  readonly pid_start_time: number | null;
}

/** By job, newest first. */
function readRunning(db: Database): Map<string, RunningRow[]> {
  const rows = db
    .query<RunningCells, [number]>(
      "SELECT job, started_at, pid, pid_start_time FROM runs WHERE state = 'running' " +
        "ORDER BY sort_at DESC, seq DESC LIMIT ?",
    )
    .all(MOST_RUNNING);
  const byJob = new Map<string, RunningRow[]>();
  for (const { job, started_at: startedAt, pid, pid_start_time: pidStartTime } of rows) {
    const known = byJob.get(job) ?? [];
    byJob.set(job, [...known, { startedAt, pid, pidStartTime }].slice(0, MOST_OF_A_JOB));
  }
  return byJob;
}

function readLongestGood(db: Database, job: string): number | undefined {
  const found = db
    .query<{ duration_ms: number }, [string, number, number]>(
      "SELECT duration_ms FROM (SELECT outcome, because, duration_ms FROM runs WHERE job = ? " +
        "ORDER BY sort_at DESC, seq DESC LIMIT ?) " +
        `WHERE outcome = 'ok' AND NOT ${IS_OF_ONE_STEP} AND duration_ms IS NOT NULL LIMIT ?`,
    )
    .all(job, LOOK_BACK, GOOD_RUNS);
  return found.length === 0 ? undefined : Math.max(...found.map((row) => row.duration_ms));
}
