import { expect, test } from "bun:test";
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
  const found = environmentOf(bytes, env, 2).map((entry) => new TextDecoder().decode(entry));
  expect(found.toSorted()).toEqual(["A=step", "B=caller", "WATCHDOG_ATTEMPT=2"]);
});
