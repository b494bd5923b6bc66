/**
 * What the journal knows of the steps of a job, for whoever asks about the run that had it last: a
 * run that was killed has told nobody which of them it was at.
 *
 * Always: read only. Clock: none. State after a crash: none.
 */
import { type CountedSteps, describeCount } from "../core/run-explanation.ts";
import type { JobRecord, StepState } from "../core/step-record.ts";
import { readNewestJob } from "../journal/job-queries.ts";
import { ownLine } from "../os/own-line.ts";

type Evidence = readonly [label: string, text: string];

export interface AskedRun {
  readonly job: string;
  readonly runId: string;
}

/**
 * @param isGoingOn  its watchdog lives
 * @returns undefined: the run had no job of many steps, another one has it now, or nobody can
 *   read it
 */
export function explainSteps(
  stateDirectory: string,
  { job, runId }: AskedRun,
  isGoingOn: boolean,
): readonly Evidence[] | undefined {
  const found = readNewestJob(stateDirectory, job);
  const record = found.kind === "read" ? found.value?.record : undefined;
  if (record?.runId !== runId) return undefined;
  const steps: Evidence = ["steps", describeCount(countSteps(record, isGoingOn))];
  const words = ownLine(["job", "status", record.file]);
  const isOpen = record.state !== "done" && words !== undefined;
  return isOpen ? [steps, ["to go on", words]] : [steps];
}

function countSteps({ steps }: JobRecord, isGoingOn: boolean): CountedSteps {
  const named = (...states: readonly StepState[]): string[] =>
    steps.filter(({ state }) => states.includes(state)).map(({ step }) => step);
  return {
    total: steps.length,
    done: named("done").length,
    failed: named("failed"),
    unknown: named("unknown"),
    interrupted: isGoingOn ? named("interrupted") : named("interrupted", "running"),
    running: isGoingOn ? named("running") : [],
  };
}
