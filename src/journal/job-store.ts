/**
 * What one run writes about its job of many steps: each call is one transaction (`BEGIN IMMEDIATE`,
 * `synchronous=FULL`), fenced within itself. Decides nothing about a step.
 *
 * Guarantees: what is `written` is on the disk, and a step's end with its artifacts is there as a
 * whole or not at all; `fenced` and `unwritten` have changed no row (but see below); nothing waits
 * in the spool, because whoever starts a step must know; a broken database is never set aside here
 * and a missing one is made by `begin` alone, so that no job is forgotten on its account; the
 * marker (job-marker.ts) is on the disk before the first `written`. The main loop stands still for
 * at most BUSY_MS at a time for a lock, and for the fsync of a commit.
 *
 * Nothing is thrown, but a fault that a test has planted between a commit and its answer.
 *
 * Non-guarantees: where the disk fails in the middle of the fsync of a commit, an `unwritten` may
 * still be found written after a crash: what was started is then taken for interrupted, and what
 * was completed was.
 *
 * Clock: MONOTONIC for the limit; the wall clock is written. After a crash: what was committed is
 * there, SIGKILL and power cut included; what was not never happened.
 */
import type { Database } from "bun:sqlite";
import { assert } from "../core/errors.ts";
import type { ArtifactRecord, StepRecord } from "../core/step-record.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { wakeAfter } from "../os/timers.ts";
import { JournalConnection, transact } from "./connection.ts";
import { jobEvidence, stepEvidence, type Subject } from "./job-evidence.ts";
import { type JobMarker, readMarker, removeMarker, writeMarker } from "./job-marker.ts";
import { adoptJob, endJob, findNewerOwner, findOwnJob, insertJob, touchJob } from "./job-rows.ts";
import {
  type JobEnd,
  type JobOwner,
  type JobRow,
  type JobWriting,
  lost,
  type NewJob,
  type Refusal,
  type StepChange,
  type StepWrite,
} from "./job-writing.ts";
import { MAKING_MS } from "./open.ts";
import { inspectDatabase } from "./places.ts";
import { changeStep, removeSteps, writeStep } from "./step-rows.ts";
import { describeTrouble, type Trouble, troubleOf } from "./trouble.ts";

export type { JobEnd, JobOwner, NewJob, StepChange } from "./job-writing.ts";

/** Others hold the database for moments; whoever holds it for longer stops the job. */
export const WRITE_LIMIT_MS = 30_000;
const PATIENCE_MS: ReadonlyMap<string, number> = new Map([
  ["busy", WRITE_LIMIT_MS],
  ["corrupt", MAKING_MS],
]);
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

export type StoreResult =
  | { readonly kind: "written" }
  /** The job, or a key of ours, is somebody else's now: nothing more may be done. */
  | { readonly kind: "fenced"; readonly reason: string }
  | {
      readonly kind: "unwritten";
      /**
       * Of a trouble with the database: its kind. `lost`: it does not know our job.
       * `contradiction`: our own mistake. `marker`: the file beside the journal.
       */
      readonly because: Exclude<Trouble["kind"], "missing"> | "lost" | "contradiction" | "marker";
      readonly reason: string;
    };

export interface JobStoreParts extends JobOwner {
  readonly stateDirectory: string;
  /** One line for people about what went wrong beside a result. */
  readonly tell: (line: string) => void;
  /** Unless a test has less patience. */
  readonly limitMs?: number;
}

const WRITTEN: StoreResult = { kind: "written" };

type Act = (writing: Omit<JobWriting, "job">) => Refusal | undefined;

export class JobStore {
  readonly #parts: JobStoreParts;
  readonly #connection: JournalConnection;
  #job: { readonly jobId: string; readonly name: string } | undefined;

  /** Opens nothing yet. */
  constructor(parts: JobStoreParts) {
    this.#parts = parts;
    const { stateDirectory, tell } = parts;
    this.#connection = new JournalConnection({ stateDirectory, tell });
  }

  /** The job that was begun or taken over here. */
  get jobId(): string | undefined {
    return this.#job?.jobId;
  }

  /**
   * A new job with all its steps, in their order; makes the journal where it is missing. An
   * unfinished one of that name is resumed by nobody after it.
   */
  async begin(job: NewJob): Promise<StoreResult> {
    const { jobId, name } = job;
    const result = await this.#write(undefined, (writing) => {
      const refusal = insertJob(writing, job);
      if (refusal !== undefined) return refusal;
      faultPoint("job.begin.commit", jobEvidence(this.#subject(writing.db, jobId), { name }));
      return undefined;
    });
    if (result.kind !== "written") return result;
    faultPoint("job.begun", jobEvidence(this.#subject(undefined, jobId), { name }));
    return this.#keepMarker(jobId, name);
  }

  /**
   * Takes an unfinished job over, with what the resume has decided about its steps.
   * @param gone  steps that its file has no more
   */
  async adopt(
    jobId: string,
    changes: readonly StepChange[] = [],
    gone: readonly string[] = [],
  ): Promise<StoreResult> {
    let name = "";
    const result = await this.#write(jobId, (writing) => {
      const job = adoptJob(writing, jobId);
      if ("kind" in job) return job;
      ({ name } = job);
      const refusal = changeAll({ ...writing, job }, changes);
      if (refusal !== undefined) return refusal;
      removeSteps({ ...writing, job }, gone);
      const steps = namesOf(changes);
      faultPoint("job.adopt.commit", jobEvidence(this.#subject(writing.db, jobId), { steps }));
      return undefined;
    });
    return result.kind === "written" ? this.#keepMarker(jobId, name) : result;
  }

  /** Before its command is spawned. @param record  `running`, with the number of this attempt */
  startStep(record: StepRecord): Promise<StoreResult> {
    return this.#writeSteps([{ kind: "start", record }]);
  }

  /** Its end, its status and its artifacts. @param record  `done` */
  completeStep(record: StepRecord, artifacts: readonly ArtifactRecord[]): Promise<StoreResult> {
    return this.#writeSteps([{ kind: "complete", record, artifacts }]);
  }

  /** `completeStep` and `startStep` of the next ones in one transaction, for one fsync. */
  completeAndStart(
    record: StepRecord,
    artifacts: readonly ArtifactRecord[],
    next: readonly StepRecord[],
  ): Promise<StoreResult> {
    const starts = next.map((one): StepWrite => ({ kind: "start", record: one }));
    return this.#writeSteps([{ kind: "complete", record, artifacts }, ...starts]);
  }

  /** @param record  `failed`, `interrupted` or `unknown` */
  endStep(record: StepRecord): Promise<StoreResult> {
    return this.#writeSteps([{ kind: "end", record }]);
  }

  /** What was decided about steps that do not run, all of it in one transaction. */
  changeSteps(changes: readonly StepChange[]): Promise<StoreResult> {
    return this.#writeOwn((writing) => {
      const refusal = changeAll(writing, changes);
      if (refusal !== undefined) return refusal;
      const subject = this.#subject(writing.db, writing.job.job_id);
      faultPoint("step.change.commit", jobEvidence(subject, { steps: namesOf(changes) }));
      return undefined;
    });
  }

  /** The marker goes with a job that is done. */
  async finish(end: JobEnd): Promise<StoreResult> {
    const result = await this.#writeOwn((writing) => {
      endJob(writing, end);
      const subject = this.#subject(writing.db, writing.job.job_id);
      faultPoint("job.finish.commit", jobEvidence(subject, { state: end.state }));
      return undefined;
    });
    if (result.kind !== "written" || end.state !== "done") return result;
    faultPoint("job.finished", jobEvidence(this.#subject(undefined, this.#job?.jobId ?? "")));
    this.#dropMarker();
    return result;
  }

  /** After the last call has come back. */
  close(): void {
    this.#connection.close();
  }

  async #writeSteps(writes: readonly StepWrite[]): Promise<StoreResult> {
    const result = await this.#writeOwn((writing) => {
      const subject = this.#subject(writing.db, writing.job.job_id);
      for (const write of writes) {
        const refusal = writeStep(writing, write);
        if (refusal !== undefined) return refusal;
      }
      for (const { kind, record } of writes) {
        faultPoint(POINTS[kind].commit, stepEvidence(subject, record));
      }
      return undefined;
    });
    if (result.kind !== "written") return result;
    const subject = this.#subject(undefined, this.#job?.jobId ?? "");
    for (const { kind, record } of writes) {
      faultPoint(POINTS[kind].after, stepEvidence(subject, record));
    }
    return result;
  }

  /** By the run that has the job, and nobody else. */
  async #writeOwn(act: (writing: JobWriting) => Refusal | undefined): Promise<StoreResult> {
    assert(this.#job !== undefined, "a job is begun or taken over before its steps are written");
    const { jobId } = this.#job;
    const result = await this.#write(jobId, ({ db, owner, at }) => {
      const job: JobRow | Refusal = findOwnJob(db, jobId, owner);
      if ("kind" in job) return job;
      const writing = { db, job, owner, at };
      touchJob(writing);
      return act(writing);
    });
    if (result.kind === "unwritten" && result.because === "lost") this.#restoreMarker();
    return result;
  }

  /**
   * Again while somebody else holds the database.
   * @param known  the job that must be there; undefined: it is begun
   */
  async #write(known: string | undefined, act: Act): Promise<StoreResult> {
    const began = monotonicNow();
    const limitMs = this.#parts.limitMs ?? WRITE_LIMIT_MS;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const result = this.#try(known, act);
      if (result.kind !== "unwritten") return result;
      const patienceMs = PATIENCE_MS.get(result.because) ?? 0;
      if (monotonicNow() - began >= Math.min(limitMs, patienceMs)) return result;
      await new Promise<void>((resolve) => void wakeAfter(pauseMs, resolve));
    }
  }

  #try(known: string | undefined, act: Act): StoreResult {
    const found: { refusal?: Refusal } = {};
    try {
      const { place } = this.#connection;
      if (known !== undefined && NOTHING.has(inspectDatabase(place).kind)) {
        return unwrittenFor(lost(known));
      }
      const result = this.#connection.attempt((db) =>
        transact(db, () => {
          const { runId, generation, leases } = this.#parts;
          const owner = { runId, generation, leases };
          const refusal = findNewerOwner(db, place, owner) ?? act({ db, owner, at: wallNow() });
          if (refusal === undefined) return;
          found.refusal = refusal;
          throw new Error(refusal.reason); // rolls back
        }),
      );
      if (found.refusal !== undefined) return unwrittenFor(found.refusal);
      return result.kind === "written" ? WRITTEN : unwrittenOf(result);
    } catch (error) {
      return unwrittenOf(troubleOf(error)); // ENOENT, EACCES: the state directory
    }
  }

  /** Without it no step may be started; the job is in the journal, and is resumed. */
  #keepMarker(jobId: string, name: string): StoreResult {
    try {
      const { place } = this.#connection;
      writeMarker(place, this.#markerOf(jobId, name));
      this.#job = { jobId, name };
      return WRITTEN;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return { kind: "unwritten", because: "marker", reason: `jobs/ cannot be written: ${reason}` };
    }
  }

  #markerOf(jobId: string, name: string): JobMarker {
    const { runId, generation } = this.#parts;
    return { name, jobId, runId, generation };
  }

  /**
   * Who has removed the journal in the middle of a job may have removed the marker with it; put
   * back, it keeps the next run from beginning the job anew in silence.
   */
  #restoreMarker(): void {
    try {
      const { place } = this.#connection;
      if (this.#job === undefined || readMarker(place, this.#job.name).kind !== "none") return;
      writeMarker(place, this.#markerOf(this.#job.jobId, this.#job.name));
    } catch {
      // ENOENT: the state directory is gone, too; EROFS, ENOSPC: what stopped the job is told
    }
  }

  #dropMarker(): void {
    try {
      const { jobId, name } = this.#job ?? { jobId: "", name: "" };
      removeMarker(this.#connection.place, name, jobId);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#parts.tell(`the marker of a job that is done stays in jobs/: ${reason}`);
    }
  }

  #subject(db: Database | undefined, jobId: string): Subject {
    const { generation } = this.#parts;
    return { db, place: this.#connection.place, jobId, generation };
  }
}

/** Nothing is made of it on account of a job that was begun already. */
const NOTHING = new Set(["missing", "empty"]);

const POINTS = {
  start: { commit: "step.started.commit", after: "step.started" },
  complete: { commit: "step.completion.commit", after: "step.completed" },
  end: { commit: "step.end.commit", after: "step.ended" },
} as const;

function changeAll(writing: JobWriting, changes: readonly StepChange[]): Refusal | undefined {
  for (const change of changes) {
    const refusal = changeStep(writing, change);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function namesOf(changes: readonly StepChange[]): string[] {
  return changes.map(({ record }) => record.step);
}

function unwrittenFor({ kind, reason }: Refusal): StoreResult {
  return kind === "fenced" ? { kind, reason } : { kind: "unwritten", because: kind, reason };
}

function unwrittenOf(trouble: Trouble): StoreResult {
  const because = trouble.kind === "missing" ? "lost" : trouble.kind;
  return { kind: "unwritten", because, reason: describeTrouble(trouble) };
}
