/** Expressions on lines: what is rewritten for many lines, and what an edge of a window is. */
import { describe, expect, test } from "bun:test";
import {
  compileLinePattern,
  findForeignWord,
  isFoundEverywhere,
  LONGEST_PATTERN,
  rewriteForManyLines,
  wantsLineFeed,
} from "../../../src/core/line-pattern.ts";

describe("an expression for many lines", () => {
  test.each([
    ["ERROR|panic", "ERROR|panic"],
    ["^done$", "^done$"],
    ["a.c", "a.c"],
    ["\\bfoo\\B", "\\bfoo\\B"],
    ["a\\s+b", "a[^\\S\\n]+b"],
    ["\\W\\D\\w\\d\\S", "[^\\w\\n][^\\d\\n]\\w\\d\\S"],
    ['"[^"]*"', '"[^\\n"]*"'],
    ["[^-a]", "[^\\n\\-a]"],
    ["[^a-]", "[^\\na-]"],
    ["[^\\]]", "[^\\n\\]]"],
    ["[a-z\\d_.-]", "[a-z\\d_.-]"],
    ["(?:a|b)(c)(?<name>d)(?i:e)", "(?:a|b)(c)(?<name>d)(?i:e)"],
    ["x{2,3}?", "x{2,3}?"],
    ["é\\t", "é\\t"],
  ])("of %p is %p", (source, wanted) => {
    expect(rewriteForManyLines(source)).toBe(wanted);
    expect(new RegExp(wanted, "m")).toBeInstanceOf(RegExp);
  });

  test.each([
    ["a(?=b)"],
    ["a(?!b)"],
    ["(?<=a)b"],
    ["(?<!a)b"],
    ["(?s:.)"],
    ["(?-i:a)"],
    ["(a)\\1"],
    ["(?<n>a)\\k<n>"],
    ["\\n"],
    ["\\r"],
    ["\\x0a"],
    ["\\u000a"],
    ["\\cJ"],
    ["\\0"],
    ["[\\s]"],
    ["[\\W]"],
    ["[\\D]"],
    ["[\\t-~]"],
    ["[\\0-x]"],
    ["[\t-~]"],
    ["a\nb"],
    ["[^a"],
    ["a\\"],
  ])("of %p is not to be had", (source) => {
    expect(rewriteForManyLines(source)).toBeUndefined();
  });
});

describe("words of other dialects", () => {
  test.each([
    ["\\Adone", "\\A"],
    ["done\\z", "\\z"],
    ["done\\Z", "\\Z"],
    ["\\<word\\>", "\\<"],
    ["\\p{Lu}", "\\p{"],
    ["\\u{1f600}", "\\u{"],
    ["[[:digit:]]+", "[:d"],
    ["[^[:space:]]", "[:s"],
    ["\\Qa.b\\E", "\\Q"],
    ["a\\hb", "\\h"],
  ])("%p holds %p", (source, word) => {
    expect(findForeignWord(source)).toBe(word);
    // JavaScript would take it all the same.
    expect(compileLinePattern(source)).toBeDefined();
  });

  test.each([
    ["\\\\A"],
    ["[:a]"],
    ["a[\\]:x]"],
    ["\\d\\D\\s\\S\\w\\W\\b\\B\\t\\n\\r\\v\\f\\0"],
    ["\\x41\\u0041\\cA(?<n>a)\\k<n>\\1"],
    ['\\.\\-\\/\\:\\"\\[\\]'],
    ["p{2}u{2}"],
  ])("%p holds none", (source) => expect(findForeignWord(source)).toBeUndefined());
});

test.each([
  ["a\\nb", true],
  ["ERROR\\n", true],
  ["a|b\\n+", true],
  ["a\nb", true],
  ["\\\\\\n", true],
  ["a[^\\n]*b", false],
  ["a[\\n\\]]b", false],
  ["ERROR\\n?", false],
  ["ERROR(?:x)\\n*$", false],
  ["\\\\n", false],
  ["\\bname\\b", false],
])("%j wants a line feed: %p", (source, wanted) => {
  expect(wantsLineFeed(source)).toBe(wanted);
});

test.each([
  [".*", true],
  ["done|", true],
  ["(?:)", true],
  ["x*", true],
  ["^", true],
  ["^$", false],
  ["^\\s*$", false],
  [".", false],
  ["x", false],
])("%p is found in every line: %p", (source, wanted) => {
  expect(isFoundEverywhere(source)).toBe(wanted);
});

describe("an expression for a line", () => {
  test.each([["("], ["[a"], [""], ["a".repeat(LONGEST_PATTERN + 1)], ["(?<=a"], ["+"]])(
    "%p is none",
    (source) => expect(compileLinePattern(source)).toBeUndefined(),
  );

  const edges = {
    whole: { isLineStart: true, isLineEnd: true },
    first: { isLineStart: true, isLineEnd: false },
    inner: { isLineStart: false, isLineEnd: false },
    last: { isLineStart: false, isLineEnd: true },
  };
  test.each([
    ["^a", "ax", "whole first"],
    ["^x", "ax", ""],
    ["b$", "ab", "whole last"],
    ["^a.*b$", "axb", "whole"],
    ["a", "xax", "whole first inner last"],
    // At the very edge of a window there may be more to come, or have been: the next one tells.
    ["a", "ax", "whole first"],
    ["a", "xa", "whole last"],
    ["a.*", "xaxx", "whole first inner last"],
    ["(?:)", "xx", "whole first inner last"],
    ["a|b", "xbx", "whole first inner last"],
  ])("%p in %p is found in: %p", (source, text, wanted) => {
    const pattern = compileLinePattern(source);
    const found = Object.entries(edges).filter(([, edge]) =>
      pattern?.expressionFor(edge).test(text),
    );
    expect(found.map(([name]) => name).join(" ")).toBe(wanted);
  });
});
