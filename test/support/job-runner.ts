/**
 * Runs a job as its runner would, with the decisions of core/: against a world of its own
 * (job-world.ts) and a store that keeps whole transactions. It can be killed between any two things
 * that it does.
 */
import type { AskedOfJob } from "../../src/core/job-asked.ts";
import {
  type InputPrint,
  listLooks,
  type ResumeFacts,
  type StepFacts,
  type StepLook,
} from "../../src/core/job-facts.ts";
import { orderSteps } from "../../src/core/job-graph.ts";
import {
  beginProgress,
  decideNextSteps,
  type JobEvent,
  type JobProgress,
  noteEvent,
} from "../../src/core/job-next.ts";
import type { PlannedStep } from "../../src/core/job-plan.ts";
import { decideResume, type ResumeDecision } from "../../src/core/job-resume.ts";
import { decideSettled, decideUnclear, readSettleEnd } from "../../src/core/job-settle.ts";
import type { JobSpec, StepSpec } from "../../src/core/job-spec.ts";
import {
  decideNotHappened,
  decideStepEnd,
  type EndedStep,
  type StepArtifacts,
  type StepEnd,
} from "../../src/core/step-outcome.ts";
import type { StepRecord } from "../../src/core/step-record.ts";
import type { MonotonicAt } from "../../src/core/time.ts";
import type { JobStore } from "./job-store.ts";
import { Broken, type Dice, type JobWorld } from "./job-world.ts";

export class Killed extends Error {}

export interface Chances {
  /** Of the runner, at each place between two things that it does. */
  readonly kill: number;
  /** Of somebody who asks for the end. */
  readonly stop: number;
  /** Of a command that is killed alone. */
  readonly commandKilled: number;
}

export const QUIET: Chances = { kill: 0, stop: 0, commandKilled: 0 };

export interface Setting {
  readonly spec: JobSpec;
  readonly world: JobWorld;
  readonly store: JobStore;
  readonly dice: Dice;
  readonly chances: Chances;
  readonly run: { readonly runId: string; readonly generation: number };
}

export type RunEnd =
  | { readonly kind: "refused"; readonly decision: Extract<ResumeDecision, { kind: "refused" }> }
  | { readonly kind: "finished"; readonly exitStatus: number; readonly started: readonly string[] };

/** A step that runs: where it is. */
interface Course {
  phase: "remove" | "start" | "spawn" | "runs" | "ended" | "waits";
  record: StepRecord;
  attempts: EndedStep["attempts"];
  end: StepEnd | undefined;
  removes: boolean;
}

/** @throws Killed  as by SIGKILL: the store keeps what was written, and no command lives on */
export function runJob(setting: Setting, asked: AskedOfJob): RunEnd {
  try {
    return new Runner(setting).run(asked);
  } catch (error) {
    if (error instanceof Killed) setting.world.killAll(setting.dice);
    throw error;
  }
}

class Runner {
  readonly #setting: Setting;
  readonly #courses = new Map<string, Course>();
  readonly #started: string[] = [];
  #progress: JobProgress | undefined;
  #planned: ReadonlyMap<string, PlannedStep> = new Map();

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  #point(): void {
    if (this.#setting.dice() < this.#setting.chances.kill) throw new Killed();
  }

  run(asked: AskedOfJob): RunEnd {
    const { spec, store } = this.#setting;
    const decision = decideResume(this.#gather(asked));
    if (decision.kind === "refused") return { kind: "refused", decision };
    this.#point();
    if (decision.kind === "begin") {
      this.#setting.world.forget();
      store.begin(decision.steps);
    } else store.change(decision.steps.filter((step) => step.isChanged));
    this.#point();
    this.#planned = new Map(
      decision.steps.map((step) => [step.record.step, this.#settleFirst(step)]),
    );
    const order = orderSteps(spec.steps);
    if (order.kind === "cycle") throw new Broken("a cycle");
    const records = new Map([...this.#planned].map(([name, step]) => [name, step.record]));
    const isDoubted = decision.steps.some(
      ({ record, changed }) => record.state === "done" && changed !== undefined,
    );
    this.#progress = beginProgress(order.steps, records, { only: asked.only, isDoubted });
    return this.#loop();
  }

  #gather(asked: AskedOfJob): ResumeFacts {
    const { spec, store, run } = this.#setting;
    const job = { spec, known: store.job, asked };
    const looks = listLooks(job, store.earlier);
    const facts = new Map(spec.steps.map((step) => [step.name, this.#look(step, looks)]));
    return { ...job, facts, startedAs: store.startedAs, run };
  }

  #look(step: StepSpec, looks: ReadonlyMap<string, StepLook>): StepFacts {
    const { world, store } = this.#setting;
    const look = looks.get(step.name);
    const other = look?.verifies.find(({ path, sha256 }) => world.files.get(path) !== sha256);
    return {
      commandPrint: commandPrintOf(step),
      inputPrint: look?.wantsInputs === true ? this.#inputPrint(step) : { kind: "undeclared" },
      verified: other === undefined ? { kind: "same" } : { kind: "other", detail: other.path },
      present: look?.wantsPresent === true ? this.#artifacts(step) : undefined,
      earlier: store.earlier.get(step.name),
    };
  }

  #inputPrint(step: StepSpec): InputPrint {
    if (step.inputs === undefined) return { kind: "undeclared" };
    const { world } = this.#setting;
    const needed = step.needs.flatMap((need) => world.step(need).artifacts);
    const read = [...step.inputs, ...needed.map(({ path }) => path)];
    const print = JSON.stringify(read.map((path) => world.files.get(path) ?? null));
    return { kind: "known", print: Bun.hash(print).toString(36) };
  }

  #artifacts(step: StepSpec): StepArtifacts {
    const { files } = this.#setting.world;
    const missing = step.artifacts.find(({ path }) => !files.has(path));
    if (missing !== undefined) {
      return { kind: "bad", because: "artifact-missing", detail: missing.path };
    }
    const artifacts = step.artifacts.map(({ path }) => {
      const sha256 = files.get(path) ?? "";
      return { step: step.name, path, kind: "file" as const, bytes: sha256.length, sha256 };
    });
    return { kind: "good", artifacts };
  }

  #settleFirst(planned: PlannedStep): PlannedStep {
    if (planned.todo !== "settle") return planned;
    this.#point();
    const settled = this.#settle(planned);
    this.#point();
    this.#setting.store.write(settled.record, settled.artifacts);
    this.#point();
    return settled;
  }

  #settle(planned: PlannedStep): PlannedStep {
    const { world } = this.#setting;
    const { step: name } = planned.record;
    const kind = readSettleEnd({ kind: "exited", code: world.settle(name) });
    if (kind === "unclear") return decideSettled(planned, { kind, detail: "7" });
    if (kind === "not-happened") return decideSettled(planned, { kind });
    return decideSettled(planned, { kind, artifacts: this.#artifacts(world.step(name)) });
  }

  #loop(): RunEnd {
    const { spec, store, dice, chances } = this.#setting;
    for (;;) {
      if (dice() < chances.stop) this.#note({ kind: "stop-asked", signal: 15 });
      const next = decideNextSteps(this.#now(), spec.maxParallel);
      if (next.kind === "finish") {
        this.#point();
        store.finish(next.state);
        this.#point();
        return { kind: "finished", exitStatus: next.exitStatus, started: this.#started };
      }
      if (next.kind === "start") {
        this.#progress = next.progress;
        for (const name of next.steps) this.#begin(name);
      }
      const running = [...this.#courses.keys()];
      const name = running[Math.floor(dice() * running.length)];
      if (name === undefined) throw new Broken("nothing runs, and the job does not end");
      this.#advance(name);
    }
  }

  #now(): JobProgress {
    if (this.#progress === undefined) throw new Broken("no progress");
    return this.#progress;
  }

  #note(event: JobEvent): void {
    this.#progress = noteEvent(this.#now(), event);
    if ("step" in event) this.#courses.delete(event.step);
  }

  #begin(name: string): void {
    const planned = this.#planned.get(name);
    if (planned === undefined) throw new Broken(`${name} was not planned`);
    this.#started.push(name);
    this.#courses.set(name, {
      phase: "remove",
      record: planned.record,
      attempts: { startedAt: 0 as MonotonicAt, attempts: 1, waits: 0 },
      end: undefined,
      removes: planned.removesArtifacts,
    });
  }

  #advance(name: string): void {
    const course = this.#courses.get(name);
    if (course === undefined) throw new Broken(`${name} does not run`);
    const { world, store, run } = this.#setting;
    const step = world.step(name);
    this.#point();
    switch (course.phase) {
      case "remove":
        if (course.removes) world.remove(name);
        course.phase = "start";
        return;
      case "start": {
        const print = this.#inputPrint(step);
        course.record = {
          ...course.record,
          ...run,
          state: "running",
          because: null,
          attempt: course.record.attempt + 1,
          commandPrint: commandPrintOf(step),
          inputPrint: print.kind === "known" ? print.print : null,
        };
        store.start(step, course.record);
        course.phase = "spawn";
        return;
      }
      case "spawn":
        world.start(name);
        course.phase = "runs";
        return;
      case "runs":
        this.#let(name, course);
        return;
      case "ended":
        this.#end(step, course);
        return;
      case "waits":
        if (this.#now().stopSignal === undefined) course.phase = "remove";
        else this.#note({ kind: "step-failed", step: name, status: 1 });
        return;
    }
  }

  /** The command goes on for a while: it works, ends, or is killed. */
  #let(name: string, course: Course): void {
    const { world, dice, chances } = this.#setting;
    const isStopped = this.#now().stopSignal !== undefined;
    if ((isStopped && dice() < 0.7) || dice() < chances.commandKilled) {
      world.kill(name, dice);
      course.end = dice() < 0.5 ? { kind: "signaled", signal: 9 } : { kind: "timed-out" };
      course.phase = "ended";
      return;
    }
    if (world.running.get(name) === false && dice() < 0.7) {
      world.work(name);
      if (world.running.get(name) === true) return;
    }
    course.end = { kind: "exited", code: this.#finishCommand(name) };
    course.phase = "ended";
  }

  #finishCommand(name: string): number {
    const { world } = this.#setting;
    if (world.running.get(name) === false) world.work(name);
    return world.end(name);
  }

  #end(step: StepSpec, course: Course): void {
    const { end } = course;
    if (end === undefined) throw new Broken(`${step.name} has not ended`);
    const ended: EndedStep = {
      end,
      isStopped: this.#now().stopSignal !== undefined,
      sideEffects: step.sideEffects,
      artifacts: end.kind === "exited" && end.code === 0 ? this.#artifacts(step) : undefined,
      backoff: step.backoff,
      attempts: course.attempts,
    };
    const chance = { nowMs: 1 as MonotonicAt, random: 0 };
    this.#apply(step, course, { ended, decision: decideStepEnd(ended, chance) });
  }

  #apply(
    step: StepSpec,
    course: Course,
    { ended, decision }: { ended: EndedStep; decision: ReturnType<typeof decideStepEnd> },
  ): void {
    const { store } = this.#setting;
    const { name } = step;
    const { because } = decision;
    const exitCode = ended.end.kind === "exited" ? ended.end.code : null;
    const next = { ...course.record, because, exitCode };
    switch (decision.kind) {
      case "done":
        store.write({ ...next, state: "done" }, decision.artifacts);
        this.#point();
        this.#note({ kind: "step-done", step: name });
        return;
      case "failed":
        store.write({ ...next, state: "failed" }, undefined);
        this.#note({ kind: "step-failed", step: name, status: decision.status });
        return;
      case "retry":
        course.record = { ...next, state: "failed" };
        store.write(course.record, undefined);
        Object.assign(course, { phase: "waits", attempts: decision.attempts, removes: true });
        return;
      case "interrupted":
        this.#interrupt(step, course, { ended, next: { ...next, state: "interrupted" } });
    }
  }

  #interrupt(
    step: StepSpec,
    course: Course,
    { ended, next }: { ended: EndedStep; next: StepRecord },
  ): void {
    const { store, run } = this.#setting;
    const { name } = step;
    store.write(next, undefined);
    this.#point();
    if (ended.isStopped) return this.#note({ kind: "step-interrupted", step: name });
    const unclear = decideUnclear(step, next, { changed: undefined, ...run });
    const settled = unclear.todo === "settle" ? this.#settle(unclear) : unclear;
    this.#point();
    if (settled.todo === "run") {
      const chance = { nowMs: 1 as MonotonicAt, random: 0 };
      return this.#apply(step, course, { ended, decision: decideNotHappened(ended, chance) });
    }
    store.write(settled.record, settled.artifacts);
    this.#point();
    const kind = settled.record.state === "done" ? "step-done" : "step-unknown";
    this.#note({ kind, step: name });
  }
}

function commandPrintOf({ command }: StepSpec): string {
  return JSON.stringify(command);
}
