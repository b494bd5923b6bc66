/**
 * The jobs that a configuration expects: tables `[jobs.NAME]` that say `every` or `schedule`. So a
 * job is missed that has never run at all.
 *
 * Reads no file. Always: what contradicts itself is left to the run, which is refused with it.
 */

import type { RunOptions } from "../core/run-options.ts";
import type { ConfiguredJob } from "../core/schedule.ts";
import type { Settings } from "../core/settings.ts";
import { configNameOf } from "./option-row.ts";
import { SCHEDULE_ROWS } from "./schedule-options.ts";

export function listConfiguredJobs({ jobs }: Pick<Settings, "jobs">): readonly ConfiguredJob[] {
  return [...jobs].flatMap(([job, settings]) => {
    const parts = SCHEDULE_ROWS.map((row) => {
      const [text] = settings.get(configNameOf(row.flag))?.texts ?? [];
      const parsed = text === undefined ? undefined : row.read(text);
      return parsed?.kind === "value" ? parsed.value : {};
    });
    const { everyMs, cron, timeZone }: Partial<RunOptions> = Object.assign({}, ...parts);
    if ((everyMs === undefined) === (cron === undefined)) return [];
    return [{ job, everyMs: everyMs ?? null, cron: cron ?? null, timeZone: timeZone ?? null }];
  });
}
