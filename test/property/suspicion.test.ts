/** A success that is far from usual, over random histories. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  decideSuspicion,
  decideSuspicions,
  FEWEST_RUNS,
  LEAST_DIFFERENCE,
  type Measure,
  MOST_RUNS,
} from "../../src/core/suspicion.ts";

const MINUTE = 60_000;
const usualOf = fc.integer({ min: 1, max: 10 ** 12 });
const name = fc.constantFrom<Measure["name"]>("duration_ms", "output_bytes", "artifact_bytes:x");

/** Runs before that lie within a factor around the usual. */
function history(usual: number, spread: number): fc.Arbitrary<number[]> {
  const factor = fc.double({ min: 1 / spread, max: spread, noNaN: true });
  return fc
    .array(factor, { minLength: FEWEST_RUNS, maxLength: MOST_RUNS })
    .map((factors) => factors.map((one) => Math.round(usual * one)));
}

test("a job that is constant within a factor of the square root of two is never suspicious", () => {
  const jobs = usualOf.chain((usual) =>
    fc.tuple(
      history(usual, 1.41),
      fc.double({ min: 1 / 1.41, max: 1.41, noNaN: true }),
      fc.constant(usual),
      name,
    ),
  );
  fc.assert(
    fc.property(jobs, ([before, factor, usual, measure]) => {
      const value = Math.round(usual * factor);
      expect(decideSuspicion({ name: measure, value, before })).toBeUndefined();
    }),
    { numRuns: 5_000 },
  );
});

test("a job that is exactly the same each time is not suspicious, at 0 neither", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 15 }), name, (value, measure) => {
      const before = Array<number>(MOST_RUNS).fill(value);
      expect(decideSuspicion({ name: measure, value, before })).toBeUndefined();
    }),
  );
});

test("whatever the history: within half and twice the usual nothing is suspicious", () => {
  const histories = fc.array(fc.integer({ min: 0, max: 10 ** 9 }), {
    minLength: FEWEST_RUNS,
    maxLength: MOST_RUNS,
  });
  fc.assert(
    fc.property(
      histories,
      fc.integer({ min: 0, max: 2 * 10 ** 9 }),
      name,
      (before, value, measure) => {
        const found = decideSuspicion({ name: measure, value, before });
        if (found === undefined) return;
        const isNear = value >= found.usual / 2 && value <= found.usual * 2;
        expect([isNear, found]).toEqual([false, found]);
      },
    ),
    { numRuns: 5_000 },
  );
});

test("a dump that has shrunk by 90 % is suspicious, also where its size wanders by a third", () => {
  const jobs = fc
    .integer({ min: 10_000, max: 10 ** 12 })
    .chain((usual) => fc.tuple(history(usual, 1.33), fc.constant(usual)));
  fc.assert(
    fc.property(jobs, ([before, usual]) => {
      const value = Math.round(usual / 10);
      const found = decideSuspicion({ name: "artifact_bytes:dump", value, before });
      expect(found?.measure).toBe("artifact_bytes:dump");
      expect(found?.runs).toBe(before.length);
    }),
    { numRuns: 2_000 },
  );
});

test("two seconds instead of forty minutes are suspicious", () => {
  fc.assert(
    fc.property(history(40 * MINUTE, 1.5), (before) => {
      expect(decideSuspicion({ name: "duration_ms", value: 2_000, before })).toBeDefined();
    }),
  );
});

test("nearly half of the runs before may have been odd themselves", () => {
  const odd = Array<number>(6).fill(2_000);
  const before = [...odd, ...Array<number>(9).fill(40 * MINUTE)];
  const decide = (value: number) => decideSuspicion({ name: "duration_ms", value, before });
  expect([decide(2_000)?.usual, decide(40 * MINUTE)]).toEqual([40 * MINUTE, undefined]);
});

test("the bound is that of Iglewicz and Hoaglin, on the logarithms", () => {
  // Median 10^6, median deviation ln 2: 3.5 / 0.6745 of it is a factor of 36.5.
  const before = [250_000, 500_000, 1_000_000, 2_000_000, 4_000_000];
  const of = (value: number) => decideSuspicion({ name: "output_bytes", value, before });
  expect([of(36_000_000), of(Math.round(1_000_000 / 36))]).toEqual([undefined, undefined]);
  expect(of(37_000_000)?.usual).toBe(1_000_000);
  expect(of(Math.round(1_000_000 / 37))?.spread).toBeCloseTo(2, 4);
});

test("what is usual of an even number of runs lies between the two in the middle", () => {
  const before = [1_000_000, 1_000_000, 1_000_000, 4_000_000, 4_000_000, 4_000_000];
  const found = decideSuspicion({ name: "output_bytes", value: 1, before });
  expect(found?.usual).toBeWithin(1_999_999, 2_000_002);
});

test("fewer than five runs say nothing", () => {
  const of = (count: number) =>
    decideSuspicion({ name: "output_bytes", value: 0, before: Array<number>(count).fill(10 ** 6) });
  expect([of(0), of(FEWEST_RUNS - 1)]).toEqual([undefined, undefined]);
  expect(of(FEWEST_RUNS)).toMatchObject({ value: 0, usual: 10 ** 6, spread: 1, runs: FEWEST_RUNS });
});

test("what a machine's mood can do to a short job is no news", () => {
  const before = Array<number>(10).fill(20);
  const of = (value: number) => decideSuspicion({ name: "duration_ms", value, before });
  expect(of(20 + LEAST_DIFFERENCE.duration_ms)).toBeUndefined();
  expect(of(21 + LEAST_DIFFERENCE.duration_ms)).toBeDefined();
});

test("each measure is judged by itself", () => {
  const before = Array<number>(5).fill(10 ** 6);
  const found = decideSuspicions([
    { name: "output_bytes", value: 10 ** 6, before },
    { name: "artifact_bytes:a", value: 1, before },
    { name: "duration_ms", value: 1, before: [] },
  ]);
  expect(found.map(({ measure }) => measure)).toEqual(["artifact_bytes:a"]);
});
