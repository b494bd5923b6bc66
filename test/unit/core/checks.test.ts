/** Checks of the output and of the duration: what was found against what was asked for. */
import { describe, expect, test } from "bun:test";
import {
  decideChecks,
  decideUnchecked,
  listFailures,
  type OutputFactsOfRun,
  type PatternFacts,
} from "../../../src/core/checks.ts";
import { type Expectations, NO_EXPECTATIONS } from "../../../src/core/expectations.ts";

const COMPLETE: OutputFactsOfRun = { bytes: 9, isComplete: true, patterns: [] };

function pattern(status: PatternFacts["status"], line?: string): PatternFacts {
  return { source: "x", status, line, reason: status === "abandoned" ? "too slow" : undefined };
}

function decide(asked: Partial<Expectations>, output?: OutputFactsOfRun, durationMs = 5_000) {
  return decideChecks({ asked: { ...NO_EXPECTATIONS, ...asked }, files: [], output, durationMs });
}

describe("checks of the output", () => {
  const wanted = { expectMatches: ["x"] };
  const forbidden = { failMatches: ["x"] };
  const cut = { ...COMPLETE, isComplete: false };
  test.each([
    [{}, undefined, undefined],
    [{ expectsOutput: true }, COMPLETE, null],
    [{ expectsOutput: true }, { ...COMPLETE, bytes: 0 }, "no-output"],
    [{ expectsOutput: true }, undefined, "no-output"],
    [{ expectsOutput: true }, cut, null],
    [wanted, { ...COMPLETE, patterns: [pattern("found", "a x")] }, null],
    [wanted, { ...COMPLETE, patterns: [pattern("open")] }, "match-missing"],
    [wanted, { ...COMPLETE, patterns: [pattern("abandoned")] }, "match-abandoned"],
    [wanted, { ...cut, patterns: [pattern("open")] }, "match-abandoned"],
    [wanted, { ...cut, patterns: [pattern("found", "x")] }, null],
    [wanted, undefined, "match-abandoned"],
    [forbidden, { ...COMPLETE, patterns: [pattern("found", "a x")] }, "match-forbidden"],
    [forbidden, { ...COMPLETE, patterns: [pattern("open")] }, null],
    [forbidden, { ...COMPLETE, patterns: [pattern("abandoned")] }, "match-abandoned"],
    [forbidden, { ...cut, patterns: [pattern("open")] }, "match-abandoned"],
    [forbidden, { ...cut, patterns: [pattern("found", "x")] }, "match-forbidden"],
    [forbidden, undefined, "match-abandoned"],
  ] as const)("asked %j, seen %j: %p", (asked, output, because) => {
    const [result] = decide(asked, output);
    expect(result?.because).toBe(because as never);
    expect(result?.passed).toBe(because === undefined ? (undefined as never) : because === null);
  });

  test("show the line, cut where it is long", () => {
    const long = { ...COMPLETE, patterns: [pattern("found", `x${"é".repeat(5_000)}`)] };
    const [result] = decide(forbidden, long);
    expect(result?.found).toStartWith('"xéé');
    expect(result?.found).toEndWith('é…"');
    expect(result?.found.length).toBeLessThan(200);
  });

  test("take the facts of --expect-match first, then those of --fail-match", () => {
    const output = { ...COMPLETE, patterns: [pattern("found", "1"), pattern("open")] };
    const results = decide({ ...wanted, ...forbidden }, output);
    expect(results.map(({ check, passed }) => [check, passed])).toEqual([
      ["expect-match", true],
      ["fail-match", true],
    ]);
  });
});

test("a pattern of which nobody tells anything is not taken for one that was not found", () => {
  const [result] = decide({ failMatches: ["x"] }, COMPLETE);
  expect(result).toMatchObject({ passed: false, because: "match-abandoned" });
});

test("where nobody could check, each check that was asked for has failed", () => {
  const file = { target: "dump", minBytes: 1, isAnyAge: false, minRatio: undefined };
  const asked: Expectations = {
    expectFiles: [file],
    expectsOutput: true,
    expectMatches: ["a"],
    failMatches: ["b"],
    minDurationMs: 1_000,
    isStrict: false,
  };
  const results = decideUnchecked(asked, "no memory");
  expect(results.map(({ check, target }) => [check, target])).toEqual([
    ["expect-file", "dump"],
    ["expect-output", null],
    ["expect-match", "a"],
    ["fail-match", "b"],
    ["min-duration", null],
  ]);
  expect(results.every(({ passed, found }) => !passed && found === "no memory")).toBe(true);
  expect(listFailures(results)).toEqual(Array(5).fill("unchecked"));
  expect(decideUnchecked(NO_EXPECTATIONS, "no memory")).toEqual([]);
});

test.each([
  [999, "too-short"],
  [1_000, null],
])("a run of %p ms against --min-duration 1s: %p", (durationMs, because) => {
  const [result] = decide({ minDurationMs: 1_000 }, undefined, durationMs);
  expect(result?.because).toBe(because as never);
});

test("failures are named in the order of the checks, and passed ones are none", () => {
  const asked = { expectsOutput: true, failMatches: ["x"], minDurationMs: 6_000 };
  const output = { ...COMPLETE, bytes: 0, patterns: [pattern("open")] };
  expect(listFailures(decide(asked, output))).toEqual(["no-output", "too-short"]);
});
