/**
 * Whole series of waits over all settings, against a bound that is made by multiplying again and
 * again, and against what a person may expect of attempts and of time.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { checkBackoff, decideNextAttempt, startBackoff } from "../../src/core/backoff.ts";
import type { Backoff, BackoffState, NextAttempt } from "../../src/core/backoff.ts";
import type { MonotonicAt } from "../../src/core/time.ts";

const span = fc.integer({ min: 1, max: 3_650 * 86_400_000 });
const backoffs = fc
  .record({
    initialMs: fc.oneof(span, fc.integer({ min: 1, max: 5_000 })),
    capMs: fc.oneof(span, fc.integer({ min: 1, max: 60_000 })),
    factor: fc.oneof(
      fc.constant(1),
      fc.constant(2),
      fc.double({ min: 1, max: 1_000, noNaN: true }),
    ),
    maxAttempts: fc.integer({ min: 1, max: 60 }),
    maxElapsedMs: fc.oneof(span, fc.integer({ min: 1, max: 600_000 })),
  })
  .filter((backoff) => checkBackoff(backoff).length === 0);
const dice = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
  minLength: 1,
  maxLength: 40,
});

/** By steps, never by a power. */
function* listBounds({ initialMs, factor, capMs }: Backoff): Generator<number> {
  for (let bound = initialMs; ; bound = bound >= capMs ? capMs : bound * factor) {
    yield Math.min(bound, capMs);
  }
}

interface Series {
  readonly delays: readonly number[];
  readonly end: Extract<NextAttempt, { kind: "exhausted" }>["because"] | undefined;
  readonly state: BackoffState;
}

/** @param lateMs  how much later than asked each attempt fails */
function runSeries(
  backoff: Backoff,
  { random, lateMs, attempts }: { random: readonly number[]; lateMs: number; attempts: number },
): Series {
  const delays: number[] = [];
  let now = 1_000_000;
  let state = startBackoff(now as MonotonicAt, attempts);
  for (let step = 0; step < 10_000; step += 1) {
    const chance = { nowMs: now as MonotonicAt, random: random[step % random.length] ?? 0 };
    const next = decideNextAttempt(backoff, state, chance);
    if (next.kind === "exhausted") return { delays, end: next.because, state };
    delays.push(next.delayMs);
    now += next.delayMs + lateMs;
    state = next.state;
  }
  return { delays, end: undefined, state };
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}

test("each wait is the share of its bound that the dice say, or what is left of the time", () => {
  let cut = 0;
  fc.assert(
    fc.property(backoffs, dice, (backoff, random) => {
      const { delays } = runSeries(backoff, { random, lateMs: 0, attempts: 1 });
      const bounds = listBounds(backoff);
      let passed = 0;
      for (const [index, delay] of delays.entries()) {
        const bound = bounds.next().value as number;
        const wanted = (random[index % random.length] ?? 0) * bound;
        const rest = backoff.maxElapsedMs - passed;
        expect(Number.isFinite(delay) && delay >= 0 && delay <= backoff.capMs).toBe(true);
        const off = Math.abs(delay - Math.min(wanted, rest));
        expect(off <= 1e-6 * Math.max(1, bound, backoff.maxElapsedMs)).toBe(true);
        if (wanted > rest) cut += 1;
        passed += delay;
      }
    }),
    { numRuns: 2_000 },
  );
  expect(cut).toBeGreaterThan(20);
});

test("a series ends for a reason that is true, and keeps both bounds", () => {
  const ends = new Map<string, number>();
  const late = fc.integer({ min: 0, max: 10_000 });
  fc.assert(
    fc.property(
      backoffs,
      dice,
      late,
      fc.constantFrom(0, 1),
      (backoff, random, lateMs, attempts) => {
        const { delays, end, state } = runSeries(backoff, { random, lateMs, attempts });
        const made = attempts + delays.length;
        const elapsedMs = sumOf(delays) + lateMs * delays.length;
        const waitedMs = elapsedMs - (delays.length > 0 ? lateMs : 0);
        const near = 1e-6 * backoff.maxElapsedMs;
        expect(made).toBe(state.attempts);
        expect(made <= backoff.maxAttempts).toBe(true);
        expect(waitedMs <= backoff.maxElapsedMs + near).toBe(true);
        if (end === "max-attempts") expect(made).toBe(backoff.maxAttempts);
        else expect([end, elapsedMs >= backoff.maxElapsedMs - near]).toEqual(["max-elapsed", true]);
        ends.set(String(end), (ends.get(String(end)) ?? 0) + 1);
      },
    ),
    { numRuns: 2_000 },
  );
  expect([...ends.keys()].toSorted()).toEqual(["max-attempts", "max-elapsed"]);
  expect(Math.min(...ends.values())).toBeGreaterThan(50);
});

test("ten thousand steps without a bound stay numbers below the cap, for every factor", () => {
  for (const factor of [1, 1.000_001, 2, 10, 1_000]) {
    for (const initialMs of [1, 1_000, 3e11]) {
      const backoff = {
        initialMs,
        capMs: 3e11,
        factor,
        maxAttempts: 1_000_000,
        maxElapsedMs: Number.MAX_VALUE,
      };
      const { delays, end } = runSeries(backoff, { random: [0.5, 0.999], lateMs: 0, attempts: 0 });
      expect([end, delays.length]).toEqual([undefined, 10_000]);
      expect(delays.every((delay) => delay > 0 && delay <= 3e11)).toBe(true);
      const grows = factor > 1.1 || initialMs === 3e11;
      if (grows) expect(delays.at(-2)).toBe(1.5e11);
    }
  }
});
