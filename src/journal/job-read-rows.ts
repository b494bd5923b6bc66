/**
 * Rows of jobs of many steps as those who read them see them. No SQL.
 *
 * Always: what is not known here (a state of a newer minor) counts as what nothing is run for.
 */
import type {
  ArtifactRecord,
  JobState,
  StepAttempt,
  StepReason,
  StepRecord,
  StepState,
} from "../core/step-record.ts";
import { JOB_STATES, STEP_STATES } from "../core/step-record.ts";

export interface JobRow {
  readonly job_id: string;
  readonly name: string;
  readonly file: string;
  readonly directory: string;
  readonly state: string;
  readonly because: string | null;
  readonly exit_status: number | null;
  readonly run_id: string;
  readonly generation: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly ended_at: number | null;
}

/** By name: a newer minor may have more of them. */
export const JOB_COLUMNS =
  "job_id, name, file, directory, state, because, exit_status, run_id, generation, " +
  "created_at, updated_at, ended_at";

export interface StepRow {
  readonly step: string;
  readonly state: string;
  readonly because: string | null;
  readonly attempt: number;
  readonly generation: number;
  readonly run_id: string | null;
  readonly command_print: string | null;
  readonly input_print: string | null;
  readonly side_effects: string | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly detail: string | null;
}

export const STEP_COLUMNS =
  "step, state, because, attempt, generation, run_id, command_print, input_print, " +
  "side_effects, started_at, ended_at, exit_code, signal, detail";

export interface ArtifactRow {
  readonly step: string;
  readonly path: string;
  readonly kind: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface AttemptRow {
  readonly step: string;
  readonly attempt: number;
  readonly state: string;
  readonly because: string | null;
  readonly generation: number;
  readonly run_id: string | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
}

export const ATTEMPT_COLUMNS =
  "step, attempt, state, because, generation, run_id, started_at, ended_at, exit_code, signal";

/** One that is not known here is not over. */
export function readJobState(text: string): JobState {
  return JOB_STATES.find((state) => state === text) ?? "interrupted";
}

function readStepState(text: string): StepState {
  return STEP_STATES.find((state) => state === text) ?? "unknown";
}

export function readStepRow(row: StepRow): StepRecord {
  return {
    step: row.step,
    state: readStepState(row.state),
    because: readReason(row.because),
    attempt: row.attempt,
    generation: row.generation,
    runId: row.run_id,
    commandPrint: row.command_print,
    inputPrint: row.input_print,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    exitCode: row.exit_code,
    signal: row.signal,
    detail: row.detail,
  };
}

/** Only shown: one of a newer minor is shown as it is. */
function readReason(text: string | null): StepReason | null {
  return text as StepReason | null;
}

export function readArtifactRow({ step, path, kind, bytes, sha256 }: ArtifactRow): ArtifactRecord {
  return { step, path, kind: kind === "directory" ? "directory" : "file", bytes, sha256 };
}

export function readAttemptRow(row: AttemptRow): StepAttempt {
  return {
    step: row.step,
    attempt: row.attempt,
    state: readStepState(row.state),
    because: readReason(row.because),
    generation: row.generation,
    runId: row.run_id,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    exitCode: row.exit_code,
    signal: row.signal,
  };
}
