/**
 * One attempt of a step, from what must be known before it starts to what it has left:
 * fingerprints, the removal of partial artifacts, a look at the others, the command, the hashes.
 * Writes nothing into the journal and decides nothing.
 *
 * Always: nothing of an earlier attempt is left among its artifacts when the command starts; what
 * it has left is hashed when its tree is gone. State after a crash: the journal says that it runs.
 */
import type { ArtifactSight } from "../core/artifact.ts";
import type { StepSpec } from "../core/job-spec.ts";
import { nameSignal } from "../core/signals.ts";
import { gatherArtifacts, type StepArtifacts } from "../core/step-outcome.ts";
import type { ArtifactRecord, StepRecord } from "../core/step-record.ts";
import { wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { fingerprintCommand } from "./fingerprint.ts";
import { type GatherParts, printInputs } from "./gather.ts";
import { runStep, type StepRunEnd, type StepRunRequest } from "./step-run.ts";

export interface AttemptParts extends GatherParts {
  /** The job's, absolute. */
  readonly directory: string;
  readonly run: { readonly runId: string; readonly generation: number };
}

export interface Prepared {
  readonly kind: "prepared";
  readonly step: StepSpec;
  /** As it is to be written before the command is started. */
  readonly record: StepRecord;
  readonly before: readonly ArtifactSight[];
  /** The path of an input that is not there; undefined: all are, or none is declared. */
  readonly missing: string | undefined;
}

export interface Unprepared {
  readonly kind: "unprepared";
  readonly path: string;
  readonly reason: string;
}

export interface Preparing {
  readonly step: StepSpec;
  /** Its last state. */
  readonly record: StepRecord;
  readonly removesArtifacts: boolean;
  /** What the steps that it needs have left. */
  readonly needs: readonly ArtifactRecord[];
}

/** Everything before the transaction that says that it runs. */
export async function prepareAttempt(
  { step, record, removesArtifacts, needs }: Preparing,
  parts: AttemptParts,
): Promise<Prepared | Unprepared> {
  const { directory, artifacts, run } = parts;
  const paths = step.artifacts.map(({ path }) => path);
  if (removesArtifacts && paths.length > 0) {
    const removals = await artifacts.remove(directory, paths);
    const refused = removals.find(({ kind }) => kind === "refused");
    if (refused !== undefined) {
      return { kind: "unprepared", path: refused.path, reason: refused.reason ?? "not removed" };
    }
  }
  const inputPrint = await printInputs(directory, step, needs, parts);
  const before = paths.length === 0 ? [] : await artifacts.look(directory, step.artifacts);
  const started: StepRecord = {
    ...record,
    ...run,
    state: "running",
    because: null,
    attempt: record.attempt + 1,
    commandPrint: fingerprintCommand(step),
    inputPrint: "print" in inputPrint ? inputPrint.print : null,
    startedAt: wallNow(),
    endedAt: null,
    exitCode: null,
    signal: null,
    detail: null,
  };
  const missing = inputPrint.kind === "missing" ? inputPrint.detail : undefined;
  return { kind: "prepared", step, record: started, before, missing };
}

export interface EndedAttempt extends StepRunEnd {
  readonly step: StepSpec;
  /** With its end: the state is still `running`. */
  readonly record: StepRecord;
  /** Undefined: nobody looked, because its command did not call its work good. */
  readonly artifacts: StepArtifacts | undefined;
}

/** From the spawn, which is over when this returns, to the hashes. Never rejects but by a fault. */
export async function carryOut(
  { step, record, before }: Prepared,
  request: Omit<StepRunRequest, "step" | "attempt">,
  parts: AttemptParts,
): Promise<EndedAttempt> {
  const state = { step: step.name, attempt: record.attempt, generation: record.generation };
  const running = runStep({ ...request, step, attempt: record.attempt });
  faultPoint("step.spawned", state);
  const ended = await running;
  faultPoint("step.command-ended", { ...state, end: ended.end });
  const { end } = ended;
  const isGood = end.kind === "exited" && end.code === 0;
  const artifacts = isGood ? await hashAll(step, before, parts) : undefined;
  if (isGood) faultPoint("step.hashed", { ...state, artifacts: artifacts?.kind });
  const told: StepRecord = {
    ...record,
    endedAt: wallNow(),
    exitCode: statusIn(end),
    signal: end.kind === "signaled" ? nameSignal(end.signal) : null,
  };
  return { ...ended, step, record: told, artifacts };
}

function statusIn(end: StepRunEnd["end"]): number | null {
  if (end.kind === "exited") return end.code;
  return end.kind === "run-failed" || end.kind === "run-stopped" ? end.status : null;
}

async function hashAll(
  { name, artifacts: specs }: StepSpec,
  before: readonly ArtifactSight[],
  { artifacts, directory }: AttemptParts,
): Promise<StepArtifacts> {
  if (specs.length === 0) return { kind: "good", artifacts: [] };
  return gatherArtifacts(name, await artifacts.check(directory, specs, before));
}
