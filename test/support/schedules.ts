/** Schedules of jobs as the journal has them, for tests of what follows from them. */
import { decideOverdue, type OverdueDecision } from "../../src/core/overdue.ts";
import type { JobSchedule } from "../../src/core/schedule.ts";
import { openCalendar } from "../../src/os/calendar.ts";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export function scheduleOf(changes: Partial<JobSchedule>): JobSchedule {
  return {
    job: "nightly",
    everyMs: null,
    cron: null,
    timeZone: null,
    declaredAt: 0,
    declaredBy: "run",
    lastStartAt: null,
    lastSuccessAt: null,
    lastFailureAt: null,
    lastFailure: null,
    lastRefusalAt: null,
    lastRefusal: null,
    overdueState: null,
    overdueSince: null,
    toldAt: null,
    ...changes,
  };
}

export interface Given extends Partial<JobSchedule> {
  readonly runningSince?: number;
  readonly longestGoodMs?: number;
}

export function decide(given: Given, now: number): OverdueDecision {
  const { runningSince, longestGoodMs, ...changes } = given;
  return decideOverdue(
    { schedule: scheduleOf(changes), runningSince, longestGoodMs },
    now,
    openCalendar,
  );
}

/** `2026-03-29T02:30Z` as milliseconds. */
export function at(text: string): number {
  const found = Date.parse(text);
  if (Number.isNaN(found)) throw new Error(`no instant: ${text}`);
  return found;
}
