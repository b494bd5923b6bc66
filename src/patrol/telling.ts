/**
 * What any other command of watchdog says on its way: that jobs are overdue, and that the patrol
 * has stopped. For whoever only wanted to look at something else.
 *
 * Guarantees: nothing is written, nothing is thrown, the spool is left alone, and a journal that
 * somebody holds is waited for 50 ms at most; where anything is wrong, nothing is said. So many
 * lines, and no more. Clock: the wall clock; MONOTONIC for the age of the patrol.
 */
import { decidePatrolStanding, type PatrolStanding } from "../core/patrol.ts";
import { readPatrolKnowledge } from "../journal/schedule-queries.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { readBootId } from "../os/machine.ts";
import { judgeJobs } from "./jobs.ts";
import type { JobSight } from "./request.ts";

/** Schedules that are looked at on the way; a patrol looks at all. */
const MOST_JUDGED = 1_000;

export interface Told {
  /** Longest overdue first. */
  readonly overdue: readonly JobSight[];
  readonly patrol: PatrolStanding;
  readonly now: number;
}

export function findToTell(stateDirectory: string): Told | undefined {
  try {
    const answer = readPatrolKnowledge(stateDirectory, { drains: false, limit: MOST_JUDGED });
    if (answer.kind !== "read") return undefined;
    const { jobs, patrol } = answer.value;
    if (jobs.length === 0 && patrol === undefined) return undefined;
    const now = wallNow();
    const moment = { now, bootId: readBootId(), monotonicMs: monotonicNow() };
    const overdue = judgeJobs(jobs, now).filter(({ decision }) => decision.kind === "overdue");
    return {
      overdue: overdue.toSorted((one, other) => sinceOf(one) - sinceOf(other)),
      patrol: decidePatrolStanding(patrol, moment),
      now,
    };
  } catch {
    return undefined; // whatever it is: the command that was asked for says what is wrong
  }
}

function sinceOf({ decision }: JobSight): number {
  return decision.kind === "overdue" ? decision.since : 0;
}
