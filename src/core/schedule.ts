/**
 * What a job has declared about itself, when a good run of it is expected, and what the journal
 * remembers of its runs for that. Plain data; instants are wall-clock milliseconds.
 */

/** One of the two is given. */
export interface DeclaredSchedule {
  /** `--every`: a good run is expected at least so often. */
  readonly everyMs: number | null;
  /** `--schedule`, as core/cron-expression.ts has read it. */
  readonly cron: string | null;
  /** `--time-zone` of the schedule, or that of the run; null: of `everyMs` there is none. */
  readonly timeZone: string | null;
}

export const CONFIGURATION = "configuration";

/** A job that a configuration expects, whether it ever ran or not. */
export type ConfiguredJob = DeclaredSchedule & { readonly job: string };

/** The row of a job. */
export interface JobSchedule extends DeclaredSchedule {
  readonly job: string;
  /** When this schedule was declared first. */
  readonly declaredAt: number;
  /** The id of its last run, or CONFIGURATION. */
  readonly declaredBy: string;
  /** Of the last run whose command was started. */
  readonly lastStartAt: number | null;
  /** The end of the last run that ended with `ok`. */
  readonly lastSuccessAt: number | null;
  /** The end of the last run that was started and ended otherwise, and its outcome. */
  readonly lastFailureAt: number | null;
  readonly lastFailure: string | null;
  /** The last try whose command was not started, and its outcome. */
  readonly lastRefusalAt: number | null;
  readonly lastRefusal: string | null;
  /** Why it was overdue when a patrol has said so last; null: it was not. */
  readonly overdueState: string | null;
  readonly overdueSince: number | null;
  /** When that was told last. */
  readonly toldAt: number | null;
}

/** What a decision was made on: of another one, it is not believed. */
export type ScheduleBasis = DeclaredSchedule & Pick<JobSchedule, "declaredAt" | "lastSuccessAt">;

export function basisOf(schedule: ScheduleBasis): ScheduleBasis {
  const { everyMs, cron, timeZone, declaredAt, lastSuccessAt } = schedule;
  return { everyMs, cron, timeZone, declaredAt, lastSuccessAt };
}

export function isSameBasis(one: ScheduleBasis, other: ScheduleBasis): boolean {
  return (
    isSameSchedule(one, other) &&
    one.declaredAt === other.declaredAt &&
    one.lastSuccessAt === other.lastSuccessAt
  );
}

export function isSameSchedule(one: DeclaredSchedule, other: DeclaredSchedule): boolean {
  return (
    one.everyMs === other.everyMs && one.cron === other.cron && one.timeZone === other.timeZone
  );
}

/** The times of one schedule in its time zone. */
export interface Calendar {
  /** The first one after an instant; undefined: there is none. */
  readonly nextAfter: (at: number) => number | undefined;
}

/** Undefined: the text or the time zone cannot be read here. */
export type OpenCalendar = (cron: string, timeZone: string | null) => Calendar | undefined;
