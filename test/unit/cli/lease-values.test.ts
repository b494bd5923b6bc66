/**
 * Keys, bounded spans, one exit code, a count: what is read, and what is refused with which words.
 */

import { describe, expect, test } from "bun:test";
import * as leaseValues from "../../../src/cli/lease-values.ts";
import { parseSpan } from "../../../src/cli/values.ts";
import type { Parsed } from "../../../src/cli/values.ts";
import { LONGEST_KEY_NAME } from "../../../src/core/lease-key.ts";

const { EXPECTED_LEASE } = leaseValues;

function expectValues<T>(read: (text: string) => Parsed<T>, table: readonly [string, T][]): void {
  for (const [text, value] of table) {
    expect([text, read(text)]).toEqual([text, { kind: "value", value }]);
  }
}

function expectRefused<T>(
  read: (text: string) => Parsed<T>,
  expected: string,
  texts: readonly string[],
): void {
  for (const text of texts) {
    expect([text, read(text)]).toEqual([text, { kind: "refused", expected }]);
  }
}

describe("a key", () => {
  test("is a kind and a name, which may hold colons, blanks and any script", () => {
    expectValues(leaseValues.parseLeaseKey, [
      ["lane:gpu", { kind: "lane", name: "gpu" }],
      ["db-2:a:b", { kind: "db-2", name: "a:b" }],
      ["worktree:/srv/a b", { kind: "worktree", name: "/srv/a b" }],
      ["task:é☃ 🦊", { kind: "task", name: "é☃ 🦊" }],
    ]);
  });

  test("has neither an odd kind nor an empty, endless or unfaithful name", () => {
    const long = `lane:${"x".repeat(LONGEST_KEY_NAME + 1)}`;
    const texts = ["", "gpu", ":gpu", "lane:", "Lane:gpu", "2:x", "a b:x", "lane:a\0b", long];
    expectRefused(leaseValues.parseLeaseKey, EXPECTED_LEASE.key, [...texts, "lane:\uFFFD"]);
  });

  test("of a short form takes its kind from the flag", () => {
    const parsed = leaseValues.parseKeyName("lane", "a:b");
    expect(parsed).toEqual({ kind: "value", value: { kind: "lane", name: "a:b" } });
    const read = (text: string): Parsed<unknown> => leaseValues.parseKeyName("lane", text);
    expectRefused(read, EXPECTED_LEASE.keyName, ["", "\uFFFD", "x".repeat(LONGEST_KEY_NAME + 1)]);
  });
});

test("the spans of a beat lie within their bounds, so that the other one can follow", () => {
  expectValues(leaseValues.parseInterval, [
    ["100ms", 100],
    ["0.1", 100],
    ["12h", 43_200_000],
  ]);
  const { interval, staleAfter } = EXPECTED_LEASE;
  expectRefused(leaseValues.parseInterval, interval, ["0", "99ms", "12h1ms", "1d", "x", ""]);
  expectValues(leaseValues.parseStaleAfter, [
    ["200ms", 200],
    ["1d", 86_400_000],
  ]);
  expectRefused(leaseValues.parseStaleAfter, staleAfter, ["0", "199ms", "1d1ms", "2d", "-1"]);
});

test("an exit code is a number from 0 to 255 and nothing else", () => {
  expectValues(leaseValues.parseExitCode, [
    ["0", 0],
    ["75", 75],
    ["255", 255],
  ]);
  const wrong = ["", "256", "-1", "+1", "1.0", "0x1", "1e1", "0,1", " 1", "1000"];
  expectRefused(leaseValues.parseExitCode, EXPECTED_LEASE.exitCode, wrong);
});

test("a count of runs is at least one and not more than the journal keeps", () => {
  expectValues(leaseValues.parseLimit, [
    ["1", 1],
    ["020", 20],
    [String(leaseValues.MAX_HISTORY_LIMIT), leaseValues.MAX_HISTORY_LIMIT],
  ]);
  const above = String(leaseValues.MAX_HISTORY_LIMIT + 1);
  const wrong = ["0", "", "-1", "1.5", "x", above, "9".repeat(65), "0".repeat(64) + "1"];
  expectRefused(leaseValues.parseLimit, EXPECTED_LEASE.limit, wrong);
});

test("a span is shown as its reader reads it back", () => {
  for (const ms of [0, 1, 199, 200, 1_000, 1_500, 40_000, 86_400_000]) {
    expect(parseSpan(leaseValues.renderSpan(ms))).toEqual({ kind: "value", value: ms });
  }
  expect([leaseValues.renderSpan(40_000), leaseValues.renderSpan(250)]).toEqual(["40s", "250ms"]);
});
