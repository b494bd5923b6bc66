/**
 * The order of steps over every graph of up to four steps, cycles too, against an oracle that tries
 * all orders; and over large ones, which must not take long.
 */
import { describe, expect, test } from "bun:test";
import {
  dependentsOf,
  NeedsFinder,
  needsOf,
  orderSteps,
  type StepNode,
} from "../../src/core/job-graph.ts";

const NAMES = ["a", "b", "c", "d"];

/** Each step needs any of all steps, itself too: 2^(n·n) graphs. */
function* listGraphs(count: number): Generator<readonly StepNode[]> {
  const names = NAMES.slice(0, count);
  for (let bits = 0; bits < 2 ** (count * count); bits += 1) {
    yield names.map((name, row) => ({
      name,
      needs: names.filter((_, column) => ((bits >> (row * count + column)) & 1) === 1),
    }));
  }
}

function* listOrders(names: readonly string[]): Generator<readonly string[]> {
  if (names.length === 0) yield [];
  for (const name of names) {
    const rest = names.filter((other) => other !== name);
    for (const order of listOrders(rest)) yield [name, ...order];
  }
}

/** In which the orders come that `listOrders` gives: by the places in the file, like words. */
function expectOrder(steps: readonly StepNode[]): readonly string[] | undefined {
  for (const order of listOrders(steps.map(({ name }) => name))) {
    const isGood = steps.every(({ name, needs }) =>
      needs.every((need) => order.indexOf(need) < order.indexOf(name)),
    );
    if (isGood) return order;
  }
  return undefined;
}

/** Oracle of reaching: as often as there are steps, all that is reached by one step more. */
function expectNeeds(steps: readonly StepNode[], name: string): ReadonlySet<string> {
  let found = new Set(steps.find((step) => step.name === name)?.needs);
  for (const _ of steps) {
    found = new Set([
      ...found,
      ...steps.filter((step) => found.has(step.name)).flatMap(({ needs }) => needs),
    ]);
  }
  return found;
}

function isCycle(steps: readonly StepNode[], path: readonly string[]): boolean {
  const pairs = path.slice(1).map((to, index) => [path[index], to] as const);
  const isWay = pairs.every(([from, to]) =>
    steps.find(({ name }) => name === from)?.needs.includes(to),
  );
  const isSimple = new Set(path).size === path.length - 1;
  // Told from the one that stands first in the file.
  const isFirst = steps.find(({ name }) => path.includes(name))?.name === path[0];
  return pairs.length > 0 && isWay && isSimple && isFirst && path[0] === path.at(-1);
}

/** Under load: a hundred times as long as it takes. */
const LIMIT_MS = 120_000;

test(
  "the order of every small graph is the first of all good ones, or a cycle is told",
  () => {
    const seen = { ordered: 0, cycle: 0 };
    const wrong: unknown[] = [];
    for (const steps of [1, 2, 3, 4].flatMap((count) => [...listGraphs(count)])) {
      const order = orderSteps(steps);
      seen[order.kind] += 1;
      const expected = expectOrder(steps)?.join();
      const isRight =
        order.kind === "ordered"
          ? order.steps.map(({ name }) => name).join() === expected
          : expected === undefined && isCycle(steps, order.path);
      if (!isRight) wrong.push({ steps, order, expected });
    }
    expect(wrong.slice(0, 3)).toEqual([]);
    // Labelled acyclic graphs of 1 to 4 steps (OEIS A003024).
    expect(seen).toEqual({ ordered: 1 + 3 + 25 + 543, cycle: 2 + 16 + 512 + 65_536 - 572 });
  },
  LIMIT_MS,
);

test(
  "who needs whom, through however many others, is what a second way finds",
  () => {
    for (const steps of [1, 2, 3].flatMap((count) => [...listGraphs(count)])) {
      const finder = new NeedsFinder(steps);
      for (const { name } of steps) {
        const needs = expectNeeds(steps, name);
        expect(needsOf(steps, [name])).toEqual(needs);
        for (const { name: other } of steps) {
          expect(finder.has(name, other)).toBe(needs.has(other));
          expect(dependentsOf(steps, [other]).has(name)).toBe(needs.has(other));
        }
      }
    }
  },
  LIMIT_MS,
);

describe("a job of as many steps as there may be", () => {
  const COUNT = 20_000;
  const chain = Array.from({ length: COUNT }, (_, index) => ({
    name: `s${index}`,
    needs: index + 1 < COUNT ? [`s${index + 1}`] : [],
  }));
  const wide = Array.from({ length: COUNT }, (_, index) => ({
    name: `s${index}`,
    needs: index === 0 ? [] : ["s0"],
  }));

  test(
    "is put in order, and asked for its needs, as a chain and as a fan",
    () => {
      const order = orderSteps(chain);
      expect(order.kind === "ordered" && order.steps[0]?.name).toBe(`s${COUNT - 1}`);
      expect(needsOf(chain, ["s0"]).size).toBe(COUNT - 1);
      expect(dependentsOf(wide, ["s0"]).size).toBe(COUNT - 1);
      const finder = new NeedsFinder(chain);
      for (let index = 1; index < 200; index += 1) {
        expect(finder.has("s0", `s${index}`)).toBe(true);
        expect(finder.has(`s${index}`, "s0")).toBe(false);
      }
      const cycle = orderSteps([...chain.slice(0, -1), { name: `s${COUNT - 1}`, needs: ["s0"] }]);
      expect(cycle.kind === "cycle" && cycle.path.length).toBe(COUNT + 1);
    },
    LIMIT_MS,
  );
});
