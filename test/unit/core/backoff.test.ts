/** Waits of a backoff, its two bounds, and the relations between its settings. */
import { describe, expect, test } from "bun:test";
import {
  boundMs,
  checkBackoff,
  decideNextAttempt,
  startBackoff,
} from "../../../src/core/backoff.ts";
import type { Backoff, BackoffRelation, BackoffState } from "../../../src/core/backoff.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";

const BACKOFF: Backoff = {
  initialMs: 1_000,
  capMs: 30_000,
  factor: 2,
  maxAttempts: 20,
  maxElapsedMs: 300_000,
};

const at = (ms: number): MonotonicAt => ms as MonotonicAt;
const START = startBackoff(at(50_000), 1);

function decide(state: BackoffState, { nowMs = 50_000, random = 0.5, backoff = BACKOFF } = {}) {
  return decideNextAttempt(backoff, state, { nowMs: at(nowMs), random });
}

describe("a wait", () => {
  test("is bounded by a power that grows up to the cap", () => {
    const bounds = [0, 1, 2, 3, 4, 5, 6, 60].map((n) => boundMs(BACKOFF, n));
    expect(bounds).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  test("is anything from nothing to its bound, as the dice say", () => {
    const state = { ...START, waits: 3 };
    const delays = [0, 0.25, 0.5, 0.999].map((random) => {
      const next = decide(state, { random });
      return next.kind === "wait" ? next.delayMs : next.because;
    });
    expect(delays).toEqual([0, 2_000, 4_000, 7_992]);
  });

  test("counts the attempt that it is for, and the power of the next one", () => {
    const next = decide(START);
    const state = { startedAt: at(50_000), attempts: 2, waits: 1 };
    expect(next).toEqual({ kind: "wait", delayMs: 500, state });
  });

  test("ends with the total time at the latest", () => {
    const state = { ...START, waits: 9 };
    const next = decide(state, { nowMs: 50_000 + 299_000, random: 0.9 });
    expect(next).toMatchObject({ kind: "wait", delayMs: 1_000 });
  });

  test("is a number after 10,000 others, also where nothing was checked", () => {
    const state = { ...START, waits: 10_000 };
    for (const [initialMs, factor] of [
      [1_000, 2],
      [0, 1_000],
      [1, 1],
    ] as const) {
      const backoff = { ...BACKOFF, initialMs, factor, maxAttempts: 20_000 };
      const next = decide(state, { backoff });
      expect(next).toMatchObject({
        kind: "wait",
        delayMs: initialMs === 1_000 ? 15_000 : initialMs / 2,
      });
    }
  });
});

describe("the end of a backoff", () => {
  test("comes with the last attempt, the first one counted", () => {
    expect(decide({ ...START, attempts: 19 }).kind).toBe("wait");
    expect(decide({ ...START, attempts: 20 })).toEqual({
      kind: "exhausted",
      because: "max-attempts",
    });
    expect(decide(START, { backoff: { ...BACKOFF, maxAttempts: 1 } }).kind).toBe("exhausted");
  });

  test("comes with the total time, to the millisecond", () => {
    expect(decide(START, { nowMs: 349_999 }).kind).toBe("wait");
    const over = { kind: "exhausted", because: "max-elapsed" } as const;
    expect(decide(START, { nowMs: 350_000 })).toEqual(over);
  });

  test("does not come because a clock has gone back", () => {
    expect(decide(START, { nowMs: 7, random: 0.5 })).toMatchObject({ kind: "wait", delayMs: 500 });
    // And the time that is left is not more than all of it.
    const backoff = { ...BACKOFF, maxElapsedMs: 5_000 };
    const next = decide({ ...START, waits: 9 }, { nowMs: 7, random: 0.9, backoff });
    expect(next).toMatchObject({ kind: "wait", delayMs: 5_000 });
  });
});

describe("the settings of a backoff", () => {
  test("are as they must be by default and at every edge", () => {
    expect(checkBackoff(BACKOFF)).toEqual([]);
    expect(
      checkBackoff({ initialMs: 5, capMs: 5, factor: 1, maxAttempts: 1, maxElapsedMs: 5 }),
    ).toEqual([]);
  });

  test.each<[Partial<Backoff>, BackoffRelation]>([
    [{ initialMs: 0 }, "initial-not-positive"],
    [{ initialMs: -1 }, "initial-not-positive"],
    [{ capMs: 999 }, "cap-below-initial"],
    [{ factor: 0.99 }, "factor-below-1"],
    [{ factor: Number.NaN }, "factor-below-1"],
    [{ maxAttempts: 0 }, "attempts-below-1"],
    [{ maxAttempts: 1.5 }, "attempts-below-1"],
    [{ maxElapsedMs: 0 }, "elapsed-not-positive"],
    [{ maxElapsedMs: 999 }, "elapsed-below-initial"],
    [{ capMs: Number.POSITIVE_INFINITY }, "beyond-limits"],
    [{ maxElapsedMs: 4e11 }, "beyond-limits"],
    [{ factor: 1_001 }, "beyond-limits"],
    [{ maxAttempts: 1_000_001 }, "beyond-limits"],
  ])("with %j break a relation that is named: %s", (change, because) => {
    expect(checkBackoff({ ...BACKOFF, ...change }).map((each) => each.because)).toEqual([because]);
  });

  test("are told with both numbers of the relation", () => {
    const [broken] = checkBackoff({ ...BACKOFF, capMs: 500 });
    expect(broken?.found).toBe("a cap of 500 ms below a first delay of 1000 ms");
    expect(broken?.expected).toBe("a cap of at least the first delay");
  });

  test("that are no numbers are not accepted anywhere", () => {
    for (const name of Object.keys(BACKOFF)) {
      expect(checkBackoff({ ...BACKOFF, [name]: Number.NaN })).not.toEqual([]);
    }
  });
});
