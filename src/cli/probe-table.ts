/**
 * `watchdog probe`: the options. What an exchange needs is told as to `watchdog run`, so that the
 * answer is the one that a run would get.
 *
 * Knows nothing of how a command line is cut.
 */

import { toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import type { Probing } from "./probe-options.ts";
import { EXCHANGE_ROWS } from "./probe-setting-rows.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";

/** What one of its options decides. */
export interface ProbeCommandPart {
  readonly probing?: Probing;
  readonly isCheck?: boolean;
  readonly isJson?: boolean;
  readonly stateDir?: string;
  readonly configFile?: string;
}

const checkRow: OptionRow<ProbeCommandPart> = {
  ...toggle("--check", { help: "Leave with 69 unless every probe is good." }, (isCheck) => ({
    isCheck,
  })),
  // What a program reads must not change with the environment it is called in.
  variable: undefined,
};

export const PROBE_COMMAND: CommandRow<ProbeCommandPart> = {
  name: "probe",
  summary: "ask once how a dependency is",
  usage: "watchdog probe [options] [NAME=]URL|NAME...",
  rows: [checkRow, ...EXCHANGE_ROWS, jsonRow, ...placeRows, helpRow],
};
