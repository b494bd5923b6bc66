/**
 * What is known of the steps of a job, as the journal keeps it: plain data. Instants are wall-clock
 * milliseconds, for people.
 */

/**
 * `running` is what the journal says while a step runs, and after its watchdog was killed;
 * `interrupted` is what a resume makes of the second. `blocked` is never stored: a step whose needs
 * have failed stays `pending`.
 */
export type StepState =
  | "pending"
  | "running"
  | "interrupted"
  | "done"
  | "failed"
  /** Whether it has happened is for a person to say. */
  | "unknown";

export type JobState =
  /** Or its watchdog was killed: whether it lives is told by its lease. */
  | "running"
  | "done"
  | "failed"
  /** At least one step is unknown, and nothing else can be done. */
  | "unknown"
  /** Ended on request, or by a limit, before all was done. */
  | "interrupted";

export const STEP_STATES: readonly StepState[] = [
  "pending",
  "running",
  "interrupted",
  "done",
  "failed",
  "unknown",
];

export const JOB_STATES: readonly JobState[] = [
  "running",
  "done",
  "failed",
  "unknown",
  "interrupted",
];

/** Why a step is in its state. */
export type StepReason =
  | "exited"
  | "killed-by-signal"
  | "timeout"
  | "not-found"
  | "not-executable"
  | "not-started"
  | "artifact-missing"
  | "artifact-empty"
  | "artifact-stale"
  | "artifact-unreadable"
  /** `watchdog run` around it has said so: see its outcome. */
  | "run-failed"
  /** Its inputs, command and artifacts were those of an earlier job: it was not run. */
  | "unchanged"
  | "settled-happened"
  | "settled-not-happened"
  | "settle-unclear"
  | "no-settle"
  | "watchdog-killed"
  | "stopped"
  /** Sent back: its artifacts are not those that it has left. */
  | "artifact-changed"
  /** Sent back: what it does was changed. */
  | "definition-changed"
  | "inputs-changed"
  /** Sent back: one of its declared inputs is not there. */
  | "input-missing"
  /** Sent back: a step that it needs was. */
  | "needs-changed"
  | "asked"
  | "accepted-retry"
  | "accepted-fail"
  | "accepted-done";

export interface StepRecord {
  readonly step: string;
  readonly state: StepState;
  readonly because: StepReason | null;
  /** How often it was started in this job; 0: never. */
  readonly attempt: number;
  /** Of the lease under which the state was written. */
  readonly generation: number;
  readonly runId: string | null;
  /** Lower-case hex SHA-256 of what the step does; null: it was never started. */
  readonly commandPrint: string | null;
  /** The same of what it reads; null: never started, or its inputs are not declared. */
  readonly inputPrint: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** A sentence for people about the state; null: there is nothing to add. */
  readonly detail: string | null;
}

/** One start of a step within a job; each is kept, also where the step was run again. */
export interface StepAttempt {
  readonly step: string;
  /** From 1. */
  readonly attempt: number;
  /** `running` also where its watchdog was killed and nobody has resumed the job yet. */
  readonly state: StepState;
  readonly because: StepReason | null;
  readonly generation: number;
  readonly runId: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** What a step has left: a file, or a directory as its sorted manifest. */
export interface ArtifactRecord {
  readonly step: string;
  readonly path: string;
  readonly kind: "file" | "directory";
  /** Of a directory: of all its files together. */
  readonly bytes: number;
  /** Lower-case hex: of the bytes of a file, or of the manifest of a directory. */
  readonly sha256: string;
}

/** One execution of all steps, from its beginning until all of them are done. */
export interface JobRecord {
  /** UUIDv7, of this execution. */
  readonly jobId: string;
  readonly name: string;
  readonly file: string;
  readonly directory: string;
  readonly state: JobState;
  /** Of the run that has it now, or had it last. */
  readonly runId: string;
  readonly generation: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  readonly steps: readonly StepRecord[];
  readonly artifacts: readonly ArtifactRecord[];
}
