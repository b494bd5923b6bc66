/**
 * The keys of a table `[probes.NAME]` and of the one below it, and the options that they stand for:
 * a key is the name of the option without `probe`.
 *
 * Reads no file.
 */

import { configNameOf } from "./option-row.ts";
import {
  BACKOFF_ROWS,
  PROBE_SETTING_ROWS,
  startupWaitRow,
  timeoutRow,
} from "./probe-setting-rows.ts";
import type { ProbeSettingRow } from "./probe-setting.ts";

/** The one key that no option stands for: what is asked. */
export const URL_KEY = "url";

function keyed(row: ProbeSettingRow): readonly [string, ProbeSettingRow] {
  return [configNameOf(row.flag).replace(/^probe_/, ""), row];
}

export const PROBE_TABLE_ROWS: ReadonlyMap<string, ProbeSettingRow> = new Map(
  PROBE_SETTING_ROWS.filter((row) => row !== startupWaitRow).map(keyed),
);

/** Of `[probes.NAME.startup]`: what differs before the job. */
export const PROBE_STARTUP_ROWS: ReadonlyMap<string, ProbeSettingRow> = new Map([
  ["wait", startupWaitRow],
  ...[timeoutRow, ...BACKOFF_ROWS].map(keyed),
]);
