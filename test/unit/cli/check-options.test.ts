/** The options of run about results: how they are read, how they add up, and what is refused. */

import { describe, expect, test } from "bun:test";
import { cutCommandLine } from "../../../src/cli/command-line.ts";
import type { Variables } from "../../../src/cli/cut-options.ts";
import { renderError } from "../../../src/cli/render-error.ts";
import { WatchdogError } from "../../../src/core/errors.ts";
import { type Expectations, NO_EXPECTATIONS } from "../../../src/core/expectations.ts";

function read(words: readonly string[], variables: Variables = {}): Expectations {
  const cut = cutCommandLine(["run", ...words, "--", "ls"], variables);
  if (cut.kind !== "run") throw new Error(`cut as ${cut.kind}`);
  const { options } = cut;
  const { expectFiles, expectsOutput, expectMatches, failMatches, minDurationMs, isStrict } =
    options;
  return { expectFiles, expectsOutput, expectMatches, failMatches, minDurationMs, isStrict };
}

function refusalOf(words: readonly string[], variables: Variables = {}): string {
  try {
    read(words, variables);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    expect(error.exitStatus).toBe(64);
    return renderError(error);
  }
  throw new Error(`not refused: ${words.join(" ")}`);
}

const FILE = { minBytes: 1, isAnyAge: false, minRatio: undefined };

describe("--expect-file", () => {
  test.each([
    ["out", { target: "out" }],
    ["out:min=1KiB", { target: "out", minBytes: 1_024 }],
    ["out:min=0", { target: "out", minBytes: 0 }],
    ["out:any-age:min-ratio=.5", { target: "out", isAnyAge: true, minRatio: 0.5 }],
    ["out:min-ratio=1:min=3", { target: "out", minRatio: 1, minBytes: 3 }],
    ["a b:c/*.gz", { target: "a b:c/*.gz" }],
    ["C:out", { target: "C:out" }],
  ])("%p", (word, wanted) => {
    expect(read(["--expect-file", word]).expectFiles).toEqual([{ ...FILE, ...wanted }]);
  });

  test.each([
    [""],
    [":any-age"],
    ["out:min="],
    ["out:min=big"],
    ["out:min=1:min=2"],
    ["out:any-age:any-age"],
    ["out:min-ratio=0"],
    ["out:min-ratio=2"],
    ["out:min-ratio=50%"],
    ["out:min-ratio=-1"],
  ])("%p is refused", (word) => {
    expect(refusalOf([`--expect-file=${word}`])).toContain("--expect-file: found");
  });

  test("adds, in its order, and a flag takes the place of the variable", () => {
    const words = ["--expect-file", "b", "--expect-file", "a", "--expect-file", "b"];
    const targets = (one: Expectations) => one.expectFiles.map(({ target }) => target);
    expect(targets(read(words))).toEqual(["b", "a", "b"]);
    const variables = { WATCHDOG_EXPECT_FILE: "c" };
    expect(targets(read([], variables))).toEqual(["c"]);
    expect(targets(read(words, variables))).toEqual(["b", "a", "b"]);
  });

  test("is refused more than a hundred times", () => {
    const many = (count: number) => Array<string>(count).fill("--expect-file=x");
    expect(read(many(100)).expectFiles).toHaveLength(100);
    expect(refusalOf(many(101))).toContain("found 101 of them, expected at most 100");
  });
});

describe("--expect-match and --fail-match", () => {
  test("add, each in its own list", () => {
    const words = [
      "--fail-match",
      "^E",
      "--expect-match",
      "a$",
      "--fail-match=b",
      "--expect-match=c",
    ];
    const { expectMatches, failMatches } = read(words);
    expect([expectMatches, failMatches]).toEqual([
      ["a$", "c"],
      ["^E", "b"],
    ]);
  });

  test.each([["("], ["[z-a]"], [""], ["x".repeat(1_001)], ["+"]])("%p is refused", (pattern) => {
    for (const flag of ["--expect-match", "--fail-match"]) {
      expect(refusalOf([`${flag}=${pattern}`])).toContain(`${flag}: found`);
    }
  });

  test("in another dialect, or found in every line, are refused, and why", () => {
    expect(refusalOf(["--fail-match", "\\Aerror"])).toContain(
      '--fail-match: found "\\A", which JavaScript does not know, expected a regular expression',
    );
    expect(refusalOf(["--expect-match", "done|"])).toContain(
      '--expect-match: found "done|", which is found in every line, expected',
    );
  });

  test("are refused more than 64 times together", () => {
    const words = (count: number) =>
      Array.from({ length: count }, (_, at) =>
        at % 2 === 0 ? "--fail-match=x" : "--expect-match=x",
      );
    expect(read(words(64)).failMatches).toHaveLength(32);
    expect(refusalOf(words(65))).toContain("found 65 of them, expected at most 64");
  });
});

test("the others say what is expected, and 0 is no duration", () => {
  expect(read([])).toEqual(NO_EXPECTATIONS);
  expect(read(["--expect-output", "--strict", "--min-duration", "1m"])).toEqual({
    ...NO_EXPECTATIONS,
    expectsOutput: true,
    isStrict: true,
    minDurationMs: 60_000,
  });
  expect(read(["--min-duration", "0"]).minDurationMs).toBeUndefined();
});
