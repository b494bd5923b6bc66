/**
 * What a fault in the middle of a job leaves as evidence: what the transaction holds, and what
 * everybody else sees of the step or the job at the same moment, asked on a connection of its own.
 * Called in the fault build alone, and there only where a fault names the point.
 */
import { Database } from "bun:sqlite";
import type { StepRecord } from "../core/step-record.ts";
import type { JournalPlace } from "./places.ts";

type State = Readonly<Record<string, unknown>>;

export interface Subject {
  /** Undefined: the transaction is over. */
  readonly db: Database | undefined;
  readonly place: JournalPlace;
  readonly jobId: string;
  readonly generation: number;
}

/** `pending`: what the transaction would leave of the step; null: none is open. */
export function stepEvidence(subject: Subject, { step, attempt }: StepRecord): () => State {
  const { db, place, jobId, generation } = subject;
  return () => ({
    job: jobId,
    step,
    attempt,
    generation,
    transaction: db?.inTransaction === true ? "open" : "committed",
    stateInDatabase: lookBeside(place, (other) => stateOfStep(other, jobId, step)),
    pending: db?.inTransaction === true ? pendingOf(db, jobId, step) : null,
  });
}

export function jobEvidence(subject: Subject, more: State = {}): () => State {
  const { db, place, jobId, generation } = subject;
  return () => ({
    job: jobId,
    generation,
    transaction: db?.inTransaction === true ? "open" : "committed",
    stateInDatabase: lookBeside(place, (other) => stateOfJob(other, jobId)),
    pending: db?.inTransaction === true ? stateOfJob(db, jobId) : null,
    ...more,
  });
}

function lookBeside(place: JournalPlace, look: (db: Database) => string | null): string | null {
  const other = new Database(place.database, { readonly: true });
  try {
    return look(other);
  } catch (error) {
    return `unread: ${String(error)}`; // a table that is not there yet
  } finally {
    other.close(true);
  }
}

function stateOfStep(db: Database, jobId: string, step: string): string | null {
  const sql = "SELECT state FROM steps WHERE job_id = ? AND step = ?";
  return db.query<{ state: string }, [string, string]>(sql).get(jobId, step)?.state ?? null;
}

function stateOfJob(db: Database, jobId: string): string | null {
  const sql = "SELECT state FROM jobs WHERE job_id = ?";
  return db.query<{ state: string }, [string]>(sql).get(jobId)?.state ?? null;
}

function pendingOf(db: Database, jobId: string, step: string): State {
  const sql = "SELECT count(*) AS count FROM artifacts WHERE job_id = ? AND step = ?";
  const found = db.query<{ count: number }, [string, string]>(sql).get(jobId, step);
  return { state: stateOfStep(db, jobId, step), artifacts: found?.count ?? 0 };
}
