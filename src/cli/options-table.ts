/**
 * The one table of options: the command line, the help, the README and the names of variables are
 * made from it.
 *
 * Knows nothing of how a command line is cut. Always: the defaults written here are the ones in
 * force (a test reads each `defaultText` with its own reader and compares).
 */

import type { RunOptions } from "../core/run-options.ts";
import { CHECK_ROWS } from "./check-options.ts";
import type { KeepOptions } from "./cut.ts";
import { LEASE_ROWS, localStateRow, stateGroupRow } from "./lease-options.ts";
import { LIMIT_ROWS } from "./limit-options.ts";
import { NOTIFY_ROWS } from "./notify-options.ts";
import { option, request, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { PROGRESS_ROWS } from "./progress-options.ts";
import { PROBE_ROWS } from "./probe-options.ts";
import type { RunPart } from "./probe-options.ts";
import { SCHEDULE_ROWS } from "./schedule-options.ts";
import { SINK_ROWS } from "./sink-options.ts";
import { helpRow, placeRows } from "./shared-rows.ts";
import * as values from "./values.ts";

const OUTPUT_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--log",
    "choice",
    {
      valueName: "auto|on|off",
      example: "on",
      defaultText: "auto",
      help: "Keep the output in the state directory. auto: when stdout is not a terminal.",
    },
    (text) =>
      values.mapped(values.parseChoice(text, ["auto", "on", "off"] as const), (log) => ({ log })),
  ),
  option(
    "--log-max",
    "size",
    {
      valueName: "SIZE",
      example: "1MiB",
      defaultText: "10MiB",
      help: "Keep at most this much of one run: half of it from the start, half from the end.",
    },
    (text) => values.mapped(values.parsePositiveSize(text), (logMaxBytes) => ({ logMaxBytes })),
  ),
  option(
    "--log-keep",
    "size",
    {
      valueName: "SIZE",
      example: "100MiB",
      defaultText: "1GiB",
      help:
        "Keep at most this much of all runs of the state directory together; the oldest " +
        "logs go first.",
    },
    (text) => values.mapped(values.parsePositiveSize(text), (logKeepBytes) => ({ logKeepBytes })),
  ),
  toggle(
    "--quiet",
    { help: "Print nothing of a run that succeeds, everything of one that fails." },
    (isQuiet) => ({
      isQuiet,
    }),
  ),
  toggle(
    "--verbose",
    { short: "-v", help: "Tell on stderr what each decision was based on." },
    (isVerbose) => ({
      isVerbose,
    }),
  ),
];

const RECORD_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--name",
    "text",
    {
      valueName: "NAME",
      example: "nightly-backup",
      defaultText: "made from the command and the directory",
      help: "What the run is called in logs and records.",
    },
    (text) => values.mapped(values.parseName(text), (name) => ({ name })),
  ),
  option(
    "--result-file",
    "path",
    {
      valueName: "FILE",
      example: "result.json",
      defaultText: "none",
      help: "Write how the run went to FILE, as JSON: at the start, and again at the end.",
    },
    (text) => values.mapped(values.parsePath(text), (resultFile) => ({ resultFile })),
  ),
  option(
    "--success-exit-codes",
    "exit codes",
    {
      valueName: "CODES",
      example: "0,24",
      defaultText: "0",
      help:
        "Exit codes that count as success, such as 0,24 or 0-3; 0 always does. The status " +
        "itself is passed through.",
    },
    (text) =>
      values.mapped(values.parseExitCodes(text), (successExitCodes) => ({ successExitCodes })),
  ),
];

export const RUN_COMMAND: CommandRow<RunPart> = {
  name: "run",
  summary: "run a command once at a time, within limits, leaving nothing behind",
  usage: "watchdog run [options] [--] COMMAND [ARG...]",
  rows: [
    ...LEASE_ROWS,
    ...LIMIT_ROWS,
    ...PROBE_ROWS,
    ...CHECK_ROWS,
    ...PROGRESS_ROWS,
    ...SINK_ROWS,
    ...NOTIFY_ROWS,
    ...OUTPUT_ROWS,
    ...RECORD_ROWS,
    ...SCHEDULE_ROWS,
    ...placeRows,
    stateGroupRow,
    localStateRow,
    helpRow,
  ],
  sections: [
    { title: "Options about what the command depends on", rows: PROBE_ROWS },
    { title: "Options about what the command must bring about", rows: CHECK_ROWS },
    { title: "Options about who is told", rows: [...SINK_ROWS, ...NOTIFY_ROWS] },
  ],
};

export const KEEP_COMMAND: CommandRow<Partial<KeepOptions>> = {
  name: "keep",
  summary: "start a command that is meant to outlive the run around it",
  usage: "watchdog keep [options] [--] COMMAND [ARG...]",
  rows: [
    {
      ...option(
        "--output",
        "path",
        {
          valueName: "FILE",
          example: "server.log",
          defaultText: "/dev/null",
          help: "Append what the command prints to FILE.",
        },
        (text) => values.mapped(values.parsePath(text), (outputPath) => ({ outputPath })),
      ),
      // Runs inside a command, from which the variables of options were taken away.
      variable: undefined,
    },
    ...placeRows,
    helpRow,
  ],
};

export const TOP_ROWS: readonly OptionRow<object>[] = [
  request("--help", "-h", "Print the list of commands; --help after a command tells of that one."),
  request("--version", undefined, "Print the version and the commit it was built from."),
];
