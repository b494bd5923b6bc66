/**
 * The schedules that jobs have declared, one row a job: written with the entries of their runs, in
 * the same transaction, and read by whoever looks for jobs that are overdue.
 *
 * Always: a job is forgotten with the first run that is started without a schedule; a success takes
 * back that the job was overdue; what comes late through the spool changes nothing that a newer run
 * has said. Bounded: the longest unseen go beyond MOST_SCHEDULES. Clock: that of the entries.
 */
import type { Database } from "bun:sqlite";
import type { JournalEntry } from "../core/journal-entry.ts";
import {
  CONFIGURATION,
  type ConfiguredJob,
  type DeclaredSchedule,
  type JobSchedule,
} from "../core/schedule.ts";
import { isOfOneStep } from "../core/one-step.ts";
import type { Cell } from "./rows.ts";

export const MOST_SCHEDULES = 10_000;

/** What an entry about a run says of its job's schedule. */
export interface RunNews {
  readonly job: string;
  readonly runId: string;
  /** Of the entry. */
  readonly at: number;
  readonly schedule: DeclaredSchedule | null | undefined;
  /** When the command was started; undefined: it never was, or that is not known. */
  readonly startedAt: number | undefined;
  /** Undefined: it goes on, or says nothing about its job. */
  readonly end: { readonly at: number; readonly outcome: string } | undefined;
  /** False: it comes from the spool, and newer ones may have been written before. */
  readonly isDirect: boolean;
}

const SUCCESS = "ok";

/** @throws an error of SQLite */
export function noteRun(db: Database, news: RunNews): void {
  const { schedule, isDirect, at } = news;
  const known = readSchedule(db, news.job);
  const isStale = !isDirect && known !== undefined && at < known.seenAt;
  if (schedule === null && news.startedAt !== undefined && !isStale) return forget(db, news.job);
  if (schedule !== null && schedule !== undefined && !isStale) declare(db, news, schedule);
  else if (known === undefined) return;
  noteFacts(db, news);
}

/** @returns whether there was one. @throws an error of SQLite */
export function forgetSchedule(db: Database, job: string): boolean {
  return db.query("DELETE FROM schedules WHERE job = ?").run(job).changes > 0;
}

function forget(db: Database, job: string): void {
  forgetSchedule(db, job);
}

/** `declared_at` stays while a job declares the same again. */
function declare(db: Database, news: RunNews, { everyMs, cron, timeZone }: DeclaredSchedule): void {
  const at = Math.round(news.at);
  db.query(
    "INSERT INTO schedules (job, every_ms, cron, time_zone, declared_at, declared_by, seen_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job) DO UPDATE SET " +
      "declared_at = CASE WHEN every_ms IS excluded.every_ms AND cron IS excluded.cron " +
      "AND time_zone IS excluded.time_zone THEN declared_at ELSE excluded.declared_at END, " +
      "every_ms = excluded.every_ms, cron = excluded.cron, time_zone = excluded.time_zone, " +
      "declared_by = excluded.declared_by, seen_at = excluded.seen_at",
  ).run(news.job, everyMs, cron, timeZone, Math.round(news.startedAt ?? at), news.runId, at);
  prune(db, news.job);
}

/** Of a job that has said something itself, the configuration says nothing new. */
export function declareConfigured(db: Database, job: ConfiguredJob, at: number): void {
  db.query(
    "INSERT OR IGNORE INTO schedules " +
      "(job, every_ms, cron, time_zone, declared_at, declared_by, seen_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?)",
  ).run(job.job, job.everyMs, job.cron, job.timeZone, at, CONFIGURATION, at);
  prune(db, job.job);
}

function prune(db: Database, kept: string): void {
  const found = db.query<{ count: number }, []>("SELECT count(*) AS count FROM schedules").get();
  const surplus = (found?.count ?? 0) - MOST_SCHEDULES;
  if (surplus <= 0) return;
  db.query(
    "DELETE FROM schedules WHERE job IN " +
      "(SELECT job FROM schedules WHERE job <> ? ORDER BY seen_at LIMIT ?)",
  ).run(kept, surplus);
}

function noteFacts(db: Database, news: RunNews): void {
  const { job, startedAt, end } = news;
  if (startedAt !== undefined) noteInstant(db, news, "last_start_at", startedAt);
  if (end === undefined) return;
  if (end.outcome === SUCCESS) {
    if (!noteInstant(db, news, "last_success_at", end.at)) return;
    db.query(
      "UPDATE schedules SET overdue_state = NULL, overdue_since = NULL, told_at = NULL " +
        "WHERE job = ?",
    ).run(job);
    return;
  }
  const column = startedAt === undefined ? "last_refusal" : "last_failure";
  if (!noteInstant(db, news, `${column}_at`, end.at)) return;
  db.query(`UPDATE schedules SET ${column} = ? WHERE job = ?`).run(end.outcome, job);
}

type InstantColumn = "last_start_at" | "last_success_at" | "last_failure_at" | "last_refusal_at";

/** What is told at once is the newest, whatever a wall clock that was set back makes of it. */
function noteInstant(
  db: Database,
  { job, isDirect }: RunNews,
  column: InstantColumn,
  at: number,
): boolean {
  const sql =
    `UPDATE schedules SET ${column} = ?1 WHERE job = ?2 ` +
    `AND (?3 = 1 OR ${column} IS NULL OR ${column} < ?1)`;
  return db.query(sql).run(Math.round(at), job, isDirect ? 1 : 0).changes > 0;
}

interface ScheduleRow {
  readonly job: string;
  readonly every_ms: number | null;
  readonly cron: string | null;
  readonly time_zone: string | null;
  readonly declared_at: number;
  readonly declared_by: string;
  readonly seen_at: number;
  readonly last_start_at: number | null;
  readonly last_success_at: number | null;
  readonly last_failure_at: number | null;
  readonly last_failure: string | null;
  readonly last_refusal_at: number | null;
  readonly last_refusal: string | null;
  readonly overdue_state: string | null;
  readonly overdue_since: number | null;
  readonly told_at: number | null;
}

const COLUMNS =
  "job, every_ms, cron, time_zone, declared_at, declared_by, seen_at, last_start_at, " +
  "last_success_at, last_failure_at, last_failure, last_refusal_at, last_refusal, " +
  "overdue_state, overdue_since, told_at";

/** With when a run of it was seen last. */
export interface KnownSchedule extends JobSchedule {
  readonly seenAt: number;
}

export function readSchedule(db: Database, job: string): KnownSchedule | undefined {
  const row = db
    .query<ScheduleRow, [string]>(`SELECT ${COLUMNS} FROM schedules WHERE job = ?`)
    .get(job);
  return row === null ? undefined : scheduleOf(row);
}

/** By name. None where the database has no such table yet. @throws an error of SQLite */
export function readSchedules(db: Database, limit: number): KnownSchedule[] {
  if (!hasScheduleTables(db)) return [];
  return db
    .query<ScheduleRow, [number]>(`SELECT ${COLUMNS} FROM schedules ORDER BY job LIMIT ?`)
    .all(limit)
    .map(scheduleOf);
}

/** An older database has none, and a reader makes none. */
export function hasScheduleTables(db: Database): boolean {
  const found = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schedules'");
  return found.get() !== null;
}

function scheduleOf(row: ScheduleRow): KnownSchedule {
  return {
    job: row.job,
    everyMs: row.every_ms,
    cron: row.cron,
    timeZone: row.time_zone,
    declaredAt: row.declared_at,
    declaredBy: row.declared_by,
    seenAt: row.seen_at,
    lastStartAt: row.last_start_at,
    lastSuccessAt: row.last_success_at,
    lastFailureAt: row.last_failure_at,
    lastFailure: row.last_failure,
    lastRefusalAt: row.last_refusal_at,
    lastRefusal: row.last_refusal,
    overdueState: row.overdue_state,
    overdueSince: row.overdue_since,
    toldAt: row.told_at,
  };
}

/** What the entry of a run says of its command: whether it was started, and how it ended. */
export function newsOf(
  entry: Extract<JournalEntry, { kind: "run-started" | "run-ended" }>,
  cells: Readonly<Record<string, Cell>>,
  isDirect: boolean,
): RunNews {
  const { run, at, schedule } = entry;
  const startedAt = Number(cells["started_at"] ?? at);
  const wasStarted = entry.kind === "run-started" || run.child_pid !== null;
  const outcome = run.outcome ?? "";
  const tellsOfJob = entry.kind === "run-ended" && !isOfOneStep(run);
  return {
    job: run.job,
    runId: run.run_id,
    at,
    schedule,
    startedAt: wasStarted ? startedAt : undefined,
    end: tellsOfJob ? { at: Number(cells["ended_at"] ?? at), outcome } : undefined,
    isDirect,
  };
}
