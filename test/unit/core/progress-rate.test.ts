/** How fast a job works, and how long it will take for the rest. */
import { describe, expect, test } from "bun:test";
import {
  addSample,
  itemsPerMinute,
  MOST_SAMPLES,
  perMinute,
  type ProgressSample,
  timeLeftMs,
} from "../../../src/core/progress-rate.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";

const MINUTE_MS = 60_000;
const at = (ms: number, done: number): ProgressSample => ({ at: ms as MonotonicAt, done });

/** A job that does an item each so many milliseconds, looked at each second. */
function work(itemMs: number, forMs: number, from = at(0, 0)): readonly ProgressSample[] {
  let samples: readonly ProgressSample[] = [from];
  for (let ms = 1_000; ms <= forMs; ms += 1_000) {
    samples = addSample(samples, at(from.at + ms, from.done + Math.floor(ms / itemMs)));
  }
  return samples;
}

describe("the rate", () => {
  test.each([
    [10, 10 * MINUTE_MS],
    [1_000, 30 * MINUTE_MS],
    [7_000, 60 * MINUTE_MS],
    [600_000, 24 * 60 * MINUTE_MS],
  ])("of a steady job with an item each %i ms is right within a tenth", (itemMs, forMs) => {
    const samples = work(itemMs, forMs);
    const rate = itemsPerMinute(samples, at(forMs, Math.floor(forMs / itemMs))) ?? Number.NaN;
    expect(rate / (MINUTE_MS / itemMs)).toBeGreaterThan(0.9);
    expect(rate / (MINUTE_MS / itemMs)).toBeLessThan(1.1);
    expect(samples.length).toBeLessThanOrEqual(MOST_SAMPLES);
  });

  test("forgets how fast it was an hour ago", () => {
    const fast = work(100, 60 * MINUTE_MS);
    let samples = fast;
    const last = fast.at(-1) ?? at(0, 0);
    for (let ms = 10_000; ms <= 10 * MINUTE_MS; ms += 10_000) {
      samples = addSample(samples, at(last.at + ms, last.done + ms / 10_000));
    }
    const now = at(last.at + 10 * MINUTE_MS, last.done + 60);
    expect(itemsPerMinute(samples, now)).toBeCloseTo(6, 0);
  });

  test("falls while nothing comes", () => {
    const samples = work(1_000, 5 * MINUTE_MS);
    const soon = itemsPerMinute(samples, at(5 * MINUTE_MS, 300)) ?? 0;
    const later = itemsPerMinute(samples, at(50 * MINUTE_MS, 300)) ?? 0;
    expect(later).toBeLessThan(soon / 5);
  });

  test("is not told of a moment, and never negative", () => {
    expect(itemsPerMinute([at(0, 0)], at(999, 50))).toBeUndefined();
    expect(itemsPerMinute([], at(99_999, 50))).toBeUndefined();
    expect(itemsPerMinute([at(0, 90)], at(60_000, 50))).toBe(0);
    expect(perMinute(3, Number.NaN)).toBeUndefined();
    expect(perMinute(90, 2 * MINUTE_MS)).toBe(45);
  });
});

describe("the time that is left", () => {
  test("is the rest at that rate", () => {
    expect(timeLeftMs({ done: 900, total: 1_800 }, 45)).toBe(20 * MINUTE_MS);
    expect(timeLeftMs({ done: 1_800, total: 1_800 }, undefined)).toBe(0);
    expect(timeLeftMs({ done: 1_900, total: 1_800 }, 45)).toBe(0);
  });

  test.each([
    [undefined, 45],
    [null, 45],
    [1_800, undefined],
    [1_800, null],
    [1_800, 0],
    [1e9, 1e-9],
  ])("is not known of a total of %j at %j a minute", (total, rate) => {
    expect(timeLeftMs({ done: 1, total }, rate)).toBeUndefined();
  });
});
