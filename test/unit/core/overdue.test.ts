/** When a job is overdue, and why: every reason, and the calendar's odd days. */
import { describe, expect, test } from "bun:test";
import { graceOf } from "../../../src/core/overdue.ts";
import { basisOf, isSameBasis } from "../../../src/core/schedule.ts";
import { at, DAY_MS, decide, type Given, HOUR_MS } from "../../support/schedules.ts";

const SUCCESS = at("2026-06-10T02:10:00Z");
const DAILY: Given = {
  everyMs: DAY_MS,
  declaredAt: at("2026-06-01T02:00:00Z"),
  lastStartAt: SUCCESS - 600_000,
  lastSuccessAt: SUCCESS,
};
const MINUTE_MS = 60_000;

describe("a job that is expected every 24 hours", () => {
  test("is fine until the span and an hour have passed since its last success", () => {
    const lateAt = SUCCESS + 25 * HOUR_MS;
    expect(decide(DAILY, SUCCESS)).toEqual({ kind: "fine", dueAt: SUCCESS + DAY_MS, lateAt });
    expect(decide(DAILY, lateAt).kind).toBe("fine");
    expect(decide(DAILY, lateAt + 1)).toMatchObject({ kind: "overdue", since: lateAt });
  });

  test("is not-started 26 hours after its last success, where nothing was started since", () => {
    expect(decide(DAILY, SUCCESS + 26 * HOUR_MS)).toEqual({
      kind: "overdue",
      because: "not-started",
      dueAt: SUCCESS + DAY_MS,
      since: SUCCESS + 25 * HOUR_MS,
    });
  });

  test("is failing where runs were started since and did not go well", () => {
    const failed = { lastStartAt: SUCCESS + DAY_MS, lastFailureAt: SUCCESS + DAY_MS + MINUTE_MS };
    const now = SUCCESS + 26 * HOUR_MS;
    expect(decide({ ...DAILY, ...failed }, now)).toMatchObject({ because: "failing" });
    // The failures of before the last success are over.
    const before = { lastFailureAt: SUCCESS - DAY_MS };
    expect(decide({ ...DAILY, ...before }, now)).toMatchObject({ because: "not-started" });
  });

  test("is never-started where its command never was, whatever was refused", () => {
    const given = { everyMs: DAY_MS, declaredAt: SUCCESS, lastRefusalAt: SUCCESS + HOUR_MS };
    expect(decide(given, SUCCESS + 26 * HOUR_MS)).toMatchObject({ because: "never-started" });
    expect(decide(given, SUCCESS + 25 * HOUR_MS).kind).toBe("fine");
  });

  test("is measured from its declaration where it was never a success", () => {
    const given = { everyMs: DAY_MS, declaredAt: SUCCESS, lastStartAt: SUCCESS };
    expect(decide(given, SUCCESS + 26 * HOUR_MS)).toMatchObject({ because: "failing" });
  });

  test("is unsure where its last success has not happened yet", () => {
    const now = SUCCESS - 10 * MINUTE_MS;
    expect(decide(DAILY, now)).toEqual({ kind: "unsure", because: "clock-set-back" });
    expect(decide(DAILY, SUCCESS - MINUTE_MS).kind).toBe("fine");
  });
});

describe("a run that goes on", () => {
  const started = SUCCESS + 23 * HOUR_MS;
  const usual = { ...DAILY, runningSince: started, lastStartAt: started };

  test("is given as long as the longest of the good ones, and the grace", () => {
    const given = { ...usual, longestGoodMs: 4 * HOUR_MS };
    expect(decide(given, started + 5 * HOUR_MS)).toMatchObject({
      kind: "fine",
      lateAt: started + 5 * HOUR_MS,
    });
    expect(decide(given, started + 5 * HOUR_MS + 1)).toMatchObject({
      because: "running-too-long",
      since: started + 5 * HOUR_MS,
    });
  });

  test("is not given less than a run that has not begun", () => {
    const given = { ...usual, longestGoodMs: 1_000 };
    expect(decide(given, SUCCESS + 25 * HOUR_MS).kind).toBe("fine");
    expect(decide(given, SUCCESS + 25 * HOUR_MS + 1)).toMatchObject({
      because: "running-too-long",
    });
  });

  test("that was begun too late changes nothing but the reason", () => {
    const late = SUCCESS + 30 * HOUR_MS;
    const given = { ...DAILY, runningSince: late, lastStartAt: late, longestGoodMs: 9 * HOUR_MS };
    expect(decide(given, late + 1)).toMatchObject({
      kind: "overdue",
      because: "started-late",
      since: SUCCESS + 25 * HOUR_MS,
    });
    const failed = { ...given, lastFailureAt: SUCCESS + 29 * HOUR_MS };
    expect(decide(failed, late + 1)).toMatchObject({ because: "failing" });
  });
});

test("a run that began at the last moment of the grace began in time", () => {
  const runningSince = SUCCESS + 25 * HOUR_MS;
  const given = { ...DAILY, lastStartAt: runningSince, longestGoodMs: HOUR_MS };
  const now = runningSince + HOUR_MS;
  expect(decide({ ...given, runningSince }, now).kind).toBe("fine");
  const later = { ...given, runningSince: runningSince + 1 };
  expect(decide(later, now)).toMatchObject({ because: "started-late" });
});

test("what was judged stands only while the schedule and its last success are the same", () => {
  const basis = { everyMs: null, cron: "0 2 * * *", timeZone: "UTC", declaredAt: 1 };
  const one = { ...basis, lastSuccessAt: 2 };
  const others = [
    { ...one, everyMs: DAY_MS },
    { ...one, cron: "0 3 * * *" },
    { ...one, timeZone: "Europe/Berlin" },
    { ...one, declaredAt: 2 },
    { ...one, lastSuccessAt: null },
  ];
  expect(isSameBasis(one, basisOf({ ...one }))).toBe(true);
  expect(others.map((other) => isSameBasis(one, other))).toEqual(Array(5).fill(false));
});

describe("the grace", () => {
  test("is a 24th of the period, a minute at least and an hour at most", () => {
    expect(graceOf(DAY_MS)).toBe(HOUR_MS);
    expect(graceOf(365 * DAY_MS)).toBe(HOUR_MS);
    expect(graceOf(12 * HOUR_MS)).toBe(HOUR_MS / 2);
    expect(graceOf(5 * MINUTE_MS)).toBe(MINUTE_MS);
    expect(graceOf(1_000)).toBe(MINUTE_MS);
  });
});

function nightly(cron: string, success: string, timeZone = "Europe/Berlin"): Given {
  const lastSuccessAt = at(success);
  const lastStartAt = lastSuccessAt - 60_000;
  return { cron, timeZone, lastSuccessAt, lastStartAt };
}

function dueAfter(given: Given): string {
  const decision = decide(given, given.lastSuccessAt ?? 0);
  return decision.kind === "unsure" ? decision.because : new Date(decision.dueAt).toISOString();
}

describe("a job with a schedule", () => {
  test.each([
    // Local time, summer time, the ends of months (one is a day of changed clocks), leap days.
    ["0 2 * * *", "2026-06-10T00:10:00Z", "2026-06-11T00:00:00.000Z"],
    ["0 2 * * *", "2026-01-31T01:10:00Z", "2026-02-01T01:00:00.000Z"],
    ["0 2 31 * *", "2026-01-31T01:10:00Z", "2026-03-31T00:00:00.000Z"],
    ["0 2 29 2 *", "2024-02-29T01:10:00Z", "2028-02-29T01:00:00.000Z"],
    ["0 2 28-31 * *", "2027-02-28T01:10:00Z", "2027-03-28T01:00:00.000Z"],
    ["0 0 1 1 *", "2026-12-31T22:59:00Z", "2026-12-31T23:00:00.000Z"],
    ["0 2 * * 1-5", "2026-06-12T00:10:00Z", "2026-06-15T00:00:00.000Z"],
    ["@weekly", "2026-06-13T22:00:30Z", "2026-06-20T22:00:00.000Z"],
  ])("%s after %s is due at %s", (cron, success, dueAt) => {
    expect(dueAfter(nightly(cron, success))).toBe(dueAt);
  });

  test("counts a run for its own time where a clock was set back a little meanwhile", () => {
    expect(dueAfter(nightly("0 2 * * *", "2026-06-10T23:59:58Z"))).toBe("2026-06-12T00:00:00.000Z");
  });

  test("is expected again after a run by hand, at its next time", () => {
    expect(dueAfter(nightly("0 2 * * *", "2026-06-10T23:50:00Z"))).toBe("2026-06-11T00:00:00.000Z");
  });

  test("is unsure where its time zone is not known here", () => {
    expect(dueAfter(nightly("0 2 * * *", "2026-06-10T00:10:00Z", "Mars/Olympus"))).toBe(
      "no-calendar",
    );
  });

  test("has an hour of grace for a day, and a minute for five", () => {
    const daily = nightly("0 2 * * *", "2026-06-10T00:10:00Z");
    expect(decide(daily, at("2026-06-11T01:00:00Z")).kind).toBe("fine");
    expect(decide(daily, at("2026-06-11T01:00:01Z")).kind).toBe("overdue");
    const often = nightly("*/5 * * * *", "2026-06-10T00:00:10Z");
    expect(decide(often, at("2026-06-10T00:06:00Z")).kind).toBe("fine");
    expect(decide(often, at("2026-06-10T00:06:01Z")).kind).toBe("overdue");
  });
});

describe("when the clocks go forward (Berlin, 2026-03-29: 02:00 becomes 03:00)", () => {
  test("a time that is skipped is due right after the gap", () => {
    expect(dueAfter(nightly("30 2 * * *", "2026-03-28T01:35:00Z"))).toBe(
      "2026-03-29T01:30:00.000Z",
    );
  });

  test("a run that cron has made up for at 03:00 is that of the skipped time", () => {
    expect(dueAfter(nightly("30 2 * * *", "2026-03-29T01:04:00Z"))).toBe(
      "2026-03-30T00:30:00.000Z",
    );
  });

  test("a run by hand before the gap is not", () => {
    expect(dueAfter(nightly("30 2 * * *", "2026-03-29T00:50:00Z"))).toBe(
      "2026-03-29T01:30:00.000Z",
    );
  });

  test("the day is 23 hours long for a schedule, and 24 for --every", () => {
    expect(dueAfter(nightly("0 1 * * *", "2026-03-29T00:05:00Z"))).toBe("2026-03-29T23:00:00.000Z");
    const every = { everyMs: DAY_MS, lastSuccessAt: at("2026-03-29T00:05:00Z") };
    expect(dueAfter(every)).toBe("2026-03-30T00:05:00.000Z");
  });

  test("each hour that there is comes once", () => {
    expect(dueAfter(nightly("0 * * * *", "2026-03-29T00:02:00Z"))).toBe("2026-03-29T01:00:00.000Z");
    expect(dueAfter(nightly("0 * * * *", "2026-03-29T01:02:00Z"))).toBe("2026-03-29T02:00:00.000Z");
  });

  test("so does half an hour (Lord Howe, 2026-10-04: 02:00 becomes 02:30)", () => {
    const zone = "Australia/Lord_Howe";
    expect(dueAfter(nightly("15 2 * * *", "2026-10-02T15:50:00Z", zone))).toBe(
      "2026-10-03T15:45:00.000Z",
    );
    expect(dueAfter(nightly("15 2 * * *", "2026-10-03T15:31:00Z", zone))).toBe(
      "2026-10-04T15:15:00.000Z",
    );
  });
});

describe("when the clocks go back (Berlin, 2026-10-25: 03:00 becomes 02:00)", () => {
  test("a time that occurs twice is expected once, at its first", () => {
    expect(dueAfter(nightly("30 2 * * *", "2026-10-24T00:35:00Z"))).toBe(
      "2026-10-25T00:30:00.000Z",
    );
    expect(dueAfter(nightly("30 2 * * *", "2026-10-25T00:31:00Z"))).toBe(
      "2026-10-26T01:30:00.000Z",
    );
  });

  test("a run at its second is that of the day, too", () => {
    expect(dueAfter(nightly("30 2 * * *", "2026-10-25T01:31:00Z"))).toBe(
      "2026-10-26T01:30:00.000Z",
    );
  });

  test("each hour comes, the repeated one twice", () => {
    expect(dueAfter(nightly("0 * * * *", "2026-10-25T00:02:00Z"))).toBe("2026-10-25T01:00:00.000Z");
  });
});
