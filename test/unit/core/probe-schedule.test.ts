/** When the next request is sent, and how often others are looked after. */
import { describe, expect, test } from "bun:test";
import type { CircuitState } from "../../../src/core/circuit.ts";
import { FRESH_CIRCUIT } from "../../../src/core/circuit.ts";
import { decideNextProbe, pollMsOf } from "../../../src/core/probe-schedule.ts";
import type { SharedCircuit } from "../../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;
const NOW = 1_000_000;
const TIMES = { periodMs: 10_000 };
const BROKEN = { openedAt: at(0), backoff: { startedAt: at(0), attempts: 1, waits: 1 } };
const OPEN: CircuitState = { kind: "open", ...BROKEN, retryAt: at(NOW + 100) };
const FIRST: CircuitState = { kind: "half-open", ...BROKEN, successes: 0, isTrialOut: false };

function plan(
  state: CircuitState,
  { lastAt = null as number | null, mayTry = true, notBeforeAt = 0 } = {},
) {
  const note = { because: "good", detail: "", wallAt: 0 as WallAt } as const;
  const lastProbe = lastAt === null ? null : { ...note, at: at(lastAt) };
  const circuit = { state, lastProbe } as SharedCircuit;
  return decideNextProbe({ circuit, mayTry, notBeforeAt: at(notBeforeAt), nowMs: at(NOW) }, TIMES);
}

describe("a closed circuit", () => {
  test("is asked one period after the last question, and at once where there was none", () => {
    expect(plan(FRESH_CIRCUIT)).toEqual({ kind: "probe" });
    expect(plan(FRESH_CIRCUIT, { lastAt: NOW - 10_000 })).toEqual({ kind: "probe" });
    expect(plan(FRESH_CIRCUIT, { lastAt: NOW - 9_999 })).toMatchObject({
      because: "period",
      untilAt: NOW + 1,
    });
    expect(plan(FRESH_CIRCUIT, { lastAt: NOW + 1 })).toEqual({ kind: "probe" });
  });

  test("is not asked before the first delay is over", () => {
    expect(plan(FRESH_CIRCUIT, { notBeforeAt: NOW + 1 })).toMatchObject({ because: "delay" });
    expect(plan(FRESH_CIRCUIT, { notBeforeAt: NOW })).toEqual({ kind: "probe" });
  });
});

describe("one that is not closed", () => {
  test("is tried only where `due` would let it through", () => {
    const permanent = { ...OPEN, kind: "permanent", because: "max-attempts" } as CircuitState;
    for (const state of [OPEN, permanent]) {
      expect(plan(state)).toEqual({ kind: "try" });
      const waits = { kind: "wait", because: "open", untilAt: at(NOW + 100) } as const;
      expect(plan(state, { mayTry: false })).toEqual(waits);
    }
    const out = { kind: "wait", because: "trial-out", untilAt: undefined } as const;
    expect(plan({ ...FIRST, isTrialOut: true } as CircuitState, { mayTry: false })).toEqual(out);
  });

  test("is tried again a period after a good trial, and at once where that was lost", () => {
    expect(plan(FIRST, { lastAt: NOW - 1 })).toEqual({ kind: "try" });
    const second = { ...FIRST, successes: 1 } as CircuitState;
    expect(plan(second, { lastAt: NOW - 1 })).toMatchObject({ because: "period" });
    expect(plan(second, { lastAt: NOW - 10_000 })).toEqual({ kind: "try" });
  });
});

test("others are looked after twice a period, within 0.1 and 1 s", () => {
  expect([1, 100, 500, 2_000, 60_000].map((periodMs) => pollMsOf({ periodMs }))).toEqual([
    100, 100, 250, 1_000, 1_000,
  ]);
});
