/**
 * The rows of the outbox as SQL. Decides nothing.
 *
 * Always: a row whose notice or sink cannot be read keeps nothing behind it: it is given up. How
 * many rows there are is bounded by their count and their age, a few with each new one; what waits
 * goes by count alone, as the last resort against a receiver that is gone for ever.
 */
import type { Database } from "bun:sqlite";
import type { Notice } from "../core/notice.ts";
import { isStoredSink } from "../core/notice-part.ts";
import {
  type DueQuestion,
  LONGEST_PAUSE_MS,
  type OutboxRow,
  type OutboxState,
} from "../core/outbox.ts";
import type { SinkSpec } from "../core/sink.ts";

/** Of all states together. */
export const MOST_NOTICES = 20_000;
const LONGEST_MS = 90 * 86_400_000;
const BATCH = 16;

export interface NewNotice {
  readonly entryId: string;
  readonly sink: SinkSpec;
  readonly job: string;
  readonly runId: string | null;
  readonly notice: Notice;
  readonly at: number;
}

export function hasNotice(db: Database, entryId: string, sinkId: string): boolean {
  return (
    db.query("SELECT 1 FROM outbox WHERE entry_id = ? AND sink_id = ?").get(entryId, sinkId) !==
    null
  );
}

/** Due at once. @throws an error of SQLite */
export function insertNotice(db: Database, given: NewNotice): void {
  const { entryId, sink, job, runId, notice, at } = given;
  db.query(
    "INSERT OR IGNORE INTO outbox " +
      "(entry_id, sink_id, sink, job, run_id, event, notice, next_at, created_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  ).run(
    entryId,
    sink.id,
    JSON.stringify(sink),
    job,
    runId,
    notice.event,
    JSON.stringify(notice),
    Math.round(at),
    Math.round(at),
  );
}

/** A start says nothing any more once the end is told; one that is being sent stays. */
export function supersedeStart(db: Database, runId: string, sinkId: string): void {
  db.query(
    "UPDATE outbox SET state = 'superseded', last_because = 'the run has ended' " +
      "WHERE entry_id = ? AND sink_id = ? AND state = 'waiting' AND claimed_by IS NULL",
  ).run(`start:${runId}`, sinkId);
}

/** The same where its end was told while the start was being sent in vain. */
export function supersedeEnded(db: Database, runId: string, sinkId: string): void {
  const isTold = ["end", "abandoned"].some((what) => hasNotice(db, `${what}:${runId}`, sinkId));
  if (isTold) supersedeStart(db, runId, sinkId);
}

/** A sink that nobody has any more: its notices have waited long enough. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

/** @throws an error of SQLite */
export function giveUpOld(db: Database, now: number): void {
  db.query(
    "UPDATE outbox SET state = 'dead', " +
      "last_because = ifnull(last_because, 'nobody knows its sink') " +
      "WHERE state = 'waiting' AND claimed_by IS NULL AND created_at < ?",
  ).run(now - LONGEST_WAIT_MS);
}

/** @throws an error of SQLite */
export function pruneOutbox(db: Database, now: number): void {
  const last =
    db.query<{ last: number | null }, []>("SELECT max(id) AS last FROM outbox").get()?.last ?? 0;
  const oldest = db
    .query<{ id: number; state: string; created_at: number }, [number]>(
      "SELECT id, state, created_at FROM outbox ORDER BY id LIMIT ?",
    )
    .all(BATCH);
  for (const { id, state, created_at } of oldest) {
    const isOld = state !== "waiting" && created_at < now - LONGEST_MS;
    if (id < last && (id <= last - MOST_NOTICES || isOld)) {
      db.query("DELETE FROM outbox WHERE id = ?").run(id);
    }
  }
}

interface Row {
  readonly id: number;
  readonly sink: string;
  readonly notice: string;
  readonly job: string;
  readonly run_id: string | null;
  readonly state: string;
  readonly attempts: number;
  readonly next_at: number;
  readonly claimed_by: string | null;
  readonly claimed_until: number | null;
  readonly last_because: string | null;
  readonly created_at: number;
  readonly delivered_at: number | null;
}

const COLUMNS =
  "id, sink, notice, job, run_id, state, attempts, next_at, claimed_by, claimed_until, " +
  "last_because, created_at, delivered_at";

/**
 * The first that waits of each sink and job, if it may be tried now: one that waits for its next
 * attempt keeps the later ones behind it. Those whose target is stored nowhere, unless it is known
 * to whoever asks, are no matter of his.
 */
export function selectDue(db: Database, asked: DueQuestion, limit: number): OutboxRow[] {
  const { now, isForced, runId, ownSinkIds } = asked;
  const rows = db
    .query<Row, [number, number, number, string, string | null, number]>(
      `SELECT ${COLUMNS} FROM outbox WHERE id IN ` +
        "(SELECT min(id) FROM outbox WHERE state = 'waiting' GROUP BY sink_id, job) " +
        "AND (?1 OR next_at <= ?2 OR next_at > ?3) " +
        'AND (sink NOT LIKE \'%"kind":"hidden"%\' ' +
        "OR sink_id IN (SELECT value FROM json_each(?4))) " +
        "ORDER BY run_id IS NOT ?5, id LIMIT ?6",
    )
    .all(Number(isForced), now, now + LONGEST_PAUSE_MS, JSON.stringify(ownSinkIds), runId, limit);
  for (const { id } of rows.filter((row) => readRow(row) === undefined)) {
    db.query("UPDATE outbox SET state = 'dead', last_because = 'unreadable' WHERE id = ?").run(id);
  }
  return rows.flatMap((row) => readRow(row) ?? []);
}

/** Whether anything may be tried now, by whoever knows where to. @throws an error of SQLite */
export function hasDue(db: Database, now: number): boolean {
  const sql =
    "SELECT 1 FROM outbox WHERE state = 'waiting' AND (next_at <= ? OR next_at > ?) LIMIT 1";
  return db.query(sql).get(now, now + LONGEST_PAUSE_MS) !== null;
}

/** Newest first. @param states  undefined: all */
export function selectNotices(
  db: Database,
  states: readonly OutboxState[] | undefined,
  limit: number,
): OutboxRow[] {
  const where = states === undefined ? "" : `WHERE state IN (${states.map(() => "?").join(", ")}) `;
  return db
    .query<Row, (string | number)[]>(
      `SELECT ${COLUMNS} FROM outbox ${where}ORDER BY id DESC LIMIT ?`,
    )
    .all(...(states ?? []), limit)
    .flatMap((row) => readRow(row) ?? []);
}

/** The oldest first. */
export function selectLeft(db: Database, runId: string, limit: number): OutboxRow[] {
  return db
    .query<Row, [string, number]>(
      `SELECT ${COLUMNS} FROM outbox WHERE run_id = ? AND state IN ('waiting', 'dead') ` +
        "ORDER BY id LIMIT ?",
    )
    .all(runId, limit)
    .flatMap((row) => readRow(row) ?? []);
}

/** Those that wait for a sink and were never tried, the oldest first. */
export function selectUntried(db: Database, sinkId: string, limit: number): OutboxRow[] {
  return db
    .query<Row, [string, number]>(
      `SELECT ${COLUMNS} FROM outbox WHERE state = 'waiting' AND sink_id = ? AND attempts = 0 ` +
        "AND claimed_by IS NULL ORDER BY id LIMIT ?",
    )
    .all(sinkId, limit)
    .flatMap((row) => readRow(row) ?? []);
}

export function countStates(db: Database): { readonly waiting: number; readonly dead: number } {
  const count = (state: OutboxState): number =>
    db
      .query<{ count: number }, [string]>("SELECT count(*) AS count FROM outbox WHERE state = ?")
      .get(state)?.count ?? 0;
  return { waiting: count("waiting"), dead: count("dead") };
}

/** How many notices a sink was given since then, with those that are being sent. */
export function countGiven(db: Database, sinkId: string, since: number): number {
  const count = (where: string, ...cells: readonly (string | number)[]): number =>
    db
      .query<{ count: number }, (string | number)[]>(
        `SELECT count(*) AS count FROM outbox WHERE sink_id = ? AND ${where}`,
      )
      .get(sinkId, ...cells)?.count ?? 0;
  const delivered = count("state = 'delivered' AND delivered_at > ?", since);
  return delivered + count("state = 'waiting' AND claimed_until > ?", since);
}

function readRow(row: Row): OutboxRow | undefined {
  const sink = parse(row.sink);
  const notice = parse(row.notice);
  if (!isStoredSink(sink) || !isNotice(notice)) return undefined;
  return {
    id: row.id,
    sink,
    notice,
    job: row.job,
    runId: row.run_id,
    state: stateOf(row.state),
    attempts: row.attempts,
    nextAt: row.next_at,
    claimedBy: row.claimed_by,
    claimedUntil: row.claimed_until,
    lastBecause: row.last_because,
    createdAt: row.created_at,
    deliveredAt: row.delivered_at,
  };
}

function stateOf(text: string): OutboxState {
  return text === "delivered" || text === "dead" || text === "superseded" ? text : "waiting";
}

/** As far as code relies on it. */
function isNotice(found: unknown): found is Notice {
  if (typeof found !== "object" || found === null) return false;
  const { id, event, summary } = found as Partial<Record<string, unknown>>;
  return typeof id === "string" && typeof event === "string" && typeof summary === "string";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // SyntaxError: a row that somebody else has written
  }
}
