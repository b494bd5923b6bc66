/**
 * The commands that look at what runs have left, and the one that stops a run: their options and
 * what they are asked about.
 *
 * Knows nothing of how a command line is cut. Always: each takes --state-dir and --config, and one
 * word at most beside its options.
 */

import { DEFAULT_KILL_AFTER_MS } from "../core/run-options.ts";
import { DEFAULT_HISTORY_LIMIT } from "./cut.ts";
import { isLaterCommand } from "./later-names.ts";
import { parseLimit, renderSpan } from "./lease-values.ts";
import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";
import * as values from "./values.ts";

/** All that one of these commands can be told by options. */
export interface AnswerOptions {
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
  readonly isJson: boolean;
  readonly isWatching: boolean;
  readonly limit: number;
  readonly sinceMs: number;
  /** `--html`: a path; undefined: no page is wanted. */
  readonly htmlFile: string | undefined;
  /** Undefined: that of the configuration, or else DEFAULT_KILL_AFTER_MS. */
  readonly killAfterMs: number | undefined;
}

export interface AnswerCommand extends CommandRow<Partial<AnswerOptions>> {
  /** What the word beside the options names; undefined: there is none. */
  readonly operand: string | undefined;
  readonly needsOperand: boolean;
}

const limitRow: OptionRow<Partial<AnswerOptions>> = {
  ...option(
    "--limit",
    "count",
    {
      valueName: "COUNT",
      example: "5",
      defaultText: String(DEFAULT_HISTORY_LIMIT),
      help: "Show at most this many runs.",
    },
    (text) => values.mapped(parseLimit(text), (limit) => ({ limit })),
  ),
  // What a program reads must not change with the environment it is called in.
  variable: undefined,
};

const sinceRow: OptionRow<Partial<AnswerOptions>> = {
  ...option(
    "--since",
    "span",
    {
      valueName: "SPAN",
      example: "12h",
      defaultText: "24h",
      help: "Tell of the runs that have begun, or still go on, within the last SPAN.",
    },
    (text) => values.mapped(values.parseSpan(text), (sinceMs) => ({ sinceMs })),
  ),
  variable: undefined,
};

const htmlRow: OptionRow<Partial<AnswerOptions>> = {
  ...option(
    "--html",
    "path",
    {
      valueName: "FILE",
      example: "/srv/www/last-night.html",
      defaultText: "none",
      help: "Write the report as one page for a browser to FILE, and print nothing.",
    },
    (text) => values.mapped(values.parsePath(text), (htmlFile) => ({ htmlFile })),
  ),
  variable: undefined,
};

const watchRow: OptionRow<Partial<AnswerOptions>> = {
  ...toggle(
    "--watch",
    { help: "Draw it on the terminal, anew each second, until q or Ctrl-C." },
    (isWatching) => ({ isWatching }),
  ),
  // Nobody who calls it for its answer wants a picture.
  variable: undefined,
};

const killAfterRow: OptionRow<Partial<AnswerOptions>> = option(
  "--kill-after",
  "span",
  {
    valueName: "SPAN",
    example: "30s",
    defaultText: renderSpan(DEFAULT_KILL_AFTER_MS),
    help: "Have KILL sent when the tree lives this long after TERM. 0: KILL at once.",
  },
  (text) => values.mapped(values.parseSpan(text), (killAfterMs) => ({ killAfterMs })),
);

const NAME = "the name of a job, a key such as lane:gpu, or the id of a run";

export const STATUS_COMMAND: AnswerCommand = {
  name: "status",
  summary: "show what runs now and how each job last ended",
  usage: "watchdog status [options] [JOB|KEY|RUN_ID]",
  rows: [watchRow, jsonRow, ...placeRows, helpRow],
  operand: NAME,
  needsOperand: false,
};

export const HISTORY_COMMAND: AnswerCommand = {
  name: "history",
  summary: "show the last runs, newest first",
  usage: "watchdog history [options] [JOB|KEY|RUN_ID]",
  rows: [limitRow, jsonRow, ...placeRows, helpRow],
  operand: NAME,
  needsOperand: false,
};

export const REPORT_COMMAND: AnswerCommand = {
  name: "report",
  summary: "tell what has run since yesterday, and what needs a person",
  usage: "watchdog report [options]",
  rows: [sinceRow, htmlRow, jsonRow, ...placeRows, helpRow],
  operand: undefined,
  needsOperand: false,
};

export const WHY_COMMAND: AnswerCommand = {
  name: "why",
  summary: "tell why a job did not run, or how it ended",
  usage: "watchdog why [options] JOB|KEY|RUN_ID",
  rows: [jsonRow, ...placeRows, helpRow],
  operand: NAME,
  needsOperand: true,
};

export const LOGS_COMMAND: AnswerCommand = {
  name: "logs",
  summary: "print the output that was kept of a run",
  usage: "watchdog logs [options] JOB|KEY|RUN_ID",
  rows: [...placeRows, helpRow],
  operand: NAME,
  needsOperand: true,
};

export const LEASE_LIST_COMMAND: AnswerCommand = {
  name: "lease list",
  summary: "show all leases",
  usage: "watchdog lease list [options]",
  rows: [jsonRow, ...placeRows, helpRow],
  operand: undefined,
  needsOperand: false,
};

export const LEASE_SHOW_COMMAND: AnswerCommand = {
  name: "lease show",
  summary: "show one lease",
  usage: "watchdog lease show [options] KEY",
  rows: [jsonRow, ...placeRows, helpRow],
  operand: "a key such as lane:gpu",
  needsOperand: true,
};

export const LEASE_EXPLAIN_COMMAND: AnswerCommand = {
  name: "lease explain",
  summary: "tell the evidence about a lease, and what follows from it",
  usage: "watchdog lease explain [options] KEY",
  rows: [jsonRow, ...placeRows, helpRow],
  operand: "a key such as lane:gpu",
  needsOperand: true,
};

const CIRCUIT = "the name of a circuit, as circuit list shows it";

export const CIRCUIT_LIST_COMMAND: AnswerCommand = {
  name: "circuit list",
  summary: "show all circuits",
  usage: "watchdog circuit list [options]",
  rows: [jsonRow, ...placeRows, helpRow],
  operand: undefined,
  needsOperand: false,
};

export const CIRCUIT_SHOW_COMMAND: AnswerCommand = {
  name: "circuit show",
  summary: "show one circuit",
  usage: "watchdog circuit show [options] NAME",
  rows: [jsonRow, ...placeRows, helpRow],
  operand: CIRCUIT,
  needsOperand: true,
};

export const CIRCUIT_RESET_COMMAND: AnswerCommand = {
  name: "circuit reset",
  summary: "close a circuit by hand",
  usage: "watchdog circuit reset [options] NAME",
  rows: [...placeRows, helpRow],
  operand: CIRCUIT,
  needsOperand: true,
};

export const STOP_COMMAND: AnswerCommand = {
  name: "stop",
  summary: "end a run with its whole tree",
  usage: "watchdog stop [options] JOB|KEY|RUN_ID",
  rows: [killAfterRow, ...placeRows, helpRow],
  operand: NAME,
  needsOperand: true,
};

/** In the order of the help. */
export const ANSWER_COMMANDS: readonly AnswerCommand[] = [
  STATUS_COMMAND,
  HISTORY_COMMAND,
  REPORT_COMMAND,
  WHY_COMMAND,
  LOGS_COMMAND,
  LEASE_LIST_COMMAND,
  LEASE_SHOW_COMMAND,
  LEASE_EXPLAIN_COMMAND,
  CIRCUIT_LIST_COMMAND,
  CIRCUIT_SHOW_COMMAND,
  CIRCUIT_RESET_COMMAND,
  STOP_COMMAND,
].filter(({ name }) => !isLaterCommand(name));
