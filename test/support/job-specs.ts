/** Jobs of many steps for tests of core/: only what a test speaks of is written there. */
import type { AskedOfJob } from "../../src/core/job-asked.ts";
import { NOTHING_ASKED } from "../../src/core/job-asked.ts";
import type { ArtifactSpec, JobSpec, StepSpec } from "../../src/core/job-spec.ts";
import type { ArtifactRecord, JobRecord, StepRecord } from "../../src/core/step-record.ts";

export const DIRECTORY = "/srv/job";
export const FILE = "/srv/job/nightly.yaml";

export function step(name: string, more: Partial<StepSpec> = {}): StepSpec {
  return {
    name,
    command: { kind: "shell", text: `make ${name}` },
    needs: [],
    timeoutMs: undefined,
    killAfterMs: 5_000,
    backoff: { initialMs: 1, capMs: 1, factor: 1, maxAttempts: 1, maxElapsedMs: 1_000_000 },
    inputs: undefined,
    artifacts: [],
    sideEffects: "none",
    settle: undefined,
    env: new Map(),
    cwd: undefined,
    runOptions: new Map(),
    ...more,
  };
}

export function artifact(path: string, more: Partial<ArtifactSpec> = {}): ArtifactSpec {
  return { path, minBytes: 1, isAnyAge: false, ...more };
}

export function jobOf(steps: readonly StepSpec[], more: Partial<JobSpec> = {}): JobSpec {
  return { name: "nightly", file: FILE, directory: DIRECTORY, maxParallel: 1, steps, ...more };
}

export function record(name: string, more: Partial<StepRecord> = {}): StepRecord {
  return {
    step: name,
    state: "pending",
    because: null,
    attempt: 0,
    generation: 4,
    runId: "run-4",
    commandPrint: null,
    inputPrint: null,
    startedAt: null,
    endedAt: null,
    exitCode: null,
    signal: null,
    detail: null,
    ...more,
  };
}

/** As a step leaves one. */
export function left(name: string, path: string, sha256 = "aa"): ArtifactRecord {
  return { step: name, path, kind: "file", bytes: 10, sha256 };
}

export function known(
  steps: readonly StepRecord[],
  artifacts: readonly ArtifactRecord[] = [],
  more: Partial<JobRecord> = {},
): JobRecord {
  return {
    jobId: "job-1",
    name: "nightly",
    file: FILE,
    directory: DIRECTORY,
    state: "running",
    runId: "run-4",
    generation: 4,
    createdAt: 1_000,
    updatedAt: 2_000,
    endedAt: null,
    steps,
    artifacts,
    ...more,
  };
}

export function ask(more: Partial<AskedOfJob> = {}): AskedOfJob {
  return { ...NOTHING_ASKED, ...more };
}
