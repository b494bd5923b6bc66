/**
 * What the file of a job names and a step would look for in vain: inputs and directories that are
 * not there, unless a step before may still make them. Pure; what is there is the caller's to see.
 */
import { ArtifactOwners, pathWithin } from "./artifact-owners.ts";
import { dependentsOf } from "./job-graph.ts";
import type { JobSpec, StepSpec } from "./job-spec.ts";

export interface Sights {
  readonly isInputMissing: (path: string) => boolean;
  /** Where the step works. */
  readonly isDirectoryMissing: (step: StepSpec) => boolean;
  /** Of a step that writes what is missing: it will run, or has not run yet. */
  readonly willWrite: (step: StepSpec) => boolean;
  /** Of one that is needed: it will run, and its command may make a directory. */
  readonly willRun: (step: StepSpec) => boolean;
}

export interface MissingOfStep {
  readonly step: StepSpec;
  /** Undefined: the directory where it works. */
  readonly input: string | undefined;
}

/**
 * Who writes an input is needed by whoever reads it (core/job-check.ts). Of a directory nobody need
 * say in the file who makes it: any step before may.
 */
export function listMissing(
  { steps, directory }: JobSpec,
  { isInputMissing, isDirectoryMissing, willWrite, willRun }: Sights,
): readonly MissingOfStep[] {
  const owners = new ArtifactOwners(steps);
  const running = steps.filter(willRun).map(({ name }) => name);
  const served = dependentsOf(steps, running);
  return steps.flatMap((step): MissingOfStep[] => {
    const inputs = (step.inputs ?? []).filter((input) => {
      if (!isInputMissing(input)) return false;
      return owners.writersOf(pathWithin(directory, input)).find(willWrite) === undefined;
    });
    const isPlaceMissing = !served.has(step.name) && isDirectoryMissing(step);
    return [
      ...(isPlaceMissing ? [{ step, input: undefined }] : []),
      ...inputs.map((input) => ({ step, input })),
    ];
  });
}
