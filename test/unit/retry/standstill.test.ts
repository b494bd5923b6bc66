/** The clock of the total time: it stands still while the process does, else it is MONOTONIC. */
import { expect, test } from "bun:test";
import type { MonotonicAt } from "../../../src/core/time.ts";
import { MovingClock } from "../../../src/retry/standstill.ts";

function makeClock(isWatching: boolean) {
  const time = { at: 5_000 };
  const clock = new MovingClock(isWatching, () => time.at as MonotonicAt);
  const began = clock.now();
  const pass = (ms: number): number => {
    time.at += ms;
    return clock.now() - began;
  };
  return { clock, pass };
}

test("time passes while it is looked at often enough", () => {
  const { clock, pass } = makeClock(true);
  expect([pass(0), pass(600), pass(2_000), pass(1)]).toEqual([0, 600, 2_600, 2_601]);
  clock.end();
});

test("an hour of standing still is hardly any time", () => {
  const { clock, pass } = makeClock(true);
  expect([pass(100), pass(3_600_000), pass(100)]).toEqual([100, 600, 700]);
  clock.end();
});

test("without a run that stands still, an hour is an hour", () => {
  const { clock, pass } = makeClock(false);
  expect(pass(3_600_000)).toBe(3_600_000);
  clock.end();
});
