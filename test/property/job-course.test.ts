/**
 * Random jobs of many steps, killed, stopped and spoilt at random, run by the decisions of core/
 * until they end: against a world that counts what was really run, and against the same job that
 * nobody disturbs.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { AcceptedAs } from "../../src/core/job-asked.ts";
import { checkJob } from "../../src/core/job-check.ts";
import { dependentsOf } from "../../src/core/job-graph.ts";
import { mayHaveHappened } from "../../src/core/job-settle.ts";
import type { JobRecord, StepState } from "../../src/core/step-record.ts";
import { drawCase, pick } from "../support/job-cases.ts";
import { type Chances, Killed, QUIET, type RunEnd, runJob } from "../support/job-runner.ts";
import { ask, jobOf } from "../support/job-specs.ts";
import { JobStore } from "../support/job-store.ts";
import { Broken, type Dice, diceOf, type JobCase, JobWorld } from "../support/job-world.ts";

const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });
/** Afterwards nobody disturbs any more, so that it must come to an end. */
const DISTURBED_RUNS = 40;
const MOST_RUNS = 200;

/** What has been seen over all jobs: a test that disturbs nothing proves nothing. */
const seen = {
  killed: 0,
  unknown: 0,
  stopped: 0,
  spoilt: 0,
  redone: 0,
  words: 0,
  failed: 0,
  alone: 0,
};

interface Played {
  readonly world: JobWorld;
  readonly store: JobStore;
  readonly exitStatus: number;
}

interface Disturbance {
  readonly chances: Chances;
  readonly spoils: number;
  readonly redoes: number;
  /** Of somebody who wants one step alone to run. */
  readonly alone: number;
  /** Its steps never leave the same twice. */
  readonly isFickle: boolean;
}

const UNDISTURBED: Disturbance = {
  chances: QUIET,
  spoils: 0,
  redoes: 0,
  alone: 0,
  isFickle: false,
};

function drawDisturbance(dice: Dice): Disturbance {
  return {
    chances: {
      kill: pick(dice, [0, 0.01, 0.05, 0.2]),
      stop: pick(dice, [0, 0, 0.02]),
      commandKilled: pick(dice, [0, 0.05, 0.2]),
    },
    spoils: pick(dice, [0, 0, 0.3]),
    redoes: pick(dice, [0, 0, 0.2]),
    alone: pick(dice, [0, 0, 0.3]),
    isFickle: dice() < 0.5,
  };
}

class Night {
  readonly #job: JobCase;
  readonly #dice: Dice;
  readonly #disturbance: Omit<Disturbance, "isFickle">;
  readonly world: JobWorld;
  readonly store = new JobStore();
  #round = 0;

  constructor(job: JobCase, dice: Dice, { isFickle, ...disturbance }: Disturbance) {
    this.#job = job;
    this.#dice = dice;
    this.#disturbance = disturbance;
    this.world = new JobWorld(job, isFickle);
  }

  /** One run of the same line; undefined: it was killed, or was to run one step alone. */
  run(): RunEnd | undefined {
    const isDisturbed = this.#round < DISTURBED_RUNS;
    if (isDisturbed) this.#spoil();
    this.#round += 1;
    const { steps, maxParallel } = this.#job;
    const accepted = this.#decideAsPerson();
    const redo = isDisturbed ? this.#drawRedo(accepted) : [];
    const only = isDisturbed ? this.#drawOnly() : undefined;
    const before = this.store.job;
    try {
      const end = runJob(
        {
          spec: jobOf(steps, { maxParallel }),
          world: this.world,
          store: this.store,
          dice: this.#dice,
          chances: isDisturbed ? this.#disturbance.chances : QUIET,
          run: { runId: `run-${this.#round}`, generation: this.#round },
        },
        ask({ accepted, redo, only }),
      );
      if (only === undefined) return end;
      if (end.kind === "refused") expect(end.decision.because).toBe("not-done");
      else seen.alone += 1;
      return undefined;
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      seen.killed += 1;
      return undefined;
    } finally {
      if (only !== undefined)
        this.#expectKept(before, only, new Set([...accepted.keys(), ...redo]));
    }
  }

  #drawOnly(): string | undefined {
    if (this.#dice() >= this.#disturbance.alone) return undefined;
    return pick(this.#dice, this.#job.steps).name;
  }

  /** What was not asked for is as it was, at whatever moment the run was killed. */
  #expectKept(before: JobRecord | undefined, only: string, named: ReadonlySet<string>): void {
    if (before === undefined || before.state === "done") return;
    const wasDone = before.steps.some(({ step, state }) => step === only && state === "done");
    const behind = wasDone ? dependentsOf(this.#job.steps, [only]) : new Set<string>();
    for (const record of before.steps) {
      const { step, state } = record;
      if (step === only || named.has(step) || behind.has(step)) continue;
      const now = this.store.recordOf(step);
      if (state !== "running") expect(now).toEqual(record);
      else expect(["running", "interrupted"]).toContain(now.state);
    }
  }

  /** Whoever looks finds out what has happened, and says so. */
  #decideAsPerson(): ReadonlyMap<string, AcceptedAs> {
    const unknown = this.store.job?.steps.filter(({ state }) => state === "unknown") ?? [];
    seen.unknown += unknown.length;
    return new Map(
      unknown.map(({ step }) => {
        const isDone = this.world.hasHappened(step) && this.world.isWhole(step);
        if (!isDone) this.world.allow(step);
        return [step, isDone ? "done" : "retry"];
      }),
    );
  }

  #drawRedo(accepted: ReadonlyMap<string, AcceptedAs>): readonly string[] {
    const { job } = this.store;
    if (job === undefined || job.state === "done") return [];
    if (this.#dice() >= this.#disturbance.redoes) return [];
    const { name, sideEffects } = pick(this.#dice, this.#job.steps);
    const isUndecided = mayHaveHappened(this.store.recordOf(name), sideEffects === "unsafe");
    if (accepted.has(name) || isUndecided) return [];
    this.world.allow(name);
    seen.redone += 1;
    return [name];
  }

  /** Between two runs somebody changes, empties or removes what a step has left. */
  #spoil(): void {
    if (this.#dice() >= this.#disturbance.spoils) return;
    const left = this.store.job?.artifacts ?? [];
    if (left.length === 0) return;
    const { path } = pick(this.#dice, left);
    const content = pick(this.#dice, [undefined, "", "spoilt"]);
    if (content === undefined) this.world.files.delete(path);
    else this.world.files.set(path, content);
    seen.spoilt += 1;
  }

  play(): Played {
    const { world, store } = this;
    for (let run = 0; run < MOST_RUNS; run += 1) {
      const end = this.run();
      if (end?.kind === "refused") throw new Broken(`refused: ${end.decision.because}`);
      // Killed behind its end: the next line would begin a new job.
      if (store.job?.state === "done") return { world, store, exitStatus: 0 };
      if (end === undefined) continue;
      const { exitStatus } = end;
      if (exitStatus === 143) seen.stopped += 1;
      if (exitStatus === 0 || this.#isHopeless(exitStatus)) return { world, store, exitStatus };
    }
    throw new Broken("it comes to no end");
  }

  /** Only steps have failed that always do, and nothing is left to be done. */
  #isHopeless(exitStatus: number): boolean {
    const failed = this.store.job?.steps.filter(({ state }) => state === "failed") ?? [];
    const isForGood = failed.every(({ step }) => this.#job.behaviours.get(step)?.failsAlways);
    if (exitStatus !== 1 || !isForGood) return false;
    seen.failed += 1;
    return true;
  }
}

function statesOf({ store }: Played): ReadonlyMap<string, StepState> {
  return new Map(store.job?.steps.map(({ step, state }) => [step, state]));
}

/** What the steps that are done have left. */
function filesOf(played: Played, job: JobCase): Record<string, string | undefined> {
  const states = statesOf(played);
  const done = job.steps.filter(({ name }) => states.get(name) === "done");
  const paths = done.flatMap(({ artifacts }) => artifacts.map(({ path }) => path));
  return Object.fromEntries(paths.map((path) => [path, played.world.files.get(path)]));
}

/** Oracle of how it must end: a step fails, and nothing that needs it runs. */
function expectStates(job: JobCase): ReadonlyMap<string, StepState> {
  const states = new Map<string, StepState>();
  while (states.size < job.steps.length) {
    for (const { name, needs } of job.steps) {
      if (states.has(name) || !needs.every((need) => states.has(need))) continue;
      const isBlocked = needs.some((need) => states.get(need) !== "done");
      const state = job.behaviours.get(name)?.failsAlways === true ? "failed" : "done";
      states.set(name, isBlocked ? "pending" : state);
    }
  }
  return states;
}

test("a disturbed job ends as if nobody had, and nothing unsafe is run twice unasked", () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const dice = diceOf(seed);
      const job = drawCase(dice, 30);
      expect(checkJob(jobOf(job.steps))).toEqual([]);
      const calm = new Night(job, diceOf(seed), UNDISTURBED).play();
      const disturbance = drawDisturbance(dice);
      const disturbed = new Night(job, dice, disturbance).play();
      expect(statesOf(calm)).toEqual(expectStates(job));
      expect(statesOf(disturbed)).toEqual(statesOf(calm));
      if (!disturbance.isFickle) expect(filesOf(disturbed, job)).toEqual(filesOf(calm, job));
      expect(disturbed.exitStatus).toBe(calm.exitStatus);
      for (const { name, sideEffects } of job.steps) {
        const effects = disturbed.world.effects.get(name) ?? 0;
        const words = disturbed.world.words.get(name) ?? 0;
        seen.words += words;
        if (sideEffects === "unsafe") expect(effects).toBeLessThanOrEqual(1 + words);
        else if (effects > 0) expect(disturbed.world.isUpToDate(name)).toBe(true);
        if (statesOf(calm).get(name) === "done") expect(effects).toBeGreaterThan(0);
        expect(calm.world.effects.get(name) ?? 0).toBeLessThanOrEqual(1);
      }
    }),
    { numRuns: 600, includeErrorInReport: true },
  );
  expect(seen.killed).toBeGreaterThan(500);
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(20);
}, 120_000);
