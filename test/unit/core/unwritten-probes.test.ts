/** Which good probes need not be written, and what they come to together. */
import { describe, expect, test } from "bun:test";
import { type CircuitState, FRESH_CIRCUIT } from "../../../src/core/circuit.ts";
import type { ProbeNote, SharedCircuit } from "../../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import {
  addUnwritten,
  keepUnwritten,
  mayStayUnwritten,
  writtenEveryMs,
} from "../../../src/core/unwritten-probes.ts";
import { CLOSED_CIRCUIT } from "../../support/closed-circuit.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;
const noteAt = (ms: number, because: ProbeNote["because"] = "good"): ProbeNote => ({
  because,
  detail: "",
  at: at(ms),
  wallAt: 0 as WallAt,
});

const ROW: SharedCircuit = {
  ...CLOSED_CIRCUIT,
  lastGoodAt: at(1_000),
  lastProbe: noteAt(1_000),
};

describe("a good probe", () => {
  const may = (row: Partial<SharedCircuit>, askedAt = 2_000, periodMs = 1_000): boolean =>
    mayStayUnwritten({ ...ROW, ...row }, at(askedAt), { periodMs });
  const closed = (changes: Partial<typeof FRESH_CIRCUIT>): CircuitState => ({
    ...FRESH_CIRCUIT,
    ...changes,
  });
  const BROKEN = { openedAt: at(0), backoff: { startedAt: at(0), attempts: 1, waits: 1 } };

  test.each<[string, Partial<SharedCircuit>, boolean]>([
    ["of a circuit that is well", {}, true],
    ["with a window of successes", { state: closed({ window: [false, false] }) }, true],
    ["after a failure", { state: closed({ consecutiveFailures: 1 }) }, false],
    ["with a failure in its window", { state: closed({ window: [true, false] }) }, false],
    ["of one that is open", { state: { kind: "open", ...BROKEN, retryAt: at(9) } }, false],
    [
      "of one that is half-open",
      { state: { kind: "half-open", ...BROKEN, successes: 1, isTrialOut: true } },
      false,
    ],
    ["after a bad one of a start", { lastProbe: noteAt(1_500, "refused") }, false],
    ["that is the first", { lastProbe: null, lastGoodAt: null }, false],
    ["after one of another clock", { lastGoodAt: at(5_000) }, false],
  ])("%s may stay unwritten: %j, %j", (_title, row, expected) => {
    expect(may(row)).toBe(expected);
  });

  test("is written where the newest good one would get too old before the next", () => {
    expect([may({}, 10_000), may({}, 10_001)]).toEqual([true, false]);
    expect([may({}, 6_000, 5_000), may({}, 6_001, 5_000)]).toEqual([true, false]);
  });

  test.each([5_001, 10_000, 60_000])("is always written where the period is %d ms", (periodMs) => {
    expect(may({}, 1_000 + periodMs, periodMs)).toBe(false);
  });

  test.each([50, 300, 1_000, 3_000, 7_000, 10_000, 60_000])(
    "never lets what is written get older than it may, at a period of %d ms",
    (periodMs) => {
      let { lastGoodAt } = ROW;
      for (let askedAt = 1_000 + periodMs; askedAt < 300_000; askedAt += periodMs) {
        const before = lastGoodAt ?? at(0);
        expect(askedAt - before).toBeLessThanOrEqual(writtenEveryMs({ periodMs }));
        if (!may({ lastGoodAt: before }, askedAt, periodMs)) lastGoodAt = at(askedAt);
      }
    },
  );
});

test("what is written may be as old as a period, and ten seconds", () => {
  expect([100, 10_000, 10_001].map((periodMs) => writtenEveryMs({ periodMs }))).toEqual([
    10_000, 10_000, 10_001,
  ]);
});

describe("those that are not written", () => {
  const three = { count: 3, last: noteAt(4_000) };

  test("count with the row, and the last of them is the last probe", () => {
    expect(addUnwritten(ROW, three)).toEqual({
      ...ROW,
      probes: 13,
      goodProbes: 11,
      lastProbe: three.last,
      lastGoodAt: at(4_000),
    });
    expect(addUnwritten(ROW, undefined)).toBe(ROW);
  });

  test("leave what somebody else has found since", () => {
    const later = { ...ROW, lastProbe: noteAt(5_000, "refused"), lastGoodAt: at(4_500) };
    expect(addUnwritten(later, three)).toMatchObject({
      probes: 13,
      lastProbe: { because: "refused" },
      lastGoodAt: 4_500,
    });
  });

  test("do not count after a reset, and are the last probe all the same", () => {
    const reset = { ...ROW, probes: 0, goodProbes: 0 };
    const kept = keepUnwritten(three, { before: ROW, after: reset });
    expect(addUnwritten(reset, kept)).toMatchObject({ probes: 0, lastProbe: { at: 4_000 } });
    expect(keepUnwritten(three, { before: ROW, after: ROW })).toBe(three);
    expect(keepUnwritten(three, { before: undefined, after: reset })).toBe(three);
    expect(keepUnwritten(undefined, { before: ROW, after: reset })).toBeUndefined();
  });
});
