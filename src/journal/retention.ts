/**
 * Keeps the journal bounded: by count and by age, a few rows with each new one, so that no start
 * pays for the history and nothing has to be scheduled.
 *
 * Always: the work of one transaction does not depend on the size of the journal: how many rows
 * there are follows from the first and the last number; circuits, which keep their row for as long
 * as they are used, are counted, and are few. A run that still says `running` does not go by age. A
 * run that went while it ran comes back with its end, whose entry holds all of it.
 *
 * Clock: the wall clock of the entry that is written, and only as far as the rows before it bear it
 * out: one that is far ahead of the runs before takes nothing away. After a long pause it is some
 * runs later that old rows go.
 */
import type { Database } from "bun:sqlite";
import { parseLeases } from "./rows.ts";

export interface RetentionLimits {
  readonly mostRuns: number;
  readonly mostEvents: number;
  readonly mostCircuits: number;
  /** Of all jobs together. */
  readonly mostSteps: number;
  readonly longestMs: number;
}

const DAY_MS = 86_400_000;

export const RETENTION: RetentionLimits = {
  mostRuns: 100_000,
  mostEvents: 200_000,
  mostCircuits: 10_000,
  mostSteps: 200_000,
  longestMs: 400 * DAY_MS,
};

/** At most so many rows go with one that comes. */
export const BATCH = 16;

/** Of steps, with one job that comes; a single job may have more. */
const MOST_ROWS = 20_000;

/** So many runs before must bear a clock out, and so far it may be ahead of the slowest of them. */
const WITNESSES = 3;
const AHEAD_MS = DAY_MS;
/** A run that writes more events than this in a row has no witness among them. */
const MOST_LOOKED_AT = 64;

interface OldRun {
  readonly seq: number;
  readonly run_id: string;
  readonly state: string;
  readonly started_at: number;
  readonly leases: string;
}

/** @returns how many went. @throws an error of SQLite */
export function pruneRuns(db: Database, now: number, limits = RETENTION): number {
  const last = lastNumber(db, "runs", "seq");
  const before = oldestAllowed(now, witnessesOfRun(db, last), limits);
  const oldest = db
    .query<OldRun, [number]>(
      "SELECT seq, run_id, state, started_at, leases FROM runs ORDER BY seq LIMIT ?",
    )
    .all(BATCH);
  const isOld = (run: OldRun): boolean => run.state !== "running" && run.started_at < before;
  const gone = oldest.filter(
    (run) => run.seq < last && (run.seq <= last - limits.mostRuns || isOld(run)),
  );
  for (const run of gone) removeRun(db, run);
  return gone.length;
}

/**
 * The generation of a key goes with its last run: the number is in `floors` or in the record, and
 * keys that are used once (a date in the name) would stay for ever otherwise.
 */
function removeRun(db: Database, run: OldRun): void {
  db.query("DELETE FROM runs WHERE seq = ?").run(run.seq);
  db.query("DELETE FROM attempts WHERE run_id = ?").run(run.run_id);
  if (run.state === "running") return;
  for (const { kind, name } of parseLeases(run.leases)) {
    db.query("DELETE FROM leases WHERE kind = ? AND name = ? AND run_id = ?").run(
      kind,
      name,
      run.run_id,
    );
  }
}

/** @returns how many went. @throws an error of SQLite */
export function pruneEvents(db: Database, now: number, limits = RETENTION): number {
  const last = lastNumber(db, "events", "id");
  const before = oldestAllowed(now, witnessesOfEvent(db), limits);
  const oldest = db
    .query<{ id: number; at: number }, [number]>("SELECT id, at FROM events ORDER BY id LIMIT ?")
    .all(BATCH);
  const gone = oldest.filter(
    ({ id, at }) => id < last && (id <= last - limits.mostEvents || at < before),
  );
  for (const event of gone) db.query("DELETE FROM events WHERE id = ?").run(event.id);
  return gone.length;
}

/**
 * Circuits that nobody has written for long, and the longest untouched ones beyond the limit. Where
 * one is needed again it begins anew, as it would after so long a time anyway.
 *
 * @param kept  the name of the one that is being written
 * @returns how many went. @throws an error of SQLite
 */
export function pruneCircuits(db: Database, now: number, kept: string, limits = RETENTION): number {
  const before = oldestAllowed(now, witnessesOfRun(db, lastNumber(db, "runs", "seq")), limits);
  const found = db.query<{ count: number }, []>("SELECT count(*) AS count FROM circuits").get();
  const surplus = (found?.count ?? 0) - limits.mostCircuits;
  const oldest = db
    .query<{ name: string; updated_at: number }, [string, number]>(
      "SELECT name, updated_at FROM circuits WHERE name <> ? ORDER BY updated_at LIMIT ?",
    )
    .all(kept, BATCH);
  const gone = oldest.filter(({ updated_at }, index) => index < surplus || updated_at < before);
  for (const { name } of gone) db.query("DELETE FROM circuits WHERE name = ?").run(name);
  return gone.length;
}

interface OldJob {
  readonly seq: number;
  readonly job_id: string;
  readonly steps_until: number;
  readonly updated_at: number;
}

/**
 * Jobs of many steps that nobody needs any more: older than the last one of their name that is
 * done, or left unfinished when a newer one was begun. They go by the limits of runs, and by how
 * many steps came after them. The newest of a name stays, however old, while it is unfinished; the
 * last one that is done goes where it is beyond both limits at once.
 *
 * Takes jobs until MOST_ROWS are gone with them: as many as a job may bring.
 * @returns how many jobs went. @throws an error of SQLite
 */
export function pruneJobs(db: Database, now: number, limits = RETENTION): number {
  const last = selectJobs(db, "ORDER BY seq DESC", 1)[0];
  if (last === undefined) return 0;
  const before = oldestAllowed(now, witnessesOfRun(db, lastNumber(db, "runs", "seq")), limits);
  const isBeyond = (job: OldJob): boolean => job.seq <= last.seq - limits.mostRuns;
  const isOld = (job: OldJob): boolean => job.updated_at < before;
  const isOfMany = (job: OldJob): boolean => last.steps_until - job.steps_until >= limits.mostSteps;
  const superseded = selectJobs(db, "WHERE is_superseded = 1 ORDER BY seq", BATCH);
  const lastDone = selectJobs(db, "WHERE is_superseded = 0 AND state = 'done' ORDER BY seq", BATCH);
  const gone = [
    ...superseded.filter((job) => isBeyond(job) || isOld(job) || isOfMany(job)),
    ...lastDone.filter((job) => isBeyond(job) && isOld(job)),
  ];
  let rows = 0;
  let count = 0;
  for (const job of gone) {
    if (rows >= MOST_ROWS) break;
    rows += removeJob(db, job);
    count += 1;
  }
  return count;
}

function selectJobs(db: Database, rest: string, limit: number): OldJob[] {
  const sql = `SELECT seq, job_id, steps_until, updated_at FROM jobs ${rest} LIMIT ?`;
  return db.query<OldJob, [number]>(sql).all(limit);
}

/** @returns how many rows of its steps went with it */
function removeJob(db: Database, { job_id }: OldJob): number {
  db.query("DELETE FROM jobs WHERE job_id = ?").run(job_id);
  db.query("DELETE FROM artifacts WHERE job_id = ?").run(job_id);
  db.query("DELETE FROM step_attempts WHERE job_id = ?").run(job_id);
  return db.query("DELETE FROM steps WHERE job_id = ?").run(job_id).changes;
}

/** What is older goes. One clock that is wrong is not believed: nothing goes without a witness. */
function oldestAllowed(
  now: number,
  witnesses: readonly number[],
  { longestMs }: RetentionLimits,
): number {
  if (witnesses.length === 0) return Number.NEGATIVE_INFINITY;
  return Math.min(now, Math.min(...witnesses) + AHEAD_MS) - longestMs;
}

/** Instants of the rows that came before the last one: each is of another run. */
function witnessesOfRun(db: Database, last: number): number[] {
  return db
    .query<{ at: number }, [number, number]>(
      "SELECT started_at AS at FROM runs WHERE seq < ? ORDER BY seq DESC LIMIT ?",
    )
    .all(last, WITNESSES)
    .map(({ at }) => at);
}

/** The same of the last events of other runs than that of the last one, one of each. */
function witnessesOfEvent(db: Database): number[] {
  const events = db
    .query<{ at: number; run_id: string | null }, [number]>(
      "SELECT at, run_id FROM events ORDER BY id DESC LIMIT ?",
    )
    .all(MOST_LOOKED_AT);
  const own = events[0]?.run_id;
  const byRun = new Map<string | null, number>();
  for (const { at, run_id } of events) {
    if (run_id !== own && !byRun.has(run_id)) byRun.set(run_id, at);
  }
  return [...byRun.values()].slice(0, WITNESSES);
}

function lastNumber(db: Database, table: "runs" | "events", column: "seq" | "id"): number {
  const found = db.query<{ last: number | null }, []>(
    `SELECT max(${column}) AS last FROM ${table}`,
  );
  return found.get()?.last ?? 0;
}
