/**
 * Whether a job is overdue: a good run of it should have been there by now. Pure; knows no clock
 * and no calendar, both are handed in.
 *
 * Measured from the end of the last *success*, or from the declaration where there was none: runs
 * that fail, hang or are refused do not count. With `--every` the next one is due that span later;
 * with `--schedule` at the first time of the calendar after it. It is late when a grace has passed,
 * a 24th of the period (an hour of a day, as healthchecks.io has it by default), at least a minute
 * and at most an hour. A run that was begun in time is given as long as the longest of the last
 * good ones, so that a job which always takes four hours is not overdue every night.
 *
 * Guarantees: once overdue, more time alone never makes it fine; a success does. Daylight saving: a
 * time that occurs twice is expected once, one that the clocks skip is met by a run right after the
 * change (cron(8) makes up for it at once, systemd after the gap). Non-guarantees: what happened
 * while the wall clock was wrong; where the last success lies in the future, nothing is said
 * (`unsure`).
 */
import type { JobSchedule, OpenCalendar } from "./schedule.ts";

export type OverdueReason =
  /** Declared, and no command of it was ever started. */
  | "never-started"
  /** No run was started since the last success. */
  | "not-started"
  /** Runs were started since, and none of them went well. */
  | "failing"
  /** It was started in time and goes on for longer than good runs do. */
  | "running-too-long"
  /** It was started too late and goes on. */
  | "started-late";

export interface OverdueFacts {
  readonly schedule: JobSchedule;
  /** When the newest run that goes on now was started; undefined: none does. */
  readonly runningSince: number | undefined;
  /** The longest of the last good runs; undefined: none is known. */
  readonly longestGoodMs: number | undefined;
}

export type OverdueDecision =
  /** @property lateAt  when it will be overdue, if nothing happens */
  | { readonly kind: "fine"; readonly dueAt: number; readonly lateAt: number }
  | {
      readonly kind: "overdue";
      readonly because: OverdueReason;
      readonly dueAt: number;
      readonly since: number;
    }
  /** `clock-set-back`: what it is measured from has not happened yet by this clock. */
  | {
      readonly kind: "unsure";
      readonly because: "clock-set-back" | "no-calendar" | "no-more-times";
    };

export const SHORTEST_GRACE_MS = 60_000;
export const LONGEST_GRACE_MS = 3_600_000;
/** The grace is this part of the period. */
const GRACE_PART = 24;
/** A clock that is set right meanwhile moves less than this. */
const CLOCK_STEP_MS = 300_000;
/** A run that was started on time may end by a clock that was set back a little. */
const CLOCK_ERROR_MS = 5_000;

export function decideOverdue(
  facts: OverdueFacts,
  now: number,
  openCalendar: OpenCalendar,
): OverdueDecision {
  const { schedule, runningSince, longestGoodMs = 0 } = facts;
  const anchor = schedule.lastSuccessAt ?? schedule.declaredAt;
  if (anchor > now + CLOCK_STEP_MS) return { kind: "unsure", because: "clock-set-back" };
  const due = findDue(schedule, anchor, openCalendar);
  if (typeof due === "string") return { kind: "unsure", because: due };
  const graceMs = graceOf(due.periodMs);
  const { dueAt } = due;
  const lateAt = dueAt + graceMs;
  const isInTime = runningSince !== undefined && runningSince <= lateAt;
  const until = isInTime ? Math.max(lateAt, runningSince + longestGoodMs + graceMs) : lateAt;
  if (now <= until) return { kind: "fine", dueAt, lateAt: until };
  return { kind: "overdue", because: explain(facts, isInTime), dueAt, since: until };
}

function explain({ schedule, runningSince }: OverdueFacts, isInTime: boolean): OverdueReason {
  const { lastStartAt, lastSuccessAt, lastFailureAt } = schedule;
  const isAfterSuccess = (at: number | null): boolean =>
    at !== null && (lastSuccessAt === null || at > lastSuccessAt);
  if (isInTime) return "running-too-long";
  if (runningSince !== undefined) return isAfterSuccess(lastFailureAt) ? "failing" : "started-late";
  if (lastStartAt === null && lastFailureAt === null && lastSuccessAt === null) {
    return "never-started";
  }
  const hasTried = isAfterSuccess(lastStartAt) || isAfterSuccess(lastFailureAt);
  return hasTried ? "failing" : "not-started";
}

export function graceOf(periodMs: number): number {
  const part = Math.round(periodMs / GRACE_PART);
  return Math.min(Math.max(part, SHORTEST_GRACE_MS), LONGEST_GRACE_MS);
}

interface Due {
  readonly dueAt: number;
  /** How long after it the one after that is due. */
  readonly periodMs: number;
}

function findDue(
  { everyMs, cron, timeZone }: JobSchedule,
  anchor: number,
  openCalendar: OpenCalendar,
): Due | "no-calendar" | "no-more-times" {
  if (everyMs !== null) return { dueAt: anchor + everyMs, periodMs: everyMs };
  const calendar = cron === null ? undefined : openCalendar(cron, timeZone);
  if (calendar === undefined) return "no-calendar";
  const first = calendar.nextAfter(anchor + CLOCK_ERROR_MS);
  if (first === undefined) return "no-more-times";
  const second = calendar.nextAfter(first);
  return { dueAt: first, periodMs: second === undefined ? LONGEST_GRACE_MS : second - first };
}
