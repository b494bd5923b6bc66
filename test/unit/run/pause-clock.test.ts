/** The clock that stands still while the tree is paused, and the limits that are measured on it. */
import { afterEach, describe, expect, jest, spyOn, test } from "bun:test";
import type { LimitName } from "../../../src/core/run-state.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import { LONGEST_WAIT_MS } from "../../../src/os/timers.ts";
import { watchIdleness } from "../../../src/run/idle-watch.ts";
import { setDeadlines, watchDeadlines } from "../../../src/run/limits.ts";
import { MOST_PAUSES, neverPaused, PauseClock } from "../../../src/run/pause-clock.ts";

/** CLOCK_MONOTONIC as a test sets it; far from 0, as after some time since the boot. */
class FakeMonotonic {
  #nowMs = 1_000_000;

  readonly read = (): MonotonicAt => this.#nowMs as MonotonicAt;

  pass(spanMs: number): MonotonicAt {
    this.#nowMs += spanMs;
    return this.read();
  }
}

function makeClock(countsPaused = false): { clock: PauseClock; monotonic: FakeMonotonic } {
  const monotonic = new FakeMonotonic();
  return { clock: new PauseClock(countsPaused, monotonic.read), monotonic };
}

describe("the clock of a run", () => {
  test("is CLOCK_MONOTONIC as long as nothing is paused", () => {
    const { clock, monotonic } = makeClock();
    expect(clock.now()).toBe(monotonic.read());
    const later = monotonic.pass(70);
    expect(clock.now()).toBe(later);
    expect([clock.pausedMs, clock.standsStill]).toEqual([0, false]);
  });

  test("stands still in a pause, and goes on after it from where it stood", () => {
    const { clock, monotonic } = makeClock();
    const began = monotonic.pass(100);
    clock.pause();
    monotonic.pass(40);
    expect([clock.now(), clock.pausedMs, clock.standsStill]).toEqual([began, 40, true]);
    clock.resume();
    monotonic.pass(7);
    expect([clock.now() - began, clock.pausedMs, clock.standsStill]).toEqual([7, 40, false]);
  });

  test("takes a second pause within one, and an end without one, for nothing", () => {
    const { clock, monotonic } = makeClock();
    clock.resume();
    clock.pause();
    monotonic.pass(10);
    clock.pause();
    monotonic.pass(10);
    clock.resume();
    clock.resume();
    monotonic.pass(10);
    expect([clock.pausedMs, monotonic.read() - clock.now()]).toEqual([20, 20]);
  });

  test("goes on where paused time counts, and tells of it all the same", () => {
    const { clock, monotonic } = makeClock(true);
    clock.pause();
    monotonic.pass(500);
    expect([clock.now(), clock.standsStill, clock.pausedMs]).toEqual([
      monotonic.read(),
      false,
      500,
    ]);
    clock.resume();
    expect([clock.now(), clock.pausedMs]).toEqual([monotonic.read(), 500]);
  });

  test("tells every instant before, in and after pauses as it showed it then", () => {
    const { clock, monotonic } = makeClock();
    const shown: [MonotonicAt, MonotonicAt][] = [];
    const note = (): unknown => shown.push([monotonic.read(), clock.now()]);
    for (let round = 0; round < 30; round += 1) {
      note();
      monotonic.pass(1 + (round % 4));
      note();
      if (round % 3 === 0) clock.pause();
      if (round % 3 === 2) clock.resume();
      note();
    }
    expect(shown.map(([instant]) => clock.at(instant))).toEqual(shown.map(([, at]) => at));
    const instants = shown.map(([, at]) => at);
    expect(instants.toSorted((one, other) => one - other)).toEqual(instants);
    expect(clock.pausedMs).toBeGreaterThan(20);
  });

  test("keeps no more pauses apart than it says, and forgets none of their time", () => {
    const { clock, monotonic } = makeClock();
    const first = monotonic.read();
    for (let round = 0; round < MOST_PAUSES + 5; round += 1) {
      clock.pause();
      monotonic.pass(2);
      clock.resume();
      monotonic.pass(1);
    }
    expect(clock.pausedMs).toBe(2 * (MOST_PAUSES + 5));
    expect(clock.now() - first).toBe(MOST_PAUSES + 5);
    // So far back it looks older than it is, and never younger than another instant.
    expect(clock.at(first)).toBe((first - 2 * 5) as MonotonicAt);
  });

  test("calls at the end of a pause whoever waits on it, until they wait no more", () => {
    const { clock } = makeClock();
    let calls = 0;
    const listener = clock.onResumed(() => (calls += 1));
    for (const expected of [1, 2]) {
      clock.pause();
      clock.resume();
      clock.resume();
      expect(calls).toBe(expected);
    }
    listener.cancel();
    clock.pause();
    clock.resume();
    expect(calls).toBe(2);
  });

  test("of those who know of no pauses never stands still", () => {
    const clock = neverPaused();
    clock.pause();
    expect(clock.standsStill).toBe(false);
  });
});

const NEVER_ASKED = 0 as WallAt;

function optionsWith(timeoutMs: number | undefined): RunOptions {
  return { timeoutMs, notAfter: undefined } as unknown as RunOptions;
}

describe("--timeout", () => {
  afterEach(() => jest.useRealTimers());

  /** Timers and clock go on together, a millisecond at a time. */
  function watch(countsPaused: boolean, timeoutMs: number) {
    jest.useFakeTimers();
    const { clock, monotonic } = makeClock(countsPaused);
    const reached: LimitName[] = [];
    const deadlines = setDeadlines(optionsWith(timeoutMs), NEVER_ASKED, clock);
    const timer = watchDeadlines(deadlines, (limit) => reached.push(limit), clock);
    const pass = (spanMs: number): void => {
      for (let passed = 0; passed < spanMs; passed += 1) {
        monotonic.pass(1);
        jest.advanceTimersByTime(1);
      }
    };
    return { clock, reached, timer, pass };
  }

  test("is reached when it is without a pause", () => {
    const { reached, pass } = watch(false, 300);
    pass(299);
    expect(reached).toEqual([]);
    pass(2);
    expect(reached).toEqual(["timeout"]);
  });

  test("is not reached in a pause, however long, and in time after it", () => {
    const { clock, reached, pass } = watch(false, 300);
    pass(200);
    clock.pause();
    pass(LONGEST_WAIT_MS * 2 + 5_000);
    expect(reached).toEqual([]);
    clock.resume();
    pass(99);
    expect(reached).toEqual([]);
    // The timer of before the pause knew nothing of it; that of the pause would come much later.
    pass(2);
    expect(reached).toEqual(["timeout"]);
    pass(1_000);
    expect(reached).toEqual(["timeout"]);
  });

  test("wakes nobody again and again in a pause, however little of it is left", () => {
    const { clock, pass } = watch(false, 300);
    pass(299);
    const looks = spyOn(clock, "now");
    clock.pause();
    pass(10_000);
    expect(looks.mock.calls.length).toBeLessThan(5);
    looks.mockRestore();
  });

  test("is reached in a pause where paused time counts", () => {
    const { clock, reached, pass } = watch(true, 300);
    pass(200);
    clock.pause();
    pass(101);
    expect(reached).toEqual(["timeout"]);
  });

  test("that was cancelled is never reached, also not through the end of a pause", () => {
    const { clock, reached, timer, pass } = watch(false, 300);
    timer.cancel();
    clock.pause();
    pass(10);
    clock.resume();
    pass(1_000);
    expect(reached).toEqual([]);
  });
});

test("--not-after knows of no pause", () => {
  jest.useFakeTimers();
  const { clock } = makeClock();
  clock.pause();
  const reached: LimitName[] = [];
  const notAfterAt = (Date.now() - 1) as WallAt;
  watchDeadlines({ timeoutAt: undefined, notAfterAt }, (limit) => reached.push(limit), clock);
  expect(reached).toEqual(["not-after"]);
  jest.useRealTimers();
});

describe("--idle-timeout", () => {
  afterEach(() => jest.useRealTimers());

  const POLICY = { spanMs: 1_000, cpuPercent: 1, ioBytesPerMinute: 65_536 };

  function watch(countsPaused: boolean) {
    jest.useFakeTimers();
    const { clock, monotonic } = makeClock(countsPaused);
    const seen = { idle: 0, looks: 0, outputAt: undefined as MonotonicAt | undefined };
    const subject = {
      members: () => {
        seen.looks += 1;
        return [];
      },
      collectedCpuMs: () => 0,
      lastOutputAt: () => seen.outputAt,
    };
    watchIdleness(subject, POLICY, () => (seen.idle += 1), clock);
    const pass = (spanMs: number): void => {
      for (let passed = 0; passed < spanMs; passed += 10) {
        monotonic.pass(10);
        jest.advanceTimersByTime(10);
      }
    };
    return { clock, monotonic, seen, pass };
  }

  test("finds a tree idle that did nothing for the span", () => {
    const { seen, pass } = watch(false);
    pass(900);
    expect(seen.idle).toBe(0);
    pass(200);
    expect(seen.idle).toBeGreaterThan(0);
  });

  test("does not look at one that was made to stand still, and goes on after it", () => {
    const { clock, seen, pass } = watch(false);
    pass(500);
    clock.pause();
    const { looks } = seen;
    pass(60_000);
    expect([seen.looks - looks, seen.idle]).toEqual([0, 0]);
    clock.resume();
    pass(400);
    expect(seen.idle).toBe(0);
    pass(200);
    expect(seen.idle).toBeGreaterThan(0);
  });

  test.each(["before", "in", "after"])(
    "takes output from %s a pause for as old as it is without that",
    (when) => {
      const { clock, monotonic, seen, pass } = watch(false);
      pass(800);
      if (when === "before") seen.outputAt = monotonic.read();
      clock.pause();
      pass(2_500);
      if (when === "in") seen.outputAt = monotonic.read();
      pass(2_500);
      clock.resume();
      if (when === "after") seen.outputAt = monotonic.read();
      pass(900);
      expect(seen.idle).toBe(0);
      pass(200);
      expect(seen.idle).toBeGreaterThan(0);
    },
  );

  test("finds it idle in a pause where paused time counts", () => {
    const { clock, seen, pass } = watch(true);
    clock.pause();
    pass(1_200);
    expect(seen.idle).toBeGreaterThan(0);
  });
});
