/** Instants, spans, counts and columns of an answer. */
import { expect, test } from "bun:test";
import {
  renderAge,
  renderColumns,
  renderCount,
  renderInstant,
  renderSpanText,
} from "../../../src/cli/render-words.ts";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1 s"],
  [2_590, "2.5 s"],
  [9_999, "9.9 s"],
  [32_400, "32 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [303_000, "5 min 3 s"],
  [3_600_000, "1 h"],
  [7_500_000, "2 h 5 min"],
  [86_400_000, "1 d"],
  [273_600_000, "3 d 4 h"],
])("a span of %d ms reads %s", (ms, text) => {
  expect(renderSpanText(ms)).toBe(text);
});

test("what is no span is a dash", () => {
  for (const nothing of [null, undefined, Number.NaN, Infinity]) {
    expect(renderSpanText(nothing)).toBe("-");
  }
});

test("an age that cannot be is told as such", () => {
  expect([renderAge(2_000), renderAge(-2_000)]).toEqual(["2 s ago", "2 s in the future"]);
});

test("an instant is shown in the time of this place, and no instant as a dash", () => {
  const at = new Date(2026, 0, 31, 2, 0, 7);
  expect(renderInstant(at.getTime())).toBe("2026-01-31 02:00:07");
  expect(renderInstant(at.toISOString())).toBe("2026-01-31 02:00:07");
  expect([null, undefined, "never", 1e300].map(renderInstant)).toEqual(["-", "-", "-", "-"]);
});

test("one is one, and none are many", () => {
  const counts = [0, 1, 2].map((count) => renderCount(count, "process", "processes"));
  expect(counts).toEqual(["0 processes", "1 process", "2 processes"]);
});

test("columns are as wide as their widest cell, whatever is in them", () => {
  const rows = [
    ["a", "bb", ""],
    ["äää", "b", "c\n\u202ed"],
  ];
  expect(renderColumns(rows)).toEqual(["a    bb", "äää  b   c\\n\\u{202e}d"]);
  expect(renderColumns([])).toEqual([]);
});
