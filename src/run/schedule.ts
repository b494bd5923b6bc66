/**
 * What the run says of its job for the journal: when a good run of it is expected. Asked after the
 * spawn, because the name of the local time zone costs some milliseconds. Decides nothing.
 */
import type { RunOptions } from "../core/run-options.ts";
import type { DeclaredSchedule } from "../core/schedule.ts";
import { localTimeZone } from "../os/calendar.ts";

/** Null: nothing is expected of this job. */
export function declareSchedule({ everyMs, cron, timeZone }: RunOptions): DeclaredSchedule | null {
  if (everyMs !== undefined) return { everyMs, cron: null, timeZone: null };
  if (cron === undefined) return null;
  return { everyMs: null, cron, timeZone: timeZone ?? localTimeZone() ?? null };
}
