/**
 * The jobs that have declared a schedule, judged: which of them are overdue. The facts come from
 * the journal, the processes and the calendar; the decision is core/overdue.ts.
 *
 * Always: a run counts as going on only where its very watchdog lives, so that a row which nobody
 * could end does not keep a job from being overdue. Clock: the wall clock, handed in.
 */
import { decideOverdue } from "../core/overdue.ts";
import type { JudgedJob } from "../core/patrol.ts";
import { basisOf } from "../core/schedule.ts";
import type { RunningRow, ScheduledJob } from "../journal/schedule-queries.ts";
import { openCalendar } from "../os/calendar.ts";
import { bootedAt } from "../os/clock.ts";
import { isAlive } from "../os/machine.ts";
import type { JobSight } from "./request.ts";

export function judgeJobs(jobs: readonly ScheduledJob[], now: number): JobSight[] {
  return jobs.map((job) => judge(job, now));
}

function judge({ schedule, running, longestGoodMs }: ScheduledJob, now: number): JobSight {
  const runningSince = running.find(isGoingOn)?.startedAt;
  const facts = { schedule, runningSince, longestGoodMs };
  return { schedule, runningSince, decision: decideOverdue(facts, now, openCalendar) };
}

/** Three clocks are read one after the other, and the wall clock is slewed now and then. */
const CLOCK_ERROR_MS = 1_000;

/** The row of an earlier boot never does, whoever has its pid by now. */
function isGoingOn({ pid, pidStartTime, startedAt }: RunningRow): boolean {
  if (pidStartTime === null || startedAt < bootedAt() - CLOCK_ERROR_MS) return false;
  return isAlive({ pid, start_time: pidStartTime }) === "yes";
}

/** For the journal: what was decided, and on what. Of whom nothing can be said, nothing is. */
export function describeJudged({ schedule, decision, runningSince }: JobSight): JudgedJob[] {
  if (decision.kind === "unsure") return [];
  const isOverdue = decision.kind === "overdue";
  const { job, everyMs, cron, timeZone } = schedule;
  const data = {
    every_ms: everyMs,
    schedule: cron,
    time_zone: timeZone,
    last_success_at: schedule.lastSuccessAt,
    last_start_at: schedule.lastStartAt,
    running_since: runningSince ?? null,
    last_failure: schedule.lastFailure,
    last_failure_at: schedule.lastFailureAt,
    last_refusal: schedule.lastRefusal,
    last_refusal_at: schedule.lastRefusalAt,
  };
  return [
    {
      job,
      basis: basisOf(schedule),
      because: isOverdue ? decision.because : null,
      dueAt: decision.dueAt,
      since: isOverdue ? decision.since : null,
      data,
    },
  ];
}
