/**
 * The commands of whoever looks after watchdog: `repair`, `doctor`, `config show`, `config check`:
 * their options.
 *
 * Knows nothing of how a command line is cut. Always: what could change something stands on the
 * line; no variable says it.
 */

import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import * as care from "./care-values.ts";
import { renderLongSpan } from "./lease-values.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";
import * as values from "./values.ts";

/** All that one of these commands can be told by options. */
export interface CareParts {
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
  readonly stateGroup: string | undefined;
  readonly isJson: boolean;
  readonly isApplying: boolean;
  readonly approve: string | undefined;
  readonly setGeneration: number | undefined;
  readonly repairIntervalMs: number;
  readonly maxRepairs: number;
}

export const CARE_DEFAULTS: CareParts = {
  stateDir: undefined,
  configFile: undefined,
  stateGroup: undefined,
  isJson: false,
  isApplying: false,
  approve: undefined,
  setGeneration: undefined,
  repairIntervalMs: 600_000,
  maxRepairs: 3,
};

type Row = OptionRow<Partial<CareParts>>;

const applyRow: Row = {
  ...toggle(
    "--apply",
    { help: "Carry out what the evidence allows and what hurts no living process." },
    (isApplying) => ({ isApplying }),
  ),
  variable: undefined,
};

const approveRow: Row = {
  ...option(
    "--approve",
    "text",
    {
      valueName: "ID",
      example: "0a1b2c3d4e",
      defaultText: "none",
      help:
        "Carry out the plan with this id, as the dry run shows it. The evidence is gathered " +
        "again, and if it differs nothing is done.",
    },
    (text) => values.mapped(care.parsePlanId(text), (approve) => ({ approve })),
  ),
  variable: undefined,
};

const setGenerationRow: Row = {
  ...option(
    "--set-generation",
    "count",
    {
      valueName: "NUMBER",
      example: "42",
      defaultText: "none",
      help:
        "Say which generation of KEY was the last one, where no record tells it. Never less than " +
        "what is known.",
    },
    (text) => values.mapped(care.parseGeneration(text), (setGeneration) => ({ setGeneration })),
  ),
  variable: undefined,
};

const intervalRow: Row = {
  ...option(
    "--repair-interval",
    "span",
    {
      valueName: "SPAN",
      example: "30m",
      defaultText: renderLongSpan(CARE_DEFAULTS.repairIntervalMs),
      help: "Repair one lease at most once within this long.",
    },
    (text) => values.mapped(values.parseSpan(text), (repairIntervalMs) => ({ repairIntervalMs })),
  ),
  variable: undefined,
};

const maxRepairsRow: Row = {
  ...option(
    "--max-repairs",
    "count",
    {
      valueName: "COUNT",
      example: "1",
      defaultText: String(CARE_DEFAULTS.maxRepairs),
      help:
        "Repair one lease at most so often without a run in between that ended by itself; then " +
        "a person has to look.",
    },
    (text) => values.mapped(care.parseMaxRepairs(text), (maxRepairs) => ({ maxRepairs })),
  ),
  variable: undefined,
};

const stateGroupRow: Row = {
  ...option(
    "--state-group",
    "text",
    {
      valueName: "GROUP",
      example: "backup",
      defaultText: "none",
      help: "Ask what a run with this --state-group would meet.",
    },
    (text) => values.mapped(values.parseName(text), (stateGroup) => ({ stateGroup })),
  ),
  // Whoever examines what is wrong hears of a wrong variable as a finding.
  variable: undefined,
};

export const REPAIR_COMMAND: CommandRow<Partial<CareParts>> = {
  name: "repair",
  summary: "show what is wrong with leases, and settle it where that is safe",
  usage: "watchdog repair [options] [KEY...]",
  rows: [
    applyRow,
    approveRow,
    setGenerationRow,
    intervalRow,
    maxRepairsRow,
    jsonRow,
    ...placeRows,
    helpRow,
  ],
};

export const DOCTOR_COMMAND: CommandRow<Partial<CareParts>> = {
  name: "doctor",
  summary: "prove which promises hold on this machine",
  usage: "watchdog doctor [options]",
  rows: [stateGroupRow, jsonRow, ...placeRows, helpRow],
};

export const CONFIG_SHOW_COMMAND: CommandRow<Partial<CareParts>> = {
  name: "config show",
  summary: "show what each option of run is set to, and where",
  usage: "watchdog config show [options]",
  rows: [jsonRow, ...placeRows, helpRow],
};

export const CONFIG_CHECK_COMMAND: CommandRow<Partial<CareParts>> = {
  name: "config check",
  summary: "list what is wrong in the configuration files",
  usage: "watchdog config check [options]",
  rows: [jsonRow, ...placeRows, helpRow],
};

export const CARE_COMMANDS: readonly CommandRow<Partial<CareParts>>[] = [
  REPAIR_COMMAND,
  DOCTOR_COMMAND,
  CONFIG_SHOW_COMMAND,
  CONFIG_CHECK_COMMAND,
];
