/**
 * What the runner of a job is told by the watchdog around it: the job as its file was read, what a
 * person asks of it, and how much is to be said. Plain data, and its text between two processes of
 * the same program.
 */
import type { AcceptedAs, AskedOfJob } from "./job-asked.ts";
import type { JobSpec, StepSpec } from "./job-spec.ts";

/** The word by which the runner is started. */
export const JOB_COMMAND = "__job";
/**
 * The same for a step that has options of `watchdog run`: a run that hears of no `[run]` and no
 * `[jobs]` of a configuration, because what these say is of the whole job.
 */
export const STEP_COMMAND = "__step";

export interface JobOrder {
  readonly spec: JobSpec;
  readonly asked: AskedOfJob;
  readonly maxParallel: number;
  /** By the names of steps that have options of `watchdog run`: those words of it. */
  readonly runWords: ReadonlyMap<string, readonly string[]>;
  /**
   * Words of `watchdog run` that each nested run has from the job: where it looks, what it hides.
   */
  readonly nestedWords: readonly string[];
  /** `--mask` of the job: sources of regular expressions. */
  readonly masks: readonly string[];
  /** `all`: each step that begins and ends; `news`: what a person should know. */
  readonly tells: "all" | "news";
  /** Of the line of the job: what a command that is printed needs to look into the same place. */
  readonly place: readonly string[];
}

interface StepText extends Omit<StepSpec, "env" | "runOptions"> {
  readonly env: readonly (readonly [string, string | null])[];
  readonly runOptions: readonly (readonly [string, readonly string[]])[];
}

interface OrderText extends Omit<JobOrder, "spec" | "asked" | "runWords"> {
  readonly spec: Omit<JobSpec, "steps"> & { readonly steps: readonly StepText[] };
  readonly asked: Omit<AskedOfJob, "accepted"> & {
    readonly accepted: readonly (readonly [string, AcceptedAs])[];
  };
  readonly runWords: readonly (readonly [string, readonly string[]])[];
}

/** `NAME=value` of what the job file gives to steps: a mask finds out which are secrets. */
export function listStepEnvironment({ steps }: JobSpec): readonly string[] {
  const entries = steps.flatMap(({ env }) =>
    [...env].flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`])),
  );
  return [...new Set(entries)];
}

export function renderJobOrder(order: JobOrder): string {
  const { spec, asked, runWords } = order;
  const steps = spec.steps.map((step) => {
    return { ...step, env: [...step.env], runOptions: [...step.runOptions] };
  });
  const text: OrderText = {
    ...order,
    spec: { ...spec, steps },
    asked: { ...asked, accepted: [...asked.accepted] },
    runWords: [...runWords],
  };
  return JSON.stringify(text);
}

/** @param text  of `renderJobOrder`, by the same program @throws SyntaxError */
export function parseJobOrder(text: string): JobOrder {
  const { spec, asked, runWords, ...rest }: OrderText = JSON.parse(text);
  const steps = spec.steps.map((step): StepSpec => {
    return { ...step, env: new Map(step.env), runOptions: new Map(step.runOptions) };
  });
  return {
    ...rest,
    spec: { ...spec, steps },
    asked: { ...asked, accepted: new Map(asked.accepted) },
    runWords: new Map(runWords),
  };
}
