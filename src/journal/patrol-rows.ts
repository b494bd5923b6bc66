/**
 * What patrols have seen, applied to the tables: which findings are new, which last, which are
 * gone, and which jobs are overdue. One entry of a patrol is one transaction, with the events that
 * tell of each change in it, so that a patrol which dies has told all of it or nothing.
 *
 * Always: the same entry a second time tells nothing again; an older one, out of the spool, changes
 * nothing; that a job is overdue is only believed of the schedule and the success that it was
 * decided on. Clock: that of the entry.
 */
import type { Database } from "bun:sqlite";
import type { JournalEvent } from "../core/journal-entry.ts";
import { type LeaseKey, parseKey, renderKey } from "../core/lease-key.ts";
import {
  decideNews,
  type FindingKind,
  type JudgedJob,
  type KnownFinding,
  MOST_INSTANTS,
  type PatrolFinding,
  type PatrolledEntry,
  type PatrolRow,
} from "../core/patrol.ts";
import { isSameBasis } from "../core/schedule.ts";
import { declareConfigured, hasScheduleTables, readSchedule } from "./schedule-rows.ts";

export type PutEvent = (id: string, event: JournalEvent) => void;

/**
 * @param isDirect  false: it comes from the spool
 * @param put  writes an event, in this transaction; an id that is there already is written once
 * @returns false: it says nothing that is news
 * @throws an error of SQLite
 */
export function applyPatrolled(
  db: Database,
  { id, entry, isDirect }: { id: string; entry: PatrolledEntry; isDirect: boolean },
  put: PutEvent,
): boolean {
  const last = readPatrol(db);
  if (last !== undefined && !isDirect && entry.at <= last.at) return false;
  writePatrol(db, entry, last);
  if (!entry.isExpected) return true;
  const putNext = numbered(id, put);
  applyFindings(db, entry, putNext);
  for (const job of entry.declared ?? []) declareConfigured(db, job, entry.at);
  for (const judged of entry.jobs) applyJudged(db, entry, judged, putNext);
  return true;
}

type PutNext = (event: JournalEvent) => void;

/** Names that the same entry gives to the same events each time. */
function numbered(id: string, put: PutEvent): PutNext {
  let count = 0;
  return (event) => {
    count += 1;
    put(`${id}:${count}`, event);
  };
}

function applyFindings(db: Database, entry: PatrolledEntry, put: PutNext): void {
  const { findings: found, looked, at: now } = entry;
  const news = decideNews({ known: readFindings(db), found, looked });
  for (const one of news.closed) {
    db.query("DELETE FROM patrol_findings WHERE kind = ? AND subject = ?").run(
      one.kind,
      one.subject,
    );
    const isTold = one.toldAt !== null && entry.recovered.includes(one.subject);
    if (isTold) put(eventOf(entry, one, "recovered", { from: one.state, since: one.since }));
  }
  for (const one of news.opened) {
    const name = eventNameOf(one);
    writeFinding(db, one, { since: now, toldAt: name === undefined ? null : now });
    if (name !== undefined) put(eventOf(entry, one, name, { state: one.state }));
  }
}

/** Of the rest there is no event: a patrol shows it. */
function eventNameOf({ kind, state }: PatrolFinding): "stalled" | undefined {
  return kind === "lease" && state === "stalled" ? "stalled" : undefined;
}

function eventOf(
  { at }: PatrolledEntry,
  { runId, job, key, because }: PatrolFinding,
  name: "stalled" | "recovered",
  data: Readonly<Record<string, unknown>>,
): JournalEvent {
  return { kind: "event", at, name, runId, job, key, because, data };
}

function writeFinding(
  db: Database,
  one: PatrolFinding,
  { since, toldAt }: { readonly since: number; readonly toldAt: number | null },
): void {
  const key = one.key === null ? null : renderKey(one.key);
  db.query(
    "INSERT OR REPLACE INTO patrol_findings " +
      "(kind, subject, state, because, run_id, job, lease_key, since, told_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  ).run(one.kind, one.subject, one.state, one.because, one.runId, one.job, key, since, toldAt);
}

function applyJudged(db: Database, { at }: PatrolledEntry, judged: JudgedJob, put: PutNext): void {
  const { job, basis, because, since, dueAt, data } = judged;
  const known = readSchedule(db, job);
  if (known === undefined || !isSameBasis(known, basis)) return; // a run was faster
  if (because === null) {
    if (known.overdueState !== null) {
      db.query(
        "UPDATE schedules SET overdue_state = NULL, overdue_since = NULL, told_at = NULL " +
          "WHERE job = ?",
      ).run(job);
    }
    return;
  }
  const isNew = known.overdueState === null;
  db.query(
    "UPDATE schedules SET overdue_state = ?, overdue_since = ?, told_at = ? WHERE job = ?",
  ).run(because, rounded(since), isNew ? rounded(at) : known.toldAt, job);
  if (!isNew) return;
  const told = { ...data, since, due_at: dueAt };
  const about = { runId: null, job, key: null };
  put({ kind: "event", at, name: "overdue", ...about, because, data: told });
}

function rounded(at: number | null): number | null {
  return at === null ? null : Math.round(at);
}

function writePatrol(db: Database, entry: PatrolledEntry, last: PatrolRow | undefined): void {
  const earlier = last === undefined ? [] : [...last.earlier, last.at].slice(-MOST_INSTANTS);
  const { at, pid, bootId, monotonicMs, isExpected } = entry;
  // A person who looks once says nothing about how often the others come.
  const periodMs = isExpected ? (entry.periodMs ?? last?.periodMs ?? null) : null;
  db.query(
    "INSERT OR REPLACE INTO patrols " +
      "(id, at, pid, boot_id, monotonic_ms, period_ms, is_expected, earlier) " +
      "VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
  ).run(
    Math.round(at),
    pid,
    bootId,
    monotonicMs,
    periodMs === null ? null : Math.round(periodMs),
    isExpected ? 1 : 0,
    JSON.stringify(isExpected ? earlier : []),
  );
}

interface PatrolCells {
  readonly at: number;
  readonly pid: number;
  readonly boot_id: string;
  readonly monotonic_ms: number;
  readonly period_ms: number | null;
  readonly is_expected: number;
  readonly earlier: string;
}

/** Undefined: no patrol was ever here. @throws an error of SQLite */
export function readPatrol(db: Database): PatrolRow | undefined {
  if (!hasScheduleTables(db)) return undefined;
  const row = db
    .query<PatrolCells, []>(
      "SELECT at, pid, boot_id, monotonic_ms, period_ms, is_expected, earlier FROM patrols",
    )
    .get();
  if (row === null) return undefined;
  return {
    at: row.at,
    pid: row.pid,
    bootId: row.boot_id,
    monotonicMs: row.monotonic_ms,
    periodMs: row.period_ms,
    isExpected: row.is_expected !== 0,
    earlier: parseInstants(row.earlier),
  };
}

function parseInstants(text: string): number[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.filter((one) => Number.isFinite(one)) : [];
  } catch {
    return []; // SyntaxError: a row that somebody else has written
  }
}

interface FindingCells {
  readonly kind: FindingKind;
  readonly subject: string;
  readonly state: string;
  readonly because: string;
  readonly run_id: string | null;
  readonly job: string | null;
  readonly lease_key: string | null;
  readonly since: number;
  readonly told_at: number | null;
}

/** @throws an error of SQLite */
export function readFindings(db: Database): KnownFinding[] {
  if (!hasScheduleTables(db)) return [];
  return db
    .query<FindingCells, []>(
      "SELECT kind, subject, state, because, run_id, job, lease_key, since, told_at " +
        "FROM patrol_findings ORDER BY kind, subject",
    )
    .all()
    .map(({ run_id: runId, lease_key: key, told_at: toldAt, ...row }) => ({
      ...row,
      runId,
      key: keyOf(key),
      toldAt,
    }));
}

function keyOf(text: string | null): LeaseKey | null {
  return text === null ? null : (parseKey(text) ?? null);
}
