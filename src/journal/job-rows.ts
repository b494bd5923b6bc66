/**
 * Writes the row of one job of many steps, inside a transaction that the caller has begun, and asks
 * whether it is for this run to write about it. Decides nothing about a job.
 *
 * Guarantees: nothing is written by whom a larger generation of one of his keys is known, in the
 * journal or in what waits for it in the spool, nor by whom another run has taken the job from; a
 * job that is done, or was left for a newer one of its name, is taken over by nobody.
 *
 * Every refusal is a value, and the caller rolls back. Clock: the wall clock of whoever writes,
 * handed in. After a crash: what SQLite says of a transaction.
 */
import type { Database } from "bun:sqlite";
import { renderKey } from "../core/lease-key.ts";
import type { JobEnd, JobOwner, JobRow, JobWriting, NewJob, Refusal } from "./job-writing.ts";
import { contradiction, lost } from "./job-writing.ts";
import { findFence, raiseLeases, readLease } from "./lease-rows.ts";
import type { JournalPlace } from "./places.ts";
import { pruneJobs } from "./retention.ts";
import type { Cell } from "./rows.ts";
import { readSpooledLease } from "./spooled-lease.ts";
import { insertRow, insertStep } from "./step-rows.ts";

/** @throws an error of SQLite; that of the system call where the spool cannot be read */
export function findNewerOwner(
  db: Database,
  place: JournalPlace,
  { leases }: JobOwner,
): Refusal | undefined {
  const fence = findFence(db, leases);
  if (fence !== undefined) return fence;
  for (const lease of leases) {
    const known = readSpooledLease(place, lease, readLease(db, lease));
    if (known !== undefined && known.generation > lease.generation) {
      const reason =
        `${renderKey(lease)} has generation ${known.generation} of run ${known.runId}, ` +
        `which waits in the spool, found generation ${lease.generation}`;
      return { kind: "fenced", reason };
    }
  }
  return undefined;
}

/** The job, where it is this run that has it. */
export function findOwnJob(db: Database, jobId: string, { runId }: JobOwner): JobRow | Refusal {
  const job = readJob(db, jobId);
  if (job === undefined) return lost(jobId);
  if (job.run_id === runId) return job;
  const reason = `job ${jobId} was taken over by run ${job.run_id}`;
  return { kind: "fenced", reason };
}

function readJob(db: Database, jobId: string): JobRow | undefined {
  const sql = "SELECT seq, job_id, name, state, run_id, is_superseded FROM jobs WHERE job_id = ?";
  return db.query<JobRow, [string]>(sql).get(jobId) ?? undefined;
}

/** Nobody resumes an unfinished one of that name after it. */
export function insertJob(
  { db, owner, at }: Omit<JobWriting, "job">,
  job: NewJob,
): Refusal | undefined {
  if (readJob(db, job.jobId) !== undefined) {
    return contradiction(`job ${job.jobId} was begun already`);
  }
  raiseLeases(db, owner.leases, owner.runId, Math.round(at));
  insertRow(db, "jobs", {
    job_id: job.jobId,
    name: job.name,
    file: job.file,
    directory: job.directory,
    state: "running",
    run_id: owner.runId,
    generation: owner.generation,
    created_at: Math.round(job.createdAt),
    updated_at: Math.round(at),
    steps_until: lastStepsUntil(db) + job.steps.length,
  });
  const row = readJob(db, job.jobId);
  if (row === undefined) return lost(job.jobId);
  const writing = { db, job: row, owner, at };
  for (const [position, step] of job.steps.entries()) {
    const refusal = insertStep(writing, step, position);
    if (refusal !== undefined) return refusal;
  }
  db.query(
    "UPDATE jobs SET is_superseded = 1 " +
      "WHERE is_superseded = 0 AND name = ? AND seq < ? AND state <> 'done'",
  ).run(job.name, row.seq);
  pruneJobs(db, at);
  return undefined;
}

function lastStepsUntil(db: Database): number {
  const sql = "SELECT steps_until FROM jobs ORDER BY seq DESC LIMIT 1";
  return db.query<{ steps_until: number }, []>(sql).get()?.steps_until ?? 0;
}

/** From now on it is this run that writes about it. */
export function adoptJob(
  { db, owner, at }: Omit<JobWriting, "job">,
  jobId: string,
): JobRow | Refusal {
  const job = readJob(db, jobId);
  if (job === undefined) return lost(jobId);
  if (job.state === "done") return contradiction(`job ${jobId} is done`);
  if (job.is_superseded !== 0) {
    return contradiction(`job ${jobId} was left: a newer one of that name was begun`);
  }
  raiseLeases(db, owner.leases, owner.runId, Math.round(at));
  update(db, jobId, {
    state: "running",
    because: null,
    exit_status: null,
    ended_at: null,
    run_id: owner.runId,
    generation: owner.generation,
    updated_at: Math.round(at),
  });
  return { ...job, run_id: owner.runId, state: "running" };
}

/** Without an end where it only says that something of it was written. */
export function touchJob({ db, job, at }: JobWriting): void {
  update(db, job.job_id, { updated_at: Math.round(at) });
}

/** Where it is done, nobody needs the ones of its name before it any more. */
export function endJob({ db, job, at }: JobWriting, end: JobEnd): void {
  update(db, job.job_id, {
    state: end.state,
    because: end.because,
    exit_status: end.exitStatus,
    ended_at: Math.round(at),
    updated_at: Math.round(at),
  });
  if (end.state !== "done") return;
  db.query(
    "UPDATE jobs SET is_superseded = 1 WHERE is_superseded = 0 AND name = ? AND seq < ?",
  ).run(job.name, job.seq);
}

function update(db: Database, jobId: string, cells: Readonly<Record<string, Cell>>): void {
  const sets = Object.keys(cells).map((name) => `${name} = ?`);
  const sql = `UPDATE jobs SET ${sets.join(", ")} WHERE job_id = ?`;
  db.query(sql).run(...Object.values(cells), jobId);
}
