/**
 * The small parts: nearest words, quoting, wrapping, the lines of an error.
 */

import { escapeUnprintable } from "../../../src/core/printable.ts";
import { describe, expect, test } from "bun:test";
import { countSlips, MAX_COMPARED_LENGTH, nearestOf } from "../../../src/cli/nearest.ts";
import { renderError } from "../../../src/cli/render-error.ts";
import { MAX_SHOWN_LENGTH, quoteForShell, showWord } from "../../../src/cli/shown-words.ts";
import { wrapBeside, wrapText } from "../../../src/cli/wrap-text.ts";

test("slips are letters added, left out, replaced, or swapped with their neighbour", () => {
  const table: readonly [string, string, number][] = [
    ["", "", 0],
    ["abc", "abc", 0],
    ["abc", "", 3],
    ["", "abc", 3],
    ["timout", "timeout", 1],
    ["tiemout", "timeout", 1],
    ["quite", "quiet", 1],
    ["ab", "ba", 1],
    ["ca", "abc", 3],
    ["kitten", "sitting", 3],
  ];
  for (const [left, right, slips] of table) {
    expect([left, right, countSlips(left, right)]).toEqual([left, right, slips]);
    expect(countSlips(right, left)).toBe(slips);
  }
});

describe("the nearest word", () => {
  const flags = ["--timeout", "--idle-timeout", "--log", "--log-max", "--log-keep", "--quiet"];

  test("is within one slip for three letters, the closest first", () => {
    expect(nearestOf("--timout", flags)).toBe("--timeout");
    expect(nearestOf("--lgo", flags)).toBe("--log");
    expect(nearestOf("--log_max", flags)).toBe("--log-max");
    expect(nearestOf("idle-timeout", flags)).toBe("--idle-timeout");
  });

  test("is the one that the typed letters begin, if there is only one", () => {
    expect(nearestOf("--idle", flags)).toBe("--idle-timeout");
    expect(nearestOf("--log-", ["--log-max", "--log-keep"])).toBeUndefined();
  });

  test("does not exist for short, long and foreign words", () => {
    const foreign = ["--", "-x", "", "--zzzzzz", "x".repeat(MAX_COMPARED_LENGTH + 1)];
    for (const word of foreign) expect(nearestOf(word, flags)).toBeUndefined();
  });
});

test("words are shown with escapes in place of what a terminal would act on, and cut", () => {
  expect(showWord("a b")).toBe('"a b"');
  expect(showWord("\u001b[31m\t\u009b\u2028\u200b")).toBe('"\\x1b[31m\\t\\x9b\\u{2028}\\u{200b}"');
  expect(escapeUnprintable("é☃🦊")).toBe("é☃🦊");
  expect(showWord("x".repeat(MAX_SHOWN_LENGTH))).toBe(`"${"x".repeat(MAX_SHOWN_LENGTH)}"`);
  const cut = showWord("🦊".repeat(MAX_SHOWN_LENGTH + 1));
  expect(cut).toBe(`"${"🦊".repeat(MAX_SHOWN_LENGTH - 1)}…"`);
});

test("words are quoted for a shell, and not at all where that would not be seen", () => {
  expect(quoteForShell(["a", "-b=c", "/x,y:z@1%+2_"])).toBe("a -b=c /x,y:z@1%+2_");
  expect(quoteForShell(["", "a b", "it's", "$HOME", "*", "~", "=x", "a\\b", "!1", "#"])).toBe(
    "'' 'a b' 'it'\\''s' '$HOME' '*' '~' '=x' 'a\\b' '!1' '#'",
  );
  for (const word of ["a\nb", "\u001b", "\u202e", "\uFFFD", "\ud800"]) {
    expect(quoteForShell(["ls", word])).toBeUndefined();
  }
});

test("an error is one line, a hint another, whatever they carry", () => {
  expect(renderError({ message: "m\nn\u0007", hint: "h\u001b[2J" })).toBe(
    "watchdog: error: m\\nn\\x07\nwatchdog: hint: h\\x1b[2J\n",
  );
  expect(renderError({ message: "m", hint: undefined })).toBe("watchdog: error: m\n");
});

test("text is wrapped at its width, and a word that is longer stays whole", () => {
  expect(wrapText("aa bb cc", { indent: 2, width: 7 })).toEqual(["  aa bb", "  cc"]);
  expect(wrapText("aaaaaaaaaa b", { indent: 0, width: 5 })).toEqual(["aaaaaaaaaa", "b"]);
  expect(wrapText("", { indent: 1, width: 5 })).toEqual([" "]);
  expect(wrapBeside("x", "aa bb", { indent: 5, width: 8 })).toEqual(["  x  aa", "     bb"]);
  expect(wrapBeside("long", "aa", { indent: 5, width: 8 })).toEqual(["  long", "     aa"]);
});
