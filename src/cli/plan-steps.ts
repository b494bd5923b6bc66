/**
 * The steps of a plan as a person is told of them: what was decided of each, within what was asked,
 * and which of them something before them keeps from being begun. Pure.
 *
 * Always: nothing is said to run that waits for a step which no run of the job would bring to its
 * end.
 */

import type { AskedOfJob } from "../core/job-asked.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import type { StepSpec } from "../core/job-spec.ts";

export interface ToldStep extends Omit<PlannedStep, "todo"> {
  /** `blocked`: what it needs has failed by a person's word, or waits for one. */
  readonly todo: PlannedStep["todo"] | "blocked";
  /** What blocks it in the end, at most three; empty but for `blocked`. */
  readonly blockedBy: readonly string[];
}

/** As `job status` names them. */
const MOST_BLOCKING = 3;

/**
 * With `--only` nothing but that step is begun, whatever would have to be done about the others;
 * and nothing is removed of a step that leaves nothing.
 * @param planned  each step behind all that it needs
 */
export function stepsToTell(
  planned: readonly PlannedStep[],
  steps: readonly Pick<StepSpec, "name" | "artifacts" | "needs">[],
  { only }: Pick<AskedOfJob, "only">,
): readonly ToldStep[] {
  const specs = new Map(steps.map((step) => [step.name, step]));
  const told = new Map<string, ToldStep>();
  for (const step of planned) {
    const { step: name } = step.record;
    const { needs = [], artifacts = [] } = specs.get(name) ?? {};
    const removesArtifacts = step.removesArtifacts && artifacts.length > 0;
    const isBegun = step.todo !== "run" || only === undefined || name === only;
    const blocking = new Set(needs.flatMap((need) => listBlocking(told.get(need))));
    const isBlocked = step.todo === "run" && isBegun && blocking.size > 0;
    const begun = isBegun ? step.todo : "nothing";
    const todo = isBlocked ? "blocked" : begun;
    const blockedBy = isBlocked ? [...blocking].slice(0, MOST_BLOCKING) : [];
    told.set(name, { ...step, todo, removesArtifacts, blockedBy });
  }
  return [...told.values()];
}

/** A step that is asked by its settle command may come to its end. */
function listBlocking(need: ToldStep | undefined): readonly string[] {
  if (need === undefined || need.todo === "run" || need.todo === "settle") return [];
  if (need.todo === "blocked") return need.blockedBy;
  return need.todo === "nothing" && need.record.state === "done" ? [] : [need.record.step];
}
