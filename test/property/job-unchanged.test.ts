/**
 * A job that is begun after one that was done: which of random steps are not run again, against an
 * oracle that asks what has become of each step and of those that it needs.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { StepSpec } from "../../src/core/job-spec.ts";
import { drawCase, pick } from "../support/job-cases.ts";
import { QUIET, runJob } from "../support/job-runner.ts";
import { ask, jobOf } from "../support/job-specs.ts";
import { JobStore } from "../support/job-store.ts";
import { type Dice, diceOf, type JobCase, JobWorld } from "../support/job-world.ts";

const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });

interface Changes {
  readonly sources: ReadonlySet<string>;
  /** Artifacts that somebody has changed or removed. */
  readonly spoilt: ReadonlySet<string>;
  readonly redo: readonly string[];
  /** Steps whose command is another one now. */
  readonly commands: ReadonlySet<string>;
}

function some<Item>(dice: Dice, items: readonly Item[], chance: number): Item[] {
  return items.filter(() => dice() < chance);
}

function drawChanges(dice: Dice, { steps }: JobCase): Changes {
  const chance = pick(dice, [0, 0.03, 0.2]);
  const paths = steps.flatMap(({ artifacts }) => artifacts.map(({ path }) => path));
  const names = steps.map(({ name }) => name);
  return {
    sources: new Set(some(dice, ["source/a", "source/b", "source/c"], chance)),
    spoilt: new Set(some(dice, paths, chance)),
    redo: some(dice, names, chance),
    commands: new Set(some(dice, names, chance)),
  };
}

/** Oracle: the steps of the first round that are never taken out have not changed. */
function expectSkipped(steps: readonly StepSpec[], changes: Changes): ReadonlySet<string> {
  const isSkipped = new Map(steps.map((step) => [step.name, mayBeSkipped(step, changes)]));
  for (let round = 0; round < steps.length; round += 1) {
    for (const { name, needs } of steps) {
      if (needs.some((need) => isSkipped.get(need) !== true)) isSkipped.set(name, false);
    }
  }
  return new Set([...isSkipped].flatMap(([name, isOne]) => (isOne ? [name] : [])));
}

function mayBeSkipped({ name, inputs, artifacts }: StepSpec, changes: Changes): boolean {
  const isSpoilt = artifacts.some(({ path }) => changes.spoilt.has(path));
  const isRead = inputs?.some((path) => changes.sources.has(path)) ?? true;
  const isAsked = changes.redo.includes(name) || changes.commands.has(name);
  return !isSpoilt && !isRead && !isAsked;
}

function change(world: JobWorld, { sources, spoilt }: Changes): void {
  for (const source of sources) world.files.set(source, "another");
  for (const path of spoilt) world.files.set(path, "spoilt");
}

test("a new job runs exactly what has changed and what depends on that", () => {
  const seen = { skipped: 0, run: 0 };
  fc.assert(
    fc.property(seeds, (seed) => {
      const dice = diceOf(seed);
      const { steps, ...job } = drawCase(dice, 20);
      const world = new JobWorld({ steps, ...job, behaviours: new Map() });
      const setting = {
        spec: jobOf(steps, { maxParallel: job.maxParallel }),
        world,
        store: new JobStore(),
        dice,
        chances: QUIET,
        run: { runId: "run-1", generation: 1 },
      };
      expect(runJob(setting, ask())).toMatchObject({ kind: "finished", exitStatus: 0 });
      const changes = drawChanges(dice, { steps, ...job });
      const changed = steps.map((step): StepSpec => {
        if (!changes.commands.has(step.name)) return step;
        return { ...step, command: { kind: "shell", text: "another" } };
      });
      change(world, changes);
      const skipped = expectSkipped(steps, changes);
      for (const name of skipped) world.takenOver.add(name);
      const spec = jobOf(changed, { maxParallel: job.maxParallel });
      const end = runJob({ ...setting, spec }, ask({ redo: changes.redo }));
      const run = steps.map(({ name }) => name).filter((name) => !skipped.has(name));
      seen.skipped += skipped.size;
      seen.run += run.length;
      expect(end).toMatchObject({ kind: "finished", exitStatus: 0 });
      expect(end.kind === "finished" && end.started.toSorted()).toEqual(run.toSorted());
      for (const { name } of steps) expect(world.isUpToDate(name)).toBe(true);
      expect(setting.store.job?.steps.every(({ state }) => state === "done")).toBe(true);
    }),
    { numRuns: 500, includeErrorInReport: true },
  );
  expect(Math.min(seen.skipped, seen.run)).toBeGreaterThan(500);
}, 120_000);
