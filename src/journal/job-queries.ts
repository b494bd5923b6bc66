/**
 * What the journal knows of jobs of many steps. Reads only: nothing is made, set aside or read in
 * from the spool (no state of a step waits there), and nobody is kept from resuming by a question.
 *
 * Refuses to know whether a job that says `running` does: that is for its lease. Always: a row that
 * holds something strange is still a row; a state that is not known here counts as `unknown`, so
 * that nothing is run on its account. Clock: MONOTONIC, for one bound.
 */
import type { Database } from "bun:sqlite";
import type { JobSpec, SideEffects } from "../core/job-spec.ts";
import type { ArtifactRecord, JobRecord, StepAttempt, StepRecord } from "../core/step-record.ts";
import { monotonicNow } from "../os/clock.ts";
import { wakeAfter } from "../os/timers.ts";
import { type JobMarker, readMarker } from "./job-marker.ts";
import {
  type ArtifactRow,
  ATTEMPT_COLUMNS,
  type AttemptRow,
  JOB_COLUMNS,
  type JobRow,
  readArtifactRow,
  readAttemptRow,
  readJobState,
  readStepRow,
  STEP_COLUMNS,
  type StepRow,
} from "./job-read-rows.ts";
import { MAKING_MS } from "./open.ts";
import { placeOfJournal } from "./places.ts";
import { askJournal, type JournalAnswer } from "./queries.ts";
import { codeOf, describeTrouble, troubleOf } from "./trouble.ts";

/** How long somebody who holds the database is waited for. */
const RECALL_MS = 30_000;
const PAUSE_MS = 100;

export interface StoredJob {
  readonly record: JobRecord;
  readonly because: string | null;
  readonly exitStatus: number | null;
  /** Of each step as its file said when it was written; a step without one is left out. */
  readonly sideEffects: ReadonlyMap<string, SideEffects>;
  /** In the order of the steps and of their attempts. */
  readonly attempts: readonly StepAttempt[];
}

/** The last time that a step of a job of this name was done, where none has tried it since. */
export interface DoneStep {
  readonly jobId: string;
  readonly record: StepRecord;
  readonly artifacts: readonly ArtifactRecord[];
}

export type JobRecall =
  /** No job of this name is known; one may be begun. */
  | { readonly kind: "none" }
  /** The newest of its name: to go on with, unless it is done. */
  | { readonly kind: "known"; readonly job: StoredJob }
  /**
   * Steps of a job have run that the journal does not know: it was broken and set aside, removed,
   * or replaced. Nobody can tell what has happened; only a person may begin anew (`--fresh`).
   */
  | { readonly kind: "lost"; readonly reason: string }
  /** It cannot be told now: nothing may be begun. */
  | { readonly kind: "unreadable"; readonly reason: string };

/**
 * What is to be resumed. Never throws; waits, without blocking, while somebody holds the database.
 * @param limitMs  unless a test has less patience
 */
export async function recallJob(
  stateDirectory: string,
  name: string,
  limitMs = RECALL_MS,
): Promise<JobRecall> {
  const began = monotonicNow();
  for (;;) {
    const found = recallOnce(stateDirectory, name);
    if (found.kind !== "unreadable") return found;
    // One that is just being made looks broken to whoever comes in between (open.ts).
    const patienceMs = "isBusy" in found ? limitMs : Math.min(limitMs, MAKING_MS);
    if (monotonicNow() - began >= patienceMs) return found;
    await new Promise<void>((resolve) => void wakeAfter(PAUSE_MS, resolve));
  }
}

function recallOnce(stateDirectory: string, name: string) {
  const marker = lookForMarker(stateDirectory, name);
  if (marker.kind === "unreadable") return { kind: "lost", reason: marker.reason } as const;
  const answer = ask(stateDirectory, (db) => ({
    job: selectNewest(db, name),
    generation: marker.kind === "none" ? undefined : selectGeneration(db, marker.marker.jobId),
  }));
  if (answer.kind === "unreadable") return answer;
  const found = answer.kind === "read" ? answer.value : undefined;
  if (marker.kind === "found") {
    const reason = findLoss(marker.marker, found?.generation);
    if (reason !== undefined) return { kind: "lost", reason } as const;
  }
  return found?.job === undefined
    ? ({ kind: "none" } as const)
    : ({ kind: "known", job: found.job } as const);
}

/** @param known  generation of the last run of the job that the journal knows of */
function findLoss(marker: JobMarker, known: number | undefined): string | undefined {
  const { jobId, generation } = marker;
  if (known === undefined) return `journal.db does not know job ${jobId}, of which steps have run`;
  if (known >= generation) return undefined;
  return (
    `journal.db is a copy from before the last run of job ${jobId} ` +
    `(it knows generation ${known} of ${generation})`
  );
}

function lookForMarker(stateDirectory: string, name: string) {
  try {
    return readMarker(placeOfJournal(stateDirectory), name);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { kind: "none" } as const; // the state directory itself
    return { kind: "unreadable", reason: describeTrouble(troubleOf(error)) } as const;
  }
}

/** The newest job of a name, with all that is known of it. */
export function readNewestJob(
  stateDirectory: string,
  name: string,
): JournalAnswer<StoredJob | undefined> {
  return ask(stateDirectory, (db) => selectNewest(db, name));
}

export function readJob(
  stateDirectory: string,
  jobId: string,
): JournalAnswer<StoredJob | undefined> {
  return ask(stateDirectory, (db) => selectWhole(db, "WHERE job_id = ?", jobId));
}

/**
 * By the names of these steps; one that was never done is left out, and so is one that a newer job
 * has begun and not done: the newest word about it counts. What a job of the same name has done in
 * another directory, it has not done here.
 */
export function readLastDone(
  stateDirectory: string,
  job: Pick<JobSpec, "name" | "directory">,
  steps: readonly string[],
): JournalAnswer<ReadonlyMap<string, DoneStep>> {
  return ask(stateDirectory, (db) => selectLastDone(db, job, steps));
}

/** A database of an older version knows no job, and asking does not change it. */
function ask<T>(stateDirectory: string, question: (db: Database) => T): JournalAnswer<T> {
  const answer = askJournal(
    stateDirectory,
    (db) => (hasJobs(db) ? { value: question(db) } : undefined),
    false,
  );
  if (answer.kind !== "read") return answer;
  return answer.value === undefined
    ? { kind: "missing" }
    : { ...answer, value: answer.value.value };
}

function hasJobs(db: Database): boolean {
  const sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'steps'";
  return db.query(sql).get() !== null;
}

function selectGeneration(db: Database, jobId: string): number | undefined {
  const sql = "SELECT generation FROM jobs WHERE job_id = ?";
  return db.query<{ generation: number }, [string]>(sql).get(jobId)?.generation;
}

function selectNewest(db: Database, name: string): StoredJob | undefined {
  return selectWhole(db, "WHERE name = ? ORDER BY seq DESC LIMIT 1", name);
}

function selectJobs(db: Database, rest: string, ...bindings: (string | number)[]): JobRow[] {
  const sql = `SELECT ${JOB_COLUMNS} FROM jobs ${rest}`;
  return db.query<JobRow, (string | number)[]>(sql).all(...bindings);
}

function selectWhole(db: Database, rest: string, text: string): StoredJob | undefined {
  const row = selectJobs(db, rest, text)[0];
  if (row === undefined) return undefined;
  const steps = selectSteps(db, row.job_id);
  const places = new Map(steps.map(({ step }, index) => [step, index]));
  const placeOf = (step: string): number => places.get(step) ?? places.size;
  const artifacts = selectArtifacts(db, row.job_id);
  const attempts = selectAttempts(db, row.job_id);
  return {
    record: {
      jobId: row.job_id,
      name: row.name,
      file: row.file,
      directory: row.directory,
      state: readJobState(row.state),
      runId: row.run_id,
      generation: row.generation,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      endedAt: row.ended_at,
      steps: steps.map(readStepRow),
      artifacts: artifacts.toSorted((one, other) => placeOf(one.step) - placeOf(other.step)),
    },
    because: row.because,
    exitStatus: row.exit_status,
    sideEffects: new Map(steps.flatMap(sideEffectsOf)),
    attempts: attempts.toSorted((one, other) => placeOf(one.step) - placeOf(other.step)),
  };
}

function selectSteps(db: Database, jobId: string): StepRow[] {
  const sql = `SELECT ${STEP_COLUMNS} FROM steps WHERE job_id = ? ORDER BY position, step`;
  return db.query<StepRow, [string]>(sql).all(jobId);
}

function sideEffectsOf({ step, side_effects }: StepRow): [string, SideEffects][] {
  return side_effects === "none" || side_effects === "unsafe" ? [[step, side_effects]] : [];
}

function selectArtifacts(db: Database, jobId: string): ArtifactRecord[] {
  const sql =
    "SELECT step, path, kind, bytes, sha256 FROM artifacts WHERE job_id = ? ORDER BY step, path";
  return db.query<ArtifactRow, [string]>(sql).all(jobId).map(readArtifactRow);
}

function selectAttempts(db: Database, jobId: string): StepAttempt[] {
  const order = "ORDER BY step, attempt";
  const sql = `SELECT ${ATTEMPT_COLUMNS} FROM step_attempts WHERE job_id = ? ${order}`;
  return db.query<AttemptRow, [string]>(sql).all(jobId).map(readAttemptRow);
}

/**
 * One search of an index for each step, however many jobs there were, and one of each job since;
 * those of another directory are passed over one by one. What was begun there, or sent back to be
 * run because a person has said so, is newer than that it was done.
 */
const LAST_DONE =
  "WITH done AS (SELECT wanted.value AS step, (SELECT one.job_seq FROM steps AS one " +
  "CROSS JOIN jobs ON jobs.seq = one.job_seq AND jobs.directory = ?3 " +
  "WHERE one.job = ?1 AND one.step = wanted.value AND one.state = 'done' " +
  "ORDER BY one.job_seq DESC LIMIT 1) AS seq FROM json_each(?2) AS wanted), " +
  "last AS (SELECT step, seq FROM done WHERE NOT EXISTS (SELECT 1 FROM jobs AS newer " +
  "CROSS JOIN steps AS tried ON tried.job_id = newer.job_id AND tried.step = done.step " +
  "WHERE newer.name = ?1 AND newer.directory = ?3 AND newer.seq > done.seq " +
  "AND (tried.state <> 'pending' OR tried.attempt > 0 " +
  "OR tried.because IN ('asked', 'accepted-retry')))) ";

function selectLastDone(
  db: Database,
  { name, directory }: Pick<JobSpec, "name" | "directory">,
  steps: readonly string[],
): ReadonlyMap<string, DoneStep> {
  const bindings: [string, string, string] = [name, JSON.stringify(steps), directory];
  const rows = db
    .query<StepRow & { readonly job_id: string }, typeof bindings>(
      `${LAST_DONE} SELECT steps.job_id, ${STEP_COLUMNS.replace(/\w+/g, "steps.$&")} FROM last ` +
        "JOIN jobs ON jobs.seq = last.seq " +
        "JOIN steps ON steps.job_id = jobs.job_id AND steps.step = last.step",
    )
    .all(...bindings);
  const artifacts = db
    .query<ArtifactRow, typeof bindings>(
      `${LAST_DONE} SELECT a.step, a.path, a.kind, a.bytes, a.sha256 FROM last ` +
        "JOIN jobs ON jobs.seq = last.seq " +
        "JOIN artifacts AS a ON a.job_id = jobs.job_id AND a.step = last.step " +
        "ORDER BY a.step, a.path",
    )
    .all(...bindings);
  const byStep = Map.groupBy(artifacts.map(readArtifactRow), ({ step }) => step);
  return new Map(
    rows.map((row) => {
      const left = byStep.get(row.step) ?? [];
      return [row.step, { jobId: row.job_id, record: readStepRow(row), artifacts: left }];
    }),
  );
}
