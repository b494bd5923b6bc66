/**
 * Writes the rows of the steps of one job, inside a transaction that the caller has begun. Decides
 * nothing about a step.
 *
 * Guarantees: a step is started only where it is neither done nor unknown nor running, and ended
 * only as the attempt that was started, so that a mistake of the caller starts nothing a second
 * time; rows of artifacts are there for steps that are done, and for no other.
 *
 * Every refusal is a value, and the caller rolls back. Clock: the wall clock of whoever writes,
 * handed in. After a crash: what SQLite says of a transaction.
 */
import type { Database } from "bun:sqlite";
import type { ArtifactRecord, StepRecord } from "../core/step-record.ts";
import { ownMask } from "../os/mask.ts";
import type { JobOwner, JobWriting, Refusal, StepChange, StepWrite } from "./job-writing.ts";
import { contradiction } from "./job-writing.ts";
import type { Cell } from "./rows.ts";

/** Steps that its file has no more. What they did stays in `step_attempts`. */
export function removeSteps(writing: JobWriting, steps: readonly string[]): void {
  const { db, job } = writing;
  for (const step of steps) {
    db.query("DELETE FROM steps WHERE job_id = ? AND step = ?").run(job.job_id, step);
    removeArtifacts(writing, step);
  }
}

/** A step of a job that is just begun. */
export function insertStep(
  writing: JobWriting,
  change: StepChange,
  position: number,
): Refusal | undefined {
  const refusal = refusalOf(change);
  if (refusal !== undefined) return refusal;
  const { db, job, owner } = writing;
  const { record, sideEffects = null, artifacts } = change;
  insertRow(db, "steps", {
    job_id: job.job_id,
    step: record.step,
    job: job.name,
    job_seq: job.seq,
    position,
    side_effects: sideEffects,
    ...cellsOf(record, owner),
  });
  if (artifacts !== undefined) insertArtifacts(writing, record, artifacts);
  return undefined;
}

function refusalOf({ record, artifacts }: StepChange): Refusal | undefined {
  if (record.state === "running") return contradiction(`step ${record.step} is not started so`);
  if (artifacts === undefined || record.state === "done") return undefined;
  return contradiction(`step ${record.step} is ${record.state} and has artifacts`);
}

/** Written as it is said to be, whatever it was; an attempt that ran is over. */
export function changeStep(writing: JobWriting, change: StepChange): Refusal | undefined {
  const { db, job } = writing;
  const { record, artifacts } = change;
  const refusal = refusalOf(change);
  if (refusal !== undefined) return refusal;
  const position = change.position ?? readPosition(writing, record.step);
  if (position === undefined || readStep(writing, record.step) === undefined) {
    return insertStep(writing, change, position ?? nextPosition(writing));
  }
  const { sideEffects } = change;
  const more = sideEffects === undefined ? {} : { side_effects: sideEffects };
  updateStep(writing, record.step, { ...cellsOf(record, writing.owner), ...more, position });
  db.query(
    "UPDATE step_attempts SET state = 'interrupted', because = 'watchdog-killed' " +
      "WHERE job_id = ? AND step = ? AND state = 'running'",
  ).run(job.job_id, record.step);
  if (record.state !== "done") removeArtifacts(writing, record.step);
  else if (artifacts !== undefined) replaceArtifacts(writing, record, artifacts);
  return undefined;
}

function readPosition({ db, job }: JobWriting, step: string): number | undefined {
  const sql = "SELECT position FROM steps WHERE job_id = ? AND step = ?";
  return db.query<{ position: number }, [string, string]>(sql).get(job.job_id, step)?.position;
}

function nextPosition({ db, job }: JobWriting): number {
  const sql = "SELECT max(position) AS last FROM steps WHERE job_id = ?";
  const last = db.query<{ last: number | null }, [string]>(sql).get(job.job_id)?.last;
  return (last ?? -1) + 1;
}

/** What one step of the job does next, or how it has ended. */
export function writeStep(writing: JobWriting, write: StepWrite): Refusal | undefined {
  switch (write.kind) {
    case "start":
      return startStep(writing, write.record);
    case "complete":
      return endStep(writing, write) ?? replaceArtifacts(writing, write.record, write.artifacts);
    case "end":
      return endStep(writing, write);
  }
}

function startStep(writing: JobWriting, record: StepRecord): Refusal | undefined {
  const { db, job, owner } = writing;
  const { step, attempt } = record;
  const found = readStep(writing, step);
  const isStartable = found !== undefined && STARTABLE.has(found.state) && found.attempt < attempt;
  if (!isStartable || record.state !== "running") {
    return contradiction(`attempt ${attempt} of step ${step} cannot start: ${describe(found)}`);
  }
  updateStep(writing, step, cellsOf(record, writing.owner));
  removeArtifacts(writing, step);
  // What a step of that name did before its file had it no more is written over.
  db.query("DELETE FROM step_attempts WHERE job_id = ? AND step = ? AND attempt = ?").run(
    job.job_id,
    step,
    attempt,
  );
  insertRow(db, "step_attempts", {
    job_id: job.job_id,
    step,
    attempt,
    state: "running",
    generation: owner.generation,
    run_id: record.runId,
    started_at: instant(record.startedAt),
  });
  return undefined;
}

const STARTABLE = new Set(["pending", "interrupted", "failed"]);
const ENDED = { complete: new Set(["done"]), end: new Set(["failed", "interrupted", "unknown"]) };

type EndWrite = Exclude<StepWrite, { kind: "start" }>;

function endStep(writing: JobWriting, { kind, record }: EndWrite): Refusal | undefined {
  const { db, job } = writing;
  const { step, attempt, state } = record;
  const found = readStep(writing, step);
  const isRunning = found?.state === "running" && found.attempt === attempt;
  if (!isRunning || !ENDED[kind].has(state)) {
    return contradiction(`attempt ${attempt} of step ${step} cannot end: ${describe(found)}`);
  }
  updateStep(writing, step, cellsOf(record, writing.owner));
  db.query(
    "UPDATE step_attempts SET state = ?, because = ?, run_id = ?, ended_at = ?, exit_code = ?, " +
      "signal = ? WHERE job_id = ? AND step = ? AND attempt = ?",
  ).run(
    state,
    record.because,
    record.runId,
    instant(record.endedAt),
    record.exitCode,
    record.signal,
    job.job_id,
    step,
    attempt,
  );
  return undefined;
}

interface KnownStep {
  readonly state: string;
  readonly attempt: number;
}

function readStep({ db, job }: JobWriting, step: string): KnownStep | undefined {
  const sql = "SELECT state, attempt FROM steps WHERE job_id = ? AND step = ?";
  return db.query<KnownStep, [string, string]>(sql).get(job.job_id, step) ?? undefined;
}

function describe(found: KnownStep | undefined): string {
  return found === undefined ? "there is none" : `it is ${found.state}, attempt ${found.attempt}`;
}

function replaceArtifacts(
  writing: JobWriting,
  record: StepRecord,
  artifacts: readonly ArtifactRecord[],
): undefined {
  removeArtifacts(writing, record.step);
  insertArtifacts(writing, record, artifacts);
}

function insertArtifacts(
  { db, job, at }: JobWriting,
  { step }: StepRecord,
  artifacts: readonly ArtifactRecord[],
): void {
  for (const { path, kind, bytes, sha256 } of artifacts) {
    const place = { job_id: job.job_id, step, path };
    insertRow(db, "artifacts", { ...place, kind, bytes, sha256, recorded_at: Math.round(at) });
  }
}

function removeArtifacts({ db, job }: JobWriting, step: string): void {
  db.query("DELETE FROM artifacts WHERE job_id = ? AND step = ?").run(job.job_id, step);
}

/** By column name, so that columns of a newer minor keep their defaults or what they hold. */
function cellsOf(record: StepRecord, owner: JobOwner): Record<string, Cell> {
  return {
    state: record.state,
    because: record.because,
    attempt: record.attempt,
    generation: owner.generation,
    run_id: record.runId,
    command_print: record.commandPrint,
    input_print: record.inputPrint,
    started_at: instant(record.startedAt),
    ended_at: instant(record.endedAt),
    exit_code: record.exitCode,
    signal: record.signal,
    detail: record.detail === null ? null : ownMask().text(record.detail),
  };
}

function instant(at: number | null): number | null {
  return at === null ? null : Math.round(at);
}

type Cells = Readonly<Record<string, Cell>>;

export function insertRow(db: Database, table: string, cells: Cells): void {
  const names = Object.keys(cells);
  const places = names.map(() => "?").join(", ");
  const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places})`;
  db.query(sql).run(...Object.values(cells));
}

function updateStep({ db, job }: JobWriting, step: string, cells: Cells): void {
  const sets = Object.keys(cells).map((name) => `${name} = ?`);
  const sql = `UPDATE steps SET ${sets.join(", ")} WHERE job_id = ? AND step = ?`;
  db.query(sql).run(...Object.values(cells), job.job_id, step);
}
