/** When a repair that nobody has approved has to stop. */
import { describe, expect, test } from "bun:test";
import {
  decideLimit,
  isLimited,
  type LimitFacts,
  type PastAct,
} from "../../../src/core/repair-limits.ts";

const NOW = { at: 10_000_000, bootId: "b", monotonicMs: 5_000_000 };

/** So many milliseconds ago, by both clocks. */
function act(agoMs: number, changes: Partial<PastAct> = {}): PastAct {
  const clocks = { at: NOW.at - agoMs, bootId: "b", monotonicMs: NOW.monotonicMs - agoMs };
  return { action: "mark", end: "repaired", ...clocks, ...changes };
}

function decide(acts: readonly PastAct[], changes: Partial<LimitFacts> = {}) {
  const limits = { intervalMs: 600_000, mostInARow: 3, lastOwnEndAt: undefined };
  return decideLimit({ acts, now: NOW, ...limits, ...changes });
}

describe("a repair goes on", () => {
  test("where nothing was done before, or long ago", () => {
    expect(decide([])).toEqual({ kind: "go" });
    expect(decide([act(600_000)])).toEqual({ kind: "go" });
  });

  test("after what settles nothing, and to finish what was interrupted", () => {
    const acts = [act(1, { action: "continue-owner" }), act(1, { action: "note" })];
    expect(decide([...acts, act(1, { end: "none" })])).toEqual({ kind: "go" });
    expect(
      ["continue-owner", "note", "set-aside-lock"].map((one) => isLimited(one as never)),
    ).toEqual([false, false, false]);
  });

  test("after a run that has ended by itself", () => {
    const acts = [act(4_000_000), act(3_000_000), act(2_000_000)];
    expect(decide(acts, { lastOwnEndAt: NOW.at - 1_000_000 })).toEqual({ kind: "go" });
  });
});

describe("a repair stops", () => {
  test("within the interval, by the clock that stands still in a suspend", () => {
    const why = { because: "repair-interval", end: "repaired" } as const;
    const remaining = { kind: "stop", ...why, remainingMs: 1 } as const;
    expect(decide([act(599_999)])).toEqual(remaining);
    // The wall clock was set, and has no say within one boot.
    expect(decide([act(599_999, { at: 0 })])).toEqual(remaining);
    expect(decide([act(599_999, { at: NOW.at + 9e9 })])).toEqual(remaining);
  });

  test("within the interval by the wall clock, where the machine has booted since", () => {
    const other = { bootId: "a", monotonicMs: 0 };
    expect(decide([act(599_999, other)])).toMatchObject({ because: "repair-interval" });
    expect(decide([act(600_000, other)])).toEqual({ kind: "go" });
    // Of the future: it has just been.
    expect(decide([act(-5, other)])).toMatchObject({ remainingMs: 600_000 });
  });

  test("within the interval where somebody was signalled and did not end, and says so", () => {
    const tried = act(1, { end: "tried" });
    expect(decide([act(5), tried])).toMatchObject({ because: "repair-interval", end: "tried" });
    expect(decide([act(5), act(1, { end: "none" })])).toMatchObject({ end: "repaired" });
    // Nothing came of them: they are no repairs in a row.
    const vain = [
      act(3e6, { end: "tried" }),
      act(2e6, { end: "none" }),
      act(1e6, { end: "tried" }),
    ];
    expect(decide(vain)).toEqual({ kind: "go" });
  });

  test("after so many in a row, also where one of them was approved", () => {
    const acts = [act(4_000_000), act(3_000_000, { action: "end-owner" }), act(2_000_000)];
    expect(decide(acts)).toEqual({ kind: "stop", because: "max-repairs", count: 3 });
    const between = { lastOwnEndAt: NOW.at - 2_500_000 };
    expect(decide(acts, between)).toEqual({ kind: "go" });
  });

  test.each(["end-owner", "end-survivors", "end-suspects", "mark", "set-generation"] as const)(
    "counts %s",
    (action) => {
      expect(isLimited(action)).toBe(true);
      expect(decide([act(1, { action })])).toMatchObject({ because: "repair-interval" });
    },
  );
});
