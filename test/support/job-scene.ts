/** Jobs of many steps in a state directory, as several processes and stores write and read them. */
import { join } from "node:path";
import type { ArtifactRecord, StepRecord } from "../../src/core/step-record.ts";
import {
  type JobRecall,
  readNewestJob,
  recallJob,
  type StoredJob,
} from "../../src/journal/job-queries.ts";
import { JobStore, type JobStoreParts, type NewJob } from "../../src/journal/job-store.ts";
import type { Ended, Surroundings } from "./journal-scene.ts";
import { lease, runId } from "./journal-scene.ts";

export const JOB_ID = "0195600a-1111-7000-8000-000000000001";
export const WRITTEN = { kind: "written" } as const;
const AT = Date.parse("2025-03-04T05:06:07.089Z");

export function jobIdOf(number: number): string {
  return `0195600a-1111-7000-8000-${String(number).padStart(12, "0")}`;
}

export function pending(step: string, changes: Partial<StepRecord> = {}): StepRecord {
  return {
    step,
    state: "pending",
    because: null,
    attempt: 0,
    generation: 0,
    runId: null,
    commandPrint: null,
    inputPrint: null,
    startedAt: null,
    endedAt: null,
    exitCode: null,
    signal: null,
    detail: null,
    ...changes,
  };
}

export function running(step: string, attempt = 1): StepRecord {
  const prints = { commandPrint: "c".repeat(64), inputPrint: "1".repeat(64) };
  return pending(step, { state: "running", attempt, startedAt: AT, ...prints });
}

export function done(step: string, attempt = 1): StepRecord {
  const end = { state: "done", because: "exited", endedAt: AT + 1000, exitCode: 0 } as const;
  return { ...running(step, attempt), ...end };
}

export function failed(step: string, attempt = 1): StepRecord {
  const end = { state: "failed", because: "exited", endedAt: AT + 1000, exitCode: 3 } as const;
  return { ...running(step, attempt), ...end };
}

/** Two of each step: a file and a directory. */
export function artifactsOf(step: string): ArtifactRecord[] {
  return [
    { step, path: `out/${step}`, kind: "file", bytes: 5_000_000_000, sha256: "a".repeat(64) },
    { step, path: `out/${step}.d`, kind: "directory", bytes: 0, sha256: "b".repeat(64) },
  ];
}

export function newJob(steps: readonly string[], changes: Partial<NewJob> = {}): NewJob {
  return {
    jobId: JOB_ID,
    name: "nightly",
    file: "/srv/nightly.yaml",
    directory: "/srv",
    createdAt: AT,
    steps: steps.map((step) => ({ record: pending(step), sideEffects: "none" as const })),
    ...changes,
  };
}

/** The store of run NUMBER, which has the lease of the job with that generation. */
export function openJobStore(
  state: string,
  number = 1,
  changes: Partial<JobStoreParts> = {},
): { readonly store: JobStore; readonly told: readonly string[] } {
  const told: string[] = [];
  const owner = { runId: runId(number), generation: number, leases: [lease("nightly", number)] };
  const tell = (line: string): void => void told.push(line);
  const store = new JobStore({ stateDirectory: state, tell, ...owner, ...changes });
  return { store, told };
}

/** Throws where it was not. */
export async function written(result: Promise<{ readonly kind: string }>): Promise<void> {
  const found = await result;
  if (found.kind !== "written") throw new Error(`found ${JSON.stringify(found)}`);
}

/** A job of run 1 that is begun, and of which these steps are done. */
export async function beginJob(
  state: string,
  steps: readonly string[],
  doneSteps: readonly string[] = [],
): Promise<JobStore> {
  const { store } = openJobStore(state);
  await written(store.begin(newJob(steps)));
  for (const step of doneSteps) {
    await written(store.startStep(running(step)));
    await written(store.completeStep(done(step), artifactsOf(step)));
  }
  return store;
}

/** A job of run 1 of which `a` is done and `b` runs. @returns the state, which nobody has open */
export async function leaveJob(state: string): Promise<string> {
  const store = await beginJob(state, ["a", "b"], ["a"]);
  await written(store.startStep(running("b")));
  store.close();
  return state;
}

/** The newest job as those who ask see it; throws where there is none. */
export function jobOf(state: string, name = "nightly"): StoredJob {
  const answer = readNewestJob(state, name);
  if (answer.kind === "read" && answer.value !== undefined) return answer.value;
  throw new Error(`found ${JSON.stringify(answer)}`);
}

export function recall(state: string, name = "nightly"): Promise<JobRecall> {
  return recallJob(state, name, 0);
}

/** `step state attempt`, in the order of the file. */
export function statesOf(state: string): string[] {
  return jobOf(state).record.steps.map(
    ({ step, state: is, attempt }) => `${step} ${is} ${attempt}`,
  );
}

/** What no moment of any run may leave: a step that is done in part. */
export function partsOf({ record, attempts }: StoredJob): string[] {
  return record.steps.flatMap(({ step, state, attempt }) => {
    const left = record.artifacts.filter((one) => one.step === step);
    const last = attempts.find((one) => one.step === step && one.attempt === attempt);
    const expected = state === "done" ? artifactsOf(step).length : 0;
    const isWhole = left.length === expected && (attempt === 0 || last !== undefined);
    return isWhole ? [] : [`${step} is ${state} with ${left.length} artifacts`];
  });
}

const PROGRAM = join(import.meta.dir, "job-program.ts");

export interface StartedProgram {
  readonly pid: number;
  readonly ended: Promise<Ended>;
}

/** A process of its own (job-program.ts). */
export function startJobProgram(
  words: readonly string[],
  { env = {}, under = [] }: Surroundings = {},
): StartedProgram {
  const child = Bun.spawn([...under, process.execPath, PROGRAM, ...words], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const readAll = async (): Promise<Ended> => {
    const [text, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    await child.exited;
    const lines = text.split("\n").filter((line) => line !== "");
    return { status: child.exitCode, signal: child.signalCode, lines, stderr };
  };
  return { pid: child.pid, ended: readAll() };
}

export function runJobProgram(
  words: readonly string[],
  surroundings: Surroundings = {},
): Promise<Ended> {
  return startJobProgram(words, surroundings).ended;
}
