/** The period of the main loop's counter, and the silence that is called a block. */
import { describe, expect, test } from "bun:test";
import { blockedAfterMs, countPeriodMs } from "../../../src/core/main-loop-count.ts";

/** From the shortest interval that can be asked for to the longest, and the usual one. */
const INTERVALS = [100, 500, 1_999, 2_000, 3_000, 4_000, 7_000, 10_000, 60_000, 86_400_000];

describe("the main loop", () => {
  test("is counted twice in an interval, but at most once a second and at least every five", () => {
    const periods = [100, 2_000, 3_000, 10_000, 86_400_000].map(countPeriodMs);
    expect(periods).toEqual([1_000, 1_000, 1_500, 5_000, 5_000]);
  });

  test("is called blocked only after two periods without a count, and never before 5 s", () => {
    for (const interval of INTERVALS) {
      expect(blockedAfterMs(interval)).toBeGreaterThanOrEqual(2 * countPeriodMs(interval));
      expect(blockedAfterMs(interval)).toBeGreaterThanOrEqual(5_000);
    }
  });

  test("that blocks is called so by the second beat, or by the first one after 5 s", () => {
    for (const interval of INTERVALS) {
      expect(blockedAfterMs(interval)).toBeLessThanOrEqual(Math.max(5_000, interval));
    }
  });

  test("is judged without an interval as with the longest", () => {
    expect(blockedAfterMs(Infinity)).toBe(blockedAfterMs(86_400_000));
  });
});
