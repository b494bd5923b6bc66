/** Random jobs of many steps, and how their commands behave. */
import type { StepSpec } from "../../src/core/job-spec.ts";
import { artifact, step } from "./job-specs.ts";
import type { Behaviour, Dice, JobCase } from "./job-world.ts";

const SOURCES = ["source/a", "source/b", "source/c"];

export function pick<Item>(dice: Dice, items: readonly Item[]): Item {
  if (items.length === 0) throw new Error("nothing to pick from");
  return items[Math.floor(dice() * items.length)] as Item;
}

export function shuffle<Item>(dice: Dice, items: readonly Item[]): Item[] {
  const drawn = items.map((item) => ({ item, at: dice() }));
  return drawn.toSorted((one, other) => one.at - other.at).map(({ item }) => item);
}

export function drawCase(dice: Dice, most: number): JobCase {
  const count = 1 + Math.floor(dice() * most);
  const density = pick(dice, [0, 0.05, 0.15, 0.4]);
  const names = shuffle(
    dice,
    Array.from({ length: count }, (_, index) => `s${index}`),
  );
  const steps = names.map((name, index) =>
    drawStep(
      dice,
      name,
      shuffle(
        dice,
        names.slice(0, index).filter(() => dice() < density),
      ),
    ),
  );
  const behaviours = new Map(steps.map(({ name }) => [name, drawBehaviour(dice)]));
  return { steps: shuffle(dice, steps), behaviours, maxParallel: pick(dice, [1, 1, 2, 3, 8]) };
}

function drawStep(dice: Dice, name: string, needs: readonly string[]): StepSpec {
  const isUnsafe = dice() < 0.4;
  const artifacts = pick(dice, [0, 1, 1, 2]);
  return step(name, {
    needs,
    artifacts: Array.from({ length: artifacts }, (_, index) => artifact(`out/${name}-${index}`)),
    inputs: pick(dice, [undefined, [], [pick(dice, SOURCES)]]),
    sideEffects: isUnsafe ? "unsafe" : "none",
    settle: isUnsafe && dice() < 0.5 ? { kind: "shell", text: "asks" } : undefined,
    backoff: { ...step(name).backoff, maxAttempts: pick(dice, [1, 1, 2, 3]) },
  });
}

function drawBehaviour(dice: Dice): Behaviour {
  return {
    failsFirst: pick(dice, [0, 0, 0, 1, 2]),
    failsAlways: dice() < 0.02,
    settles: pick(dice, ["truly", "truly", "unclearly"]),
  };
}
