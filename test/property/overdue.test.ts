/**
 * Overdue decisions over all small histories, against a timeline that is walked by the minute: what
 * a person would say who has watched the job all the time.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { decideOverdue, graceOf, type OverdueDecision } from "../../src/core/overdue.ts";
import type { Calendar } from "../../src/core/schedule.ts";
import { openCalendar } from "../../src/os/calendar.ts";
import { type Given, HOUR_MS, scheduleOf } from "../support/schedules.ts";

const BASE = Date.UTC(2026, 0, 5);
const hours = (from: number, until: number) =>
  fc.integer({ min: from * 4, max: until * 4 }).map((quarters) => (quarters * HOUR_MS) / 4);
const instants = hours(0, 200).map((ms) => BASE + ms);
// As often not there as there: a job that never started needs four of them missing.
const maybe = fc.option(instants, { nil: null, freq: 2 });

const histories = fc
  .record({
    everyMs: fc.constantFrom(HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS),
    declaredAt: instants,
    lastStartAt: maybe,
    lastSuccessAt: maybe,
    lastFailureAt: maybe,
    running: fc.option(instants, { nil: undefined, freq: 2 }),
    longestGoodMs: fc.option(hours(0, 30), { nil: undefined }),
    now: instants,
  })
  .map(({ running, longestGoodMs, now, ...given }): { given: Given; now: number } => ({
    given: {
      ...given,
      ...(running === undefined ? {} : { runningSince: running }),
      ...(longestGoodMs === undefined ? {} : { longestGoodMs }),
    },
    now,
  }));

function decideOf(given: Given, now: number): OverdueDecision {
  const { runningSince, longestGoodMs, ...changes } = given;
  const facts = { schedule: scheduleOf(changes), runningSince, longestGoodMs };
  return decideOverdue(facts, now, openCalendar);
}

/** Written differently: the question "may it still be fine?" is asked of each excuse alone. */
function byHand({ everyMs, ...given }: Given, now: number): string {
  const { runningSince } = given;
  const from = given.lastSuccessAt ?? given.declaredAt ?? 0;
  if (from - now > 300_000) return "unsure";
  const limit = (everyMs ?? 0) + graceOf(everyMs ?? 0);
  const hasTime = now - from <= limit;
  const wasInTime = runningSince !== undefined && runningSince - from <= limit;
  const mayRun = (given.longestGoodMs ?? 0) + graceOf(everyMs ?? 0);
  if (hasTime || (wasInTime && now - runningSince <= mayRun)) return "fine";
  return wasInTime ? "running-too-long" : blame(given);
}

/** Nothing good came in time, and nothing that could still be. */
function blame({ lastSuccessAt, lastStartAt, lastFailureAt, runningSince }: Given): string {
  const isNewer = (one?: number | null): boolean =>
    typeof one === "number" && one > (lastSuccessAt ?? -1);
  if (isNewer(lastFailureAt)) return "failing";
  if (runningSince !== undefined) return "started-late";
  if (isNewer(lastStartAt)) return "failing";
  return typeof lastSuccessAt === "number" ? "not-started" : "never-started";
}

test("are those of a person who has watched", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(histories, ({ given, now }) => {
      const decision = decideOf(given, now);
      const word: string = decision.kind === "overdue" ? decision.because : decision.kind;
      seen.add(word);
      expect(word).toBe(byHand(given, now));
    }),
    { numRuns: 5_000 },
  );
  expect([...seen].toSorted()).toEqual([
    "failing",
    "fine",
    "never-started",
    "not-started",
    "running-too-long",
    "started-late",
    "unsure",
  ]);
});

test("stay what they are while nothing happens, and begin when they were said to", () => {
  fc.assert(
    fc.property(histories, hours(0, 100), ({ given, now }, later) => {
      const decision = decideOf(given, now);
      const then = decideOf(given, now + later);
      if (decision.kind === "overdue") {
        expect(then).toEqual(decision);
        expect(decision.since).toBeLessThan(now);
      }
      if (decision.kind === "fine") {
        expect(decideOf(given, decision.lateAt).kind).toBe("fine");
        expect(decideOf(given, decision.lateAt + 1)).toMatchObject({
          kind: "overdue",
          since: decision.lateAt,
        });
      }
    }),
    { numRuns: 2_000 },
  );
});

test("never begin for a job that keeps to its schedule, in any zone and year", () => {
  const zones = fc.constantFrom(
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "UTC",
  );
  const crons = fc.constantFrom("30 2 * * *", "0 0 * * *", "15 * * * *", "0 4 * * 0", "30 1 1 * *");
  const days = fc.integer({ min: 0, max: 3_650 }).map((day) => Date.UTC(2020, 0, 1 + day));
  fc.assert(
    fc.property(zones, crons, days, (timeZone, cron, from) => {
      const calendar = openCalendar(cron, timeZone) as Calendar;
      let startedAt = calendar.nextAfter(from) ?? 0;
      for (let run = 0; run < 5; run += 1) {
        const next = calendar.nextAfter(startedAt) ?? 0;
        // It starts in the second after its time and takes two minutes.
        const lastSuccessAt = startedAt + 121_000;
        const facts = { cron, timeZone, lastStartAt: startedAt + 1_000, lastSuccessAt };
        expect([cron, timeZone, startedAt, decideOf(facts, next + 59_000).kind]).toEqual([
          cron,
          timeZone,
          startedAt,
          "fine",
        ]);
        startedAt = next;
      }
    }),
    { numRuns: 500 },
  );
});
