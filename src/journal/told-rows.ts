/**
 * What each sink was told of each job, one row of both; and which sinks the last run of a job has
 * declared, for what is to be told when no run of it is there.
 *
 * Always: a row that holds something strange counts as none. Rows that nobody has touched for long,
 * and the oldest beyond MOST_TOLD, go: such a sink hears once more of what it knew. Clock: that of
 * the entry, handed in.
 */
import type { Database } from "bun:sqlite";
import { isStoredSink, type NoticeOrigin, type NoticePart } from "../core/notice-part.ts";
import type { SinkSpec } from "../core/sink.ts";
import type { ToldState } from "../core/told-state.ts";

export const MOST_TOLD = 20_000;
const BATCH = 16;
const LONGEST_MS = 400 * 86_400_000;

/** A sink of a job with what it knows. */
export interface ToldRow {
  readonly sink: SinkSpec;
  readonly origin: NoticeOrigin;
  readonly remindEveryMs: number;
  /** Undefined: nothing was decided yet. */
  readonly told: ToldState | undefined;
}

interface Row {
  readonly sink: string;
  readonly origin: string;
  readonly remind_every_ms: number;
  readonly state: string;
  readonly since: number;
  readonly told_at: number | null;
  readonly failures: number;
  readonly kinds: string;
  readonly others: string;
}

const COLUMNS = "sink, origin, remind_every_ms, state, since, told_at, failures, kinds, others";

/** The sinks of a part, each with what it knows of the job. @throws an error of SQLite */
export function readTold(db: Database, job: string, part: NoticePart): ToldRow[] {
  const { host, runner, remindEveryMs } = part;
  const query = db.query<Row, [string, string]>(
    `SELECT ${COLUMNS} FROM told WHERE job = ? AND sink_id = ?`,
  );
  return part.sinks.map((sink) => {
    const row = query.get(job, sink.id);
    const told = row === null ? undefined : parseState(row);
    return { sink, origin: { host, runner }, remindEveryMs, told };
  });
}

/** Those of the job's last run. @throws an error of SQLite */
export function readDeclared(db: Database, job: string): ToldRow[] {
  return db
    .query<Row, [string]>(`SELECT ${COLUMNS} FROM told WHERE job = ? AND is_declared = 1`)
    .all(job)
    .flatMap((row) => parseRow(row) ?? []);
}

/** A bad state of jobs that still declare the sink, which was told long ago. */
export function readUnreminded(
  db: Database,
  now: number,
): { readonly job: string; readonly row: ToldRow }[] {
  return db
    .query<Row & { job: string }, [number]>(
      `SELECT job, ${COLUMNS} FROM told WHERE state = 'bad' AND is_declared = 1 ` +
        "AND told_at IS NOT NULL AND remind_every_ms > 0 " +
        "AND abs(? - told_at) >= remind_every_ms LIMIT 200",
    )
    .all(now)
    .flatMap((found) => {
      const row = parseRow(found);
      return row === undefined ? [] : [{ job: found.job, row }];
    });
}

export interface Declaration {
  readonly job: string;
  /** None: the job has no sinks any more. */
  readonly part: NoticePart | undefined;
  readonly at: number;
}

/** A run of the job has begun with these sinks and no others. @throws an error of SQLite */
export function declareSinks(db: Database, { job, part, at }: Declaration): void {
  db.query("UPDATE told SET is_declared = 0 WHERE job = ? AND is_declared = 1").run(job);
  if (part === undefined) return;
  for (const row of readTold(db, job, part)) {
    writeTold(db, { job, row, at, isDeclared: true });
  }
}

export interface ToldWriting {
  readonly job: string;
  readonly row: ToldRow;
  readonly at: number;
  /** Undefined: as it was; a new row is not declared. */
  readonly isDeclared?: boolean;
}

/** @throws an error of SQLite */
export function writeTold(db: Database, { job, row, at, isDeclared }: ToldWriting): void {
  const { sink, origin, remindEveryMs, told } = row;
  const { host, runner } = origin;
  const isNew = db
    .query(
      "INSERT OR IGNORE INTO told (job, sink_id, sink, remind_every_ms, since, updated_at) " +
        "VALUES (?, ?, ?, ?, ?, ?)",
    )
    .run(job, sink.id, JSON.stringify(sink), remindEveryMs, told?.since ?? at, at).changes;
  db.query(
    "UPDATE told SET sink = ?, origin = ?, remind_every_ms = ?, updated_at = ?, " +
      "is_declared = ifnull(?, is_declared) WHERE job = ? AND sink_id = ?",
  ).run(
    JSON.stringify(sink),
    JSON.stringify({ host, runner }),
    remindEveryMs,
    at,
    isDeclared === undefined ? null : Number(isDeclared),
    job,
    sink.id,
  );
  if (told !== undefined) writeState(db, job, sink.id, told);
  if (isNew > 0) pruneTold(db, at);
}

function writeState(db: Database, job: string, sinkId: string, told: ToldState): void {
  db.query(
    "UPDATE told SET state = ?, since = ?, told_at = ?, failures = ?, kinds = ?, others = ? " +
      "WHERE job = ? AND sink_id = ?",
  ).run(
    told.state,
    Math.round(told.since),
    told.toldAt === null ? null : Math.round(told.toldAt),
    told.failures,
    JSON.stringify(told.kinds),
    JSON.stringify(told.others),
    job,
    sinkId,
  );
}

function pruneTold(db: Database, at: number): void {
  const count = db.query<{ count: number }, []>("SELECT count(*) AS count FROM told").get();
  const surplus = Math.min((count?.count ?? 0) - MOST_TOLD, BATCH);
  const where = "WHERE (job, sink_id) IN (SELECT job, sink_id FROM told";
  db.query(`DELETE FROM told ${where} WHERE updated_at < ? ORDER BY updated_at LIMIT ?)`).run(
    at - LONGEST_MS,
    BATCH,
  );
  if (surplus <= 0) return;
  db.query(`DELETE FROM told ${where} ORDER BY updated_at LIMIT ?)`).run(surplus);
}

function parseRow(row: Row): ToldRow | undefined {
  const sink = parse(row.sink);
  const origin = parse(row.origin);
  if (!isStoredSink(sink)) return undefined;
  return {
    sink,
    origin: { host: textOf(origin, "host"), runner: textOf(origin, "runner") },
    remindEveryMs: row.remind_every_ms,
    told: parseState(row),
  };
}

function parseState(row: Row): ToldState {
  const kinds = parse(row.kinds);
  const others = parse(row.others);
  return {
    state: row.state === "bad" ? "bad" : "good",
    since: row.since,
    toldAt: row.told_at,
    failures: row.failures,
    kinds: Array.isArray(kinds) ? kinds.filter((one) => typeof one === "string") : [],
    others: typeof others === "object" && others !== null ? numbersOf({ ...others }) : {},
  };
}

function numbersOf(found: Readonly<Record<string, unknown>>): Record<string, number> {
  const entries = Object.entries(found).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number",
  );
  return Object.fromEntries(entries);
}

function textOf(found: unknown, name: "host" | "runner"): string {
  if (typeof found !== "object" || found === null || !(name in found)) return "unknown";
  const text: unknown = Reflect.get(found, name);
  return typeof text === "string" ? text : "unknown";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // SyntaxError: a row that somebody else has written
  }
}
