import { expect, test } from "bun:test";
import type { WallAt } from "../../../src/core/time.ts";
import { environmentOf, nameOfNestedRun } from "../../../src/job/step-command.ts";

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

test("a step's run is called after the job and the step", () => {
  expect(nameOfNestedRun("nightly", "upload")).toBe("nightly/upload");
});

test("a name of 200 bytes is whole", () => {
  const job = "j".repeat(200 - "/upload".length);
  expect(nameOfNestedRun(job, "upload")).toBe(`${job}/upload`);
});

test.each(["j", "é", "日", "𝄞"])("one that is longer is cut to 200 bytes, in front: %s", (sign) => {
  const name = nameOfNestedRun(sign.repeat(200), "upload");
  expect(bytesOf(name)).toBeLessThanOrEqual(200);
  expect(bytesOf(name)).toBeGreaterThan(190);
  expect(name.startsWith(`…${sign}`)).toBe(true);
  expect(name.endsWith(`${sign}/upload`)).toBe(true);
});

test("of a step whose own name is too long its end is kept", () => {
  const name = nameOfNestedRun("nightly", "𝄞".repeat(80));
  expect(bytesOf(name)).toBeLessThanOrEqual(200);
  expect(name.endsWith("𝄞")).toBe(true);
});

test("a step has each variable once, its own before the caller's", () => {
  const caller = ["A=caller", "B=caller", "WATCHDOG_ATTEMPT=9"];
  const env = new Map([
    ["A", "step"],
    ["B", null],
  ]);
  const bytes = caller.map((entry) => new TextEncoder().encode(entry));
  const found = environmentOf(bytes, env, { attempt: 2, deadlineAt: undefined });
  const texts = found.map((entry) => new TextDecoder().decode(entry));
  expect(texts.toSorted()).toEqual(["A=step", "B=caller", "WATCHDOG_ATTEMPT=2"]);
});

test.each([
  [[], 1_700_000_000_001, ["WATCHDOG_DEADLINE=1700000001"]],
  [["WATCHDOG_DEADLINE=1699999999"], 1_700_000_000_001, ["WATCHDOG_DEADLINE=1699999999"]],
  [["WATCHDOG_DEADLINE=1800000000"], 1_700_000_000_001, ["WATCHDOG_DEADLINE=1700000001"]],
  [["WATCHDOG_DEADLINE=1800000000"], undefined, ["WATCHDOG_DEADLINE=1800000000"]],
])("a step has the earlier of two deadlines: around it %p, its own %p", (around, at, expected) => {
  const bytes = around.map((entry) => new TextEncoder().encode(entry));
  const found = environmentOf(bytes, new Map(), { attempt: 1, deadlineAt: at as WallAt });
  const texts = found.map((entry) => new TextDecoder().decode(entry));
  expect(texts.filter((text) => text.startsWith("WATCHDOG_DEADLINE"))).toEqual(expected);
});
