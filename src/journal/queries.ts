/**
 * What reading commands ask the journal. Opens read-only, reads the spool in first as far as that
 * is possible, and answers in any case: a missing, broken or foreign database is an answer.
 *
 * Refuses to know whether a run that says `running` does: that is for its lease. Creates nothing,
 * but the journal itself where entries wait for it in the spool. Clock: MONOTONIC, for one bound.
 */
import type { Database } from "bun:sqlite";
import { type LeaseKey, parseKey } from "../core/lease-key.ts";
import { JOB_REFUSED } from "../core/refused-start.ts";
import { monotonicNow } from "../os/clock.ts";
import { pauseThread } from "../os/timers.ts";
import { closeQuietly, openExisting } from "./open.ts";
import { placeOfJournal } from "./places.ts";
import { IS_OF_ONE_STEP } from "./rows.ts";
import {
  EVENT_COLUMNS,
  type EventRow,
  type JournalEventRow,
  type JournalRun,
  readEventRow,
  readRunRow,
  RUN_COLUMNS,
  type RunRow,
} from "./run-rows.ts";
import { hasTables } from "./schema.ts";
import { listSpool } from "./spool.ts";
import { describeTrouble, isTrouble, type Trouble, troubleOf } from "./trouble.ts";
import { Writer } from "./writer.ts";

export type { JournalEventRow, JournalRun } from "./run-rows.ts";

/** How long the spool may be read in before the question is asked. */
const DRAIN_MS = 1_000;
const DRAIN_PAUSE_MS = 10;
/** A shorter beginning of a run id is the name of a job and nothing else. */
const SHORTEST_PREFIX = 8;
/** `sort_at` is the place in the order of the history (write-rows.ts). */
const NEWEST_FIRST = "ORDER BY sort_at DESC, seq DESC LIMIT ?";

/**
 * `waiting`: files in spool/ that could not be read in first. `missing`: there is no journal yet,
 * and nothing was ever recorded here, unless something waits. `notes`: what went wrong with the
 * spool, for people.
 */
export type JournalAnswer<T> =
  | {
      readonly kind: "read";
      readonly value: T;
      readonly waiting: number;
      readonly notes: readonly string[];
    }
  | {
      readonly kind: "missing";
      readonly waiting?: number;
      readonly notes?: readonly string[];
    }
  | {
      readonly kind: "unreadable";
      readonly reason: string;
      /** Somebody holds it for a moment. */
      readonly isBusy?: true;
    };

export interface HistoryOptions {
  /**
   * The name of a job, a key (runs that had a lease of it; of `job:NAME` the runs of the job), a
   * run id or its beginning: the first that has runs. Undefined: all runs.
   */
  readonly target?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export function readHistory(
  stateDirectory: string,
  { target, limit }: HistoryOptions,
): JournalAnswer<JournalRun[]> {
  return askJournal(stateDirectory, (db) =>
    target === undefined
      ? selectRuns(db, NEWEST_FIRST, limit)
      : selectNamed(db, target, (where, text) =>
          selectRuns(db, `WHERE ${where} ${NEWEST_FIRST}`, text, limit),
        ),
  );
}

export interface EventOptions {
  readonly job?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export function readEvents(
  stateDirectory: string,
  { job, limit }: EventOptions,
): JournalAnswer<JournalEventRow[]> {
  return askJournal(stateDirectory, (db) =>
    job === undefined
      ? selectEvents(db, "ORDER BY id DESC LIMIT ?", limit)
      : selectEvents(db, "WHERE job = ? ORDER BY id DESC LIMIT ?", job, limit),
  );
}

/**
 * A run id, the name of a job (its last run, as `lastRunOf`), a key (the last run that had a lease
 * of it; of `job:NAME` the last run of the job), or the beginning of exactly one run id, eight
 * characters or more.
 */
export function findRun(
  stateDirectory: string,
  target: string,
): JournalAnswer<JournalRun | undefined> {
  return askJournal(
    stateDirectory,
    (db) =>
      selectRuns(db, "WHERE run_id = ?", target)[0] ??
      selectNamed(db, target, (where, text) => selectLast(db, where, text))[0],
  );
}

/** Rows that say `running`, newest first. */
export function runningRuns(stateDirectory: string): JournalAnswer<JournalRun[]> {
  return askJournal(stateDirectory, (db) =>
    selectRuns(db, `WHERE state = 'running' ${NEWEST_FIRST}`, MOST_RUNNING),
  );
}

const MOST_RUNNING = 10_000;

/** Its last run that was not refused for a lease; the last refusal where there is no other. */
export function lastRunOf(
  stateDirectory: string,
  job: string,
): JournalAnswer<JournalRun | undefined> {
  return askJournal(stateDirectory, (db) => selectLast(db, OF_JOB, job)[0]);
}

/**
 * The last run of each job, as `lastRunOf`, newest first: a refusal, also by its job, or one of one
 * step alone only where a job has no other.
 */
export function lastRuns(stateDirectory: string, limit: number): JournalAnswer<JournalRun[]> {
  return askJournal(stateDirectory, (db) => {
    const jobs = db
      .query<{ job: string }, [number]>(
        "SELECT job FROM runs GROUP BY job ORDER BY max(sort_at) DESC, max(seq) DESC LIMIT ?",
      )
      .all(limit);
    return jobs.flatMap(
      ({ job }) => lastOfJob(db, job, "granted") ?? selectLast(db, OF_JOB, job, IS_REFUSED),
    );
  });
}

function selectRuns(db: Database, rest: string, ...bindings: (string | number)[]): JournalRun[] {
  return db
    .query<RunRow, (string | number)[]>(`SELECT ${RUN_COLUMNS} FROM runs ${rest}`)
    .all(...bindings)
    .map(readRunRow);
}

function selectEvents(
  db: Database,
  rest: string,
  ...bindings: (string | number)[]
): JournalEventRow[] {
  return db
    .query<EventRow, (string | number)[]>(`SELECT ${EVENT_COLUMNS} FROM events ${rest}`)
    .all(...bindings)
    .map(readEventRow);
}

const OF_JOB = "job = ?";
const IS_LOCKED = "(outcome IS 'locked')";
/** As `isRefusedStart`. */
export const IS_REFUSED = `(outcome IS 'locked' OR because IS '${JOB_REFUSED}')`;
const OF_RUN = "run_id = ?";
/** As `renderLeases` writes them. It reads all rows where no run has had the key. */
const OF_KEY = "instr(leases, ?) > 0";

type Select = (where: string, text: string) => JournalRun[];

/** What a word means, by what is there: a job, a key, a run, the beginning of a run id. */
function selectNamed(db: Database, target: string, select: Select): JournalRun[] {
  const ofJob = select(OF_JOB, target);
  if (ofJob.length > 0) return ofJob;
  const key = parseKey(target);
  if (key !== undefined) return selectOfKey(key, select);
  const ofRun = select(OF_RUN, target);
  return ofRun.length > 0 ? ofRun : selectByBeginning(db, target);
}

/** Every run of a job has its lease, but for those that want none. */
function selectOfKey(key: LeaseKey, select: Select): JournalRun[] {
  const ofJob = key.kind === "job" ? select(OF_JOB, key.name) : [];
  return ofJob.length > 0 ? ofJob : select(OF_KEY, leaseBeginning(key));
}

function leaseBeginning({ kind, name }: LeaseKey): string {
  return `${JSON.stringify({ kind, name }).slice(0, -1)},"generation":`;
}

/**
 * The last run of a job that was, or was not, a start that was refused; of those that were not, one
 * that says nothing about the job is left out. @param since  of its order
 */
export function lastOfJob(
  db: Database,
  job: string,
  which: "granted" | "skipped",
  since = Number.MIN_SAFE_INTEGER,
): JournalRun | undefined {
  const is = which === "skipped" ? IS_REFUSED : `NOT ${IS_REFUSED} AND NOT ${IS_OF_ONE_STEP}`;
  const where = `WHERE ${OF_JOB} AND ${is} AND sort_at >= ? ${NEWEST_FIRST}`;
  return selectRuns(db, where, job, since, 1)[0];
}

/**
 * The last one that was not refused for a lease; the last refusal where there is no other.
 * @param refused  what else counts as a refusal
 */
function selectLast(
  db: Database,
  where: string,
  text: string,
  refused: string = IS_LOCKED,
): JournalRun[] {
  const granted = `WHERE ${where} AND NOT ${refused} ${NEWEST_FIRST}`;
  const last = selectRuns(db, granted, text, 1);
  return last.length > 0 ? last : selectRuns(db, `WHERE ${where} ${NEWEST_FIRST}`, text, 1);
}

/** Ids are hex digits and dashes: everything that begins so sorts before the same with a `g`. */
function selectByBeginning(db: Database, beginning: string): JournalRun[] {
  if (beginning.length < SHORTEST_PREFIX) return [];
  const found = selectRuns(
    db,
    "WHERE run_id >= ? AND run_id < ? LIMIT 2",
    beginning,
    `${beginning}g`,
  );
  return found.length === 1 ? found : [];
}

/**
 * One question, within one transaction that reads.
 * @param drains  false: what waits in the spool stays there, for whoever must not wait
 */
export function askJournal<T>(
  stateDirectory: string,
  question: (db: Database) => T,
  drains = true,
): JournalAnswer<T> {
  try {
    const place = placeOfJournal(stateDirectory);
    const notes = drains ? drainFirst(stateDirectory, listSpool(place).length) : [];
    const opened = openExisting(place, "read");
    if (opened.kind === "missing") return answerMissing(listSpool(place).length, notes);
    if (isTrouble(opened)) return unreadable(opened);
    try {
      if (!hasTables(opened.db)) return answerMissing(listSpool(place).length, notes);
      const value = opened.db.transaction(() => question(opened.db))();
      return { kind: "read", value, waiting: listSpool(place).length, notes };
    } finally {
      closeQuietly(opened.db);
    }
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      return { kind: "missing" }; // the state directory itself
    }
    return unreadable(troubleOf(error));
  }
}

function unreadable(trouble: Trouble): JournalAnswer<never> {
  const reason = describeTrouble(trouble);
  return { kind: "unreadable", reason, ...(trouble.kind === "busy" ? { isBusy: true } : {}) };
}

function answerMissing(waiting: number, notes: readonly string[]): JournalAnswer<never> {
  return waiting === 0 ? { kind: "missing" } : { kind: "missing", waiting, notes };
}

function drainFirst(stateDirectory: string, waiting: number): string[] {
  const notes: string[] = [];
  if (waiting === 0) return notes;
  const writer = new Writer(stateDirectory, (line) => notes.push(line));
  const until = monotonicNow() + DRAIN_MS;
  let result = writer.drain();
  while (result.kind === "busy" && monotonicNow() < until) {
    pauseThread(DRAIN_PAUSE_MS);
    result = writer.drain();
  }
  writer.close();
  if (result.kind === "unusable") notes.push(describeTrouble(result)); // why files wait on
  return notes;
}
