/**
 * How a job is begun: what an earlier one of its name has done is taken over where nothing of it
 * has changed, and everything else runs. Pure.
 *
 * Always: nothing is taken over that needs a step which runs in this job, whose artifacts nobody
 * has looked at, or that a person wants to run again.
 */
import { listRedone, listTakenOver, type ResumeFacts } from "./job-facts.ts";
import {
  findChange,
  firstRecord,
  Plan,
  type PlannedStep,
  type PlanReason,
  UNTOUCHED,
} from "./job-plan.ts";
import type { StepSpec } from "./job-spec.ts";
import type { ArtifactRecord } from "./step-record.ts";

export class BeginningPlan extends Plan {
  readonly #redone: ReadonlySet<string>;
  readonly #taken: ReadonlySet<string>;

  /** @param ordered  each step behind all that it needs */
  constructor(facts: ResumeFacts, ordered: readonly StepSpec[]) {
    super(facts);
    this.#redone = listRedone(facts.spec, facts.asked);
    this.#taken = listTakenOver(facts.spec, facts.asked);
    for (const step of ordered) this.steps.set(step.name, this.#plan(step));
  }

  #plan(step: StepSpec): PlannedStep {
    const { name } = step;
    const facts = this.factsOf(step);
    const { earlier } = facts;
    if (this.#redone.has(name)) return this.#run(step, "asked");
    if (earlier === undefined) return this.#run(step, "never-done");
    if (this.isOpen(step)) return this.#run(step, "needs-changed");
    const change = findChange(step, earlier.record, earlier.artifacts, facts);
    if (change !== undefined) return this.#run(step, change.because, change.detail);
    const isTaken = this.#taken.has(name);
    if (facts.inputPrint.kind === "missing" && !isTaken) {
      return this.#run(step, "input-missing", facts.inputPrint.detail);
    }
    const isKnown = facts.inputPrint.kind === "known" && earlier.record.inputPrint !== null;
    if (!isKnown && !isTaken) return this.#run(step, "inputs-undeclared");
    return this.#take(step, isKnown ? "unchanged" : "asked", earlier.artifacts);
  }

  #run(step: StepSpec, because: PlanReason, detail: string | null = null): PlannedStep {
    const record = this.write(firstRecord(step.name), { detail });
    return { ...UNTOUCHED, record, because, isChanged: true, todo: "run" };
  }

  #take(
    step: StepSpec,
    because: "unchanged" | "asked",
    artifacts: readonly ArtifactRecord[],
  ): PlannedStep {
    const { commandPrint, inputPrint } = this.factsOf(step);
    const record = this.write(firstRecord(step.name), {
      state: "done",
      because,
      commandPrint,
      inputPrint: inputPrint.kind === "known" ? inputPrint.print : null,
    });
    return { ...UNTOUCHED, record, because, isChanged: true, artifacts };
  }
}
