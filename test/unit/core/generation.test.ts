/** The number of the next grant of a key. */
import { expect, test } from "bun:test";
import { WatchdogError } from "../../../src/core/errors.ts";
import { decideGeneration, type KnownGenerations } from "../../../src/core/generation.ts";

const NOTHING: KnownGenerations = { record: undefined, slots: [], floor: 0, journal: undefined };

function decide(more: Partial<KnownGenerations>): number {
  return decideGeneration({ ...NOTHING, ...more });
}

test("the first grant of a key is number 1", () => {
  expect(decide({})).toBe(1);
});

test.each<Partial<KnownGenerations>>([
  { record: 7, slots: [3], floor: 2, journal: 6 },
  { record: 3, slots: [6, 7, 1], floor: 2, journal: 6 },
  { record: 3, slots: [6], floor: 7, journal: 6 },
  { record: 3, slots: [6], floor: 2, journal: 7 },
  { record: 7 },
  { slots: [7] },
  { floor: 7 },
  { journal: 7 },
])("is one more than the largest that is known from anywhere: %j", (known) => {
  expect(decide(known)).toBe(8);
});

test("a number that an acquirer took before it died is skipped", () => {
  expect(decide({ record: 4, slots: [4, 5], journal: 4 })).toBe(6);
});

test.each([Number.NaN, -3, 1.5, Infinity, 2 ** 53])(
  "what nobody can have granted, %p, is no number",
  (odd) => {
    expect(decide({ record: odd, slots: [odd, 4], floor: odd, journal: odd })).toBe(5);
  },
);

test("more slots than a call can have arguments are compared", () => {
  const slots = Array.from({ length: 300_000 }, (_, index) => index);
  expect(decide({ slots })).toBe(300_000);
});

test("where the numbers are used up it is refused, and none is given twice", () => {
  expect(decide({ record: Number.MAX_SAFE_INTEGER - 1 })).toBe(Number.MAX_SAFE_INTEGER);
  let caught: unknown;
  try {
    decide({ journal: Number.MAX_SAFE_INTEGER });
  } catch (error) {
    caught = error;
  }
  expect(caught).toBeInstanceOf(WatchdogError);
  expect((caught as WatchdogError).code).toBe("lease.refused");
});
