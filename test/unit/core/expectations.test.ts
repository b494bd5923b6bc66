/** How the word of `--expect-file` is cut. */
import { describe, expect, test } from "bun:test";
import {
  cutFileWord,
  expectsAnything,
  needsOutput,
  NO_EXPECTATIONS,
} from "../../../src/core/expectations.ts";

describe("suffixes of an expected file", () => {
  test.each([
    ["out", "out", ""],
    ["out:min=1KiB", "out", "min=1KiB"],
    ["out:any-age", "out", "any-age"],
    ["out:min-ratio=0.5", "out", "min-ratio=0.5"],
    ["out:min=0:any-age:min-ratio=.9", "out", "min=0 any-age min-ratio=.9"],
    ["out:any-age:min=0", "out", "any-age min=0"],
    // Known keys alone, and only at the end.
    ["a:b", "a:b", ""],
    ["a:any-age:b", "a:any-age:b", ""],
    ["a:any-ages", "a:any-ages", ""],
    ["a:max=5", "a:max=5", ""],
    ["a:min", "a:min", ""],
    ["a:min=1:2", "a:min=1:2", ""],
    ["C:x:min=1", "C:x", "min=1"],
    ["a\nb:any-age", "a\nb", "any-age"],
    [":any-age", "", "any-age"],
    ["a:any-ag[e]", "a:any-ag[e]", ""],
  ])("of %j", (word, path, suffixes) => {
    const cut = cutFileWord(word);
    expect(cut.path).toBe(path);
    const shown = cut.suffixes.map((one) => ("value" in one ? `${one.key}=${one.value}` : one.key));
    expect(shown.join(" ")).toBe(suffixes);
  });
});

test("only what is asked of the output needs it, and --strict alone expects nothing", () => {
  const asked = (one: object) => ({ ...NO_EXPECTATIONS, ...one });
  const file = { target: "x", minBytes: 1, isAnyAge: false, minRatio: undefined };
  expect(needsOutput(NO_EXPECTATIONS)).toBe(false);
  expect(needsOutput(asked({ expectFiles: [file] }))).toBe(false);
  expect(needsOutput(asked({ expectsOutput: true }))).toBe(true);
  expect(needsOutput(asked({ failMatches: ["x"] }))).toBe(true);
  expect(needsOutput(asked({ expectMatches: ["x"] }))).toBe(true);
  expect(expectsAnything(asked({ isStrict: true }))).toBe(false);
  expect(expectsAnything(asked({ expectFiles: [file] }))).toBe(true);
  expect(expectsAnything(asked({ minDurationMs: 1 }))).toBe(true);
});
