/** A store for jobs of many steps, in memory, that refuses what the journal refuses. */
import type { EarlierStep } from "../../src/core/job-facts.ts";
import type { PlannedStep } from "../../src/core/job-plan.ts";
import type { SideEffects, StepSpec } from "../../src/core/job-spec.ts";
import type { ArtifactRecord, JobRecord, StepRecord } from "../../src/core/step-record.ts";
import { known, record } from "./job-specs.ts";
import { Broken } from "./job-world.ts";

/** The journal: each call is one transaction. */
export class JobStore {
  job: JobRecord | undefined;
  readonly startedAs = new Map<string, SideEffects>();
  readonly earlier = new Map<string, EarlierStep>();

  begin(steps: readonly PlannedStep[]): void {
    this.startedAs.clear();
    const artifacts = steps.flatMap((step) => step.artifacts ?? []);
    this.job = known(
      steps.map((step) => step.record),
      artifacts,
    );
    this.#rememberDone();
  }

  change(steps: readonly PlannedStep[]): void {
    for (const step of steps) this.write(step.record, step.artifacts);
  }

  start(step: StepSpec, next: StepRecord): void {
    const state = this.recordOf(step.name).state;
    if (!["pending", "interrupted", "failed"].includes(state)) {
      throw new Broken(`${step.name} is started while it is ${state}`);
    }
    this.startedAs.set(step.name, step.sideEffects);
    this.write(next, undefined);
  }

  /** Artifacts are there exactly for steps that are done. */
  write(next: StepRecord, artifacts: readonly ArtifactRecord[] | undefined): void {
    const job = this.#job();
    const others = job.artifacts.filter(({ step }) => step !== next.step);
    const kept = artifacts ?? job.artifacts.filter(({ step }) => step === next.step);
    this.job = {
      ...job,
      steps: job.steps.map((each) => (each.step === next.step ? next : each)),
      artifacts: next.state === "done" ? [...others, ...kept] : others,
    };
    this.#rememberDone();
  }

  finish(state: JobRecord["state"]): void {
    this.job = { ...this.#job(), state };
  }

  recordOf(name: string): StepRecord {
    return this.#job().steps.find(({ step }) => step === name) ?? record(name);
  }

  #job(): JobRecord {
    if (this.job === undefined) throw new Broken("a step is written before its job");
    return this.job;
  }

  #rememberDone(): void {
    const { steps, artifacts } = this.#job();
    for (const each of steps) {
      if (each.state !== "done") continue;
      const of = artifacts.filter(({ step }) => step === each.step);
      this.earlier.set(each.step, { record: each, artifacts: of });
    }
  }
}
