/**
 * A job of many steps as JSON: `job status`, `job verify` and `job plan` with `--json`. The fields
 * are told in job-fields.ts.
 */

import type { JobView, StepView } from "../core/job-view.ts";
import type { ArtifactRecord, JobRecord, StepRecord } from "../core/step-record.ts";
import type { ToldStep } from "./plan-steps.ts";
import type { PlanPicture } from "./render-job.ts";

export interface ShownJob {
  readonly record: JobRecord;
  readonly view: JobView;
  /** The file that was asked about is not that of the job. */
  readonly isOfOtherFile: boolean;
  /** Lines about what could not be read. */
  readonly troubles: readonly string[];
}

export function showJob({ record, view, isOfOtherFile, troubles }: ShownJob): object {
  const { jobId, name, file, directory, runId, generation } = record;
  const artifacts = Map.groupBy(record.artifacts, ({ step }) => step);
  return {
    format: 1,
    job: name,
    job_id: jobId,
    file,
    is_of_other_file: isOfOtherFile,
    directory,
    state: view.word,
    run_id: runId,
    generation,
    begun_at: showInstant(record.createdAt),
    changed_at: showInstant(record.updatedAt),
    ended_at: showInstant(record.endedAt),
    steps: view.steps.map((step) => showStep(step, artifacts.get(step.step) ?? [])),
    questions: view.questions.map(({ step, why, answers }) => ({
      step,
      why,
      answers: answers.map(({ accepted, command = null }) => ({ answer: accepted, command })),
    })),
    resume: view.resume ?? null,
    troubles,
  };
}

/** Of a job that was never begun. */
export function showNoJob(name: string, troubles: readonly string[]): object {
  return {
    format: 1,
    job: name,
    job_id: null,
    file: null,
    is_of_other_file: false,
    directory: null,
    state: null,
    run_id: null,
    generation: null,
    begun_at: null,
    changed_at: null,
    ended_at: null,
    steps: [],
    questions: [],
    resume: null,
    troubles,
  };
}

function showStep(view: StepView, artifacts: readonly ArtifactRecord[]): object {
  const { step, word, waitsForPerson, blockedBy, record } = view;
  return {
    step,
    state: word,
    because: record.because,
    waits_for_person: waitsForPerson,
    blocked_by: blockedBy,
    ...showRecord(record),
    artifacts: artifacts.map(({ path, kind, bytes, sha256 }) => ({ path, kind, bytes, sha256 })),
  };
}

function showRecord(record: StepRecord): object {
  return {
    attempt: record.attempt,
    generation: record.generation,
    run_id: record.runId,
    started_at: showInstant(record.startedAt),
    ended_at: showInstant(record.endedAt),
    exit_code: record.exitCode,
    signal: record.signal,
    detail: record.detail,
  };
}

export interface ShownPlan extends PlanPicture {
  readonly troubles: readonly string[];
}

export function showPlan({ name, kind, isHeld, steps, missing, troubles }: ShownPlan): object {
  const planned = steps.map(showPlanned);
  return { format: 1, job: name, kind, is_held: isHeld, steps: planned, missing, troubles };
}

function showPlanned({ record, todo, because, removesArtifacts, blockedBy }: ToldStep): object {
  return {
    step: record.step,
    todo,
    state: record.state,
    because,
    blocked_by: blockedBy,
    removes_artifacts: todo === "run" && removesArtifacts,
    detail: record.detail,
  };
}

/** Farthest that ISO 8601 of JavaScript goes. */
const FARTHEST_MS = 8_640_000_000_000_000;

function showInstant(at: number | null): string | null {
  return at === null || Math.abs(at) > FARTHEST_MS ? null : new Date(at).toISOString();
}
