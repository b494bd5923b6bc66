/**
 * Looks at what must be known of the steps of a job before it is decided how it begins or goes on:
 * whether artifacts are what they were, what steps do and read today. Decides nothing
 * (core/job-resume.ts).
 *
 * Always: what cannot be looked at is told as such, and never taken for unchanged. Reads only.
 * Clock: none.
 */
import type { Hashing } from "../core/artifact.ts";
import {
  type EarlierStep,
  type InputPrint,
  isBeginning,
  type JobFacts,
  listLooks,
  type StepFacts,
  type StepLook,
  type VerifiedArtifacts,
} from "../core/job-facts.ts";
import type { JobSpec, StepSpec } from "../core/job-spec.ts";
import { gatherArtifacts, type StepArtifacts } from "../core/step-outcome.ts";
import type { ArtifactRecord } from "../core/step-record.ts";
import type { ArtifactHandle } from "./artifact-handle.ts";
import { fingerprintCommand, fingerprintInputs, namedEnvironment } from "./fingerprint.ts";

export interface GatherParts {
  readonly artifacts: ArtifactHandle;
  /** Of whoever has started the job. */
  readonly caller: Readonly<Record<string, string | undefined>>;
}

/** @param earlier  of an earlier job that was done, by the names of its steps */
export async function gatherFacts(
  job: JobFacts,
  earlier: ReadonlyMap<string, EarlierStep>,
  parts: GatherParts,
): Promise<ReadonlyMap<string, StepFacts>> {
  const looks = listLooks(job, earlier);
  const left = artifactsOf(job, earlier);
  const facts = new Map<string, StepFacts>();
  for (const step of job.spec.steps) {
    const look = looks.get(step.name);
    const last = earlier.get(step.name);
    if (look !== undefined)
      facts.set(step.name, await lookAtStep(job.spec, step, { look, left, last, parts }));
  }
  return facts;
}

/** What steps have left in the job that is gone on with, or in the last one where one is begun. */
function artifactsOf(
  job: JobFacts,
  earlier: ReadonlyMap<string, EarlierStep>,
): ReadonlyMap<string, readonly ArtifactRecord[]> {
  if (!isBeginning(job)) return Map.groupBy(job.known?.artifacts ?? [], ({ step }) => step);
  return new Map([...earlier].map(([name, { artifacts }]) => [name, artifacts]));
}

interface Looking {
  readonly look: StepLook;
  readonly left: ReadonlyMap<string, readonly ArtifactRecord[]>;
  readonly last: EarlierStep | undefined;
  readonly parts: GatherParts;
}

async function lookAtStep(spec: JobSpec, step: StepSpec, looking: Looking): Promise<StepFacts> {
  const { look, left, last, parts } = looking;
  const { directory } = spec;
  const needs = step.needs.flatMap((need) => left.get(need) ?? []);
  return {
    commandPrint: fingerprintCommand(step),
    inputPrint: look.wantsInputs ? await printInputs(directory, step, needs, parts) : UNDECLARED,
    verified: await verify(directory, look.verifies, parts.artifacts),
    present: look.wantsPresent ? await findPresent(directory, step, parts.artifacts) : undefined,
    earlier: last,
  };
}

const UNDECLARED: InputPrint = { kind: "undeclared" };

/**
 * What the step reads, as it is now.
 *
 * @param needs  what the steps that it needs have left
 */
export async function printInputs(
  directory: string,
  step: StepSpec,
  needs: readonly ArtifactRecord[],
  { artifacts, caller }: GatherParts,
): Promise<InputPrint> {
  if (step.inputs === undefined) return UNDECLARED;
  const inputs: Hashing[] = [];
  for (const path of step.inputs) inputs.push(await artifacts.hash(directory, path));
  const environment = namedEnvironment(step.env, caller);
  const print = fingerprintInputs({ inputs, environment, needs });
  if (print.kind === "known") return print;
  if (print.kind === "missing") return { ...print, detail: print.path };
  return { kind: "unread", detail: `${print.path}: ${print.reason}` };
}

async function verify(
  directory: string,
  records: readonly ArtifactRecord[],
  artifacts: ArtifactHandle,
): Promise<VerifiedArtifacts> {
  if (records.length === 0) return { kind: "same" };
  const checks = await artifacts.verify(directory, records);
  const other = checks.find(({ kind }) => kind !== "same");
  if (other === undefined) return { kind: "same" };
  return { kind: "other", detail: `${other.path}: ${other.detail ?? other.kind}` };
}

/**
 * The artifacts of a step that is called done by somebody else than its own command: they must be
 * there, of whatever age.
 */
export async function findPresent(
  directory: string,
  step: StepSpec,
  artifacts: ArtifactHandle,
): Promise<StepArtifacts> {
  const specs = step.artifacts.map((spec) => ({ ...spec, isAnyAge: true }));
  return gatherArtifacts(step.name, await artifacts.check(directory, specs, []));
}
