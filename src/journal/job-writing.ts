/**
 * What is written about a job of many steps, as plain data: who writes, what changes, and why
 * nothing was written. No SQL; job-rows.ts and step-rows.ts write it.
 */
import type { Database } from "bun:sqlite";
import type { SideEffects } from "../core/job-spec.ts";
import type { GrantedLease } from "../core/journal-entry.ts";
import type { ArtifactRecord, JobState, StepRecord } from "../core/step-record.ts";

/** The run that writes. */
export interface JobOwner {
  readonly runId: string;
  /** Of the lease of the job; 0 where the run has none. */
  readonly generation: number;
  /** All that the run was granted; none of them may have been granted to anybody later. */
  readonly leases: readonly GrantedLease[];
}

/** A step as it is from now on. */
export interface StepChange {
  /** Never `running`: a step is started by itself. Its `generation` is not used: it is ours. */
  readonly record: StepRecord;
  /** In the order of the file; undefined: as it was, or after all others. */
  readonly position?: number;
  /** As its file says today; undefined: as it was. */
  readonly sideEffects?: SideEffects;
  /** Of a step that is done, instead of those before; undefined: as they were. */
  readonly artifacts?: readonly ArtifactRecord[];
}

export interface NewJob {
  readonly jobId: string;
  readonly name: string;
  readonly file: string;
  readonly directory: string;
  readonly createdAt: number;
  /** In the order of the file. */
  readonly steps: readonly StepChange[];
}

export type StepWrite =
  | { readonly kind: "start"; readonly record: StepRecord }
  | {
      readonly kind: "complete";
      readonly record: StepRecord;
      readonly artifacts: readonly ArtifactRecord[];
    }
  | { readonly kind: "end"; readonly record: StepRecord };

export interface JobEnd {
  readonly state: JobState;
  readonly because: string | null;
  readonly exitStatus: number | null;
}

/** Why nothing is written. */
export type Refusal =
  | { readonly kind: "fenced"; readonly reason: string }
  /** The journal does not know the job: another database stands in its place. */
  | { readonly kind: "lost"; readonly reason: string }
  /** What is there is not what the caller takes it for. */
  | { readonly kind: "contradiction"; readonly reason: string };

export interface JobRow {
  readonly seq: number;
  readonly job_id: string;
  readonly name: string;
  readonly state: string;
  readonly run_id: string;
  readonly is_superseded: number;
}

/** One transaction about one job, by the run that has it. */
export interface JobWriting {
  readonly db: Database;
  readonly job: JobRow;
  readonly owner: JobOwner;
  /** Wall clock. */
  readonly at: number;
}

export function lost(jobId: string): Refusal {
  return { kind: "lost", reason: `journal.db does not know job ${jobId}` };
}

export function contradiction(reason: string): Refusal {
  return { kind: "contradiction", reason };
}
