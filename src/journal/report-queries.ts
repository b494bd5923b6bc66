/**
 * What a report asks the journal: few columns of many rows, and the whole record only of each job's
 * last run, so that 100,000 runs are reported within half a second.
 *
 * Refuses to know what is good or bad. Always: one snapshot for all of a report; every list has a
 * bound. Clock: none; the span is handed in as wall-clock milliseconds.
 */
import type { Database } from "bun:sqlite";
import {
  askJournal,
  IS_REFUSED,
  type JournalAnswer,
  lastOfJob,
  type JournalRun,
} from "./queries.ts";
import { IS_OF_ONE_STEP } from "./rows.ts";

/** Jobs beyond these are counted and not told of. */
export const MOST_REPORTED_JOBS = 500;
/** Runs on the time line; beyond these the oldest are left out. */
export const MOST_REPORTED_RUNS = 2_000;
/** Good runs that what is usual is taken from, among so many before. */
const GOOD_RUNS = 20;
const LOOK_BACK = 200;

/** A row without its record. */
export interface RunGlance {
  readonly runId: string;
  readonly job: string;
  readonly state: "running" | "ended";
  readonly outcome: string | null;
  readonly because: string | null;
  readonly exitStatus: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly durationMs: number | null;
  readonly pid: number;
  readonly pidStartTime: number | null;
}

export interface JobRows {
  readonly job: string;
  readonly runs: number;
  readonly good: number;
  readonly stopped: number;
  readonly skipped: number;
  /** One step alone was asked for, and went well. */
  readonly partial: number;
  /** Neither a skip nor partial, at any time; undefined: there is none. */
  readonly last: JournalRun | undefined;
  /** Of the span. */
  readonly lastSkip: JournalRun | undefined;
  readonly goodDurationsMs: readonly number[];
  /** Newest first, without skips and partial ones. */
  readonly lastRuns: readonly RunGlance[];
  readonly events: Readonly<Record<string, number>>;
}

export interface ReportRows {
  /** By their newest run, newest first. */
  readonly jobs: readonly JobRows[];
  /** Those that are counted and not told of. */
  readonly omittedJobs: number;
  /** Of the span and what still runs from before it, newest first. */
  readonly runs: readonly RunGlance[];
  readonly omittedRuns: number;
}

/** @param since  wall-clock milliseconds: of runs that have begun, or ended, since then */
export function readReportRows(stateDirectory: string, since: number): JournalAnswer<ReportRows> {
  return askJournal(stateDirectory, (db) => {
    const counted = countJobs(db, since);
    const runs = selectGlances(db, OF_SPAN, [since, MOST_REPORTED_RUNS + 1]);
    const events = countEvents(db, since);
    const total = counted.reduce((sum, { runs: count }) => sum + count, 0);
    return {
      jobs: counted
        .slice(0, MOST_REPORTED_JOBS)
        .map((row) => ({ ...row, ...describeJob(db, row.job, since), events: events(row.job) })),
      omittedJobs: Math.max(0, counted.length - MOST_REPORTED_JOBS),
      runs: runs.slice(0, MOST_REPORTED_RUNS),
      omittedRuns: Math.max(0, total - MOST_REPORTED_RUNS),
    };
  });
}

type Counts = Pick<JobRows, "job" | "runs" | "good" | "stopped" | "skipped" | "partial">;

/** A run that began before the span and goes on, or ended in it, is of it. */
const IS_OF_SPAN = "(sort_at >= ?1 OR state = 'running')";
const OF_SPAN = `WHERE ${IS_OF_SPAN} ORDER BY sort_at DESC, seq DESC LIMIT ?2`;

function countJobs(db: Database, since: number): Counts[] {
  return db
    .query<Counts, [number]>(
      `SELECT job, count(*) AS runs, sum(outcome IS 'ok') - sum(${IS_OF_ONE_STEP}) AS good,
         sum(${IS_OF_ONE_STEP}) AS partial,
         sum(outcome IS 'stopped') AS stopped, sum(${IS_REFUSED}) AS skipped
       FROM runs WHERE ${IS_OF_SPAN} GROUP BY job ORDER BY max(sort_at) DESC, job`,
    )
    .all(since);
}

function describeJob(
  db: Database,
  job: string,
  since: number,
): Pick<JobRows, "last" | "lastSkip" | "goodDurationsMs" | "lastRuns"> {
  const lastRuns = selectGlances(
    db,
    `WHERE job = ? AND NOT ${IS_REFUSED} AND NOT ${IS_OF_ONE_STEP} ` +
      "ORDER BY sort_at DESC, seq DESC LIMIT ?",
    [job, LOOK_BACK],
  );
  const [newest] = lastRuns;
  const good = lastRuns.filter(({ runId, outcome }) => outcome === "ok" && runId !== newest?.runId);
  return {
    last: newest === undefined ? undefined : lastOfJob(db, job, "granted"),
    lastSkip: lastOfJob(db, job, "skipped", since),
    goodDurationsMs: good.flatMap(({ durationMs }) => durationMs ?? []).slice(0, GOOD_RUNS),
    lastRuns,
  };
}

interface GlanceRow {
  readonly run_id: string;
  readonly job: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly because: string | null;
  readonly exit_status: number | null;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly duration_ms: number | null;
  readonly pid: number;
  readonly pid_start_time: number | null;
}

const GLANCE_COLUMNS =
  "run_id, job, state, outcome, because, exit_status, started_at, ended_at, duration_ms, pid, " +
  "pid_start_time";

function selectGlances(
  db: Database,
  rest: string,
  bindings: readonly (string | number)[],
): RunGlance[] {
  return db
    .query<GlanceRow, (string | number)[]>(`SELECT ${GLANCE_COLUMNS} FROM runs ${rest}`)
    .all(...bindings)
    .map((row) => ({
      runId: row.run_id,
      job: row.job,
      state: row.state === "running" ? "running" : "ended",
      outcome: row.outcome,
      because: row.because,
      exitStatus: row.exit_status,
      startedAt: row.started_at,
      endedAt: row.ended_at,
      durationMs: row.duration_ms,
      pid: row.pid,
      pidStartTime: row.pid_start_time,
    }));
}

interface CountRow {
  readonly job: string;
  readonly name: string;
  readonly count: number;
}

const COUNTED_EVENTS = "('leftovers', 'retried')";

function countEvents(db: Database, since: number): (job: string) => Record<string, number> {
  const byJob = new Map<string, Record<string, number>>();
  const rows = db
    .query<CountRow, [number]>(
      `SELECT job, name, count(*) AS count FROM events
       WHERE at >= ? AND job IS NOT NULL AND name IN ${COUNTED_EVENTS} GROUP BY job, name`,
    )
    .all(since);
  for (const { job, name, count } of rows) {
    byJob.set(job, { ...byJob.get(job), [name]: count });
  }
  return (job) => byJob.get(job) ?? {};
}
