/**
 * The one table of options: the command line, the help, the README and the names of variables are
 * made from it.
 *
 * Knows nothing of how a command line is cut. Always: the defaults written here are the ones in
 * force (a test reads each `defaultText` with its own reader and compares).
 */

import type { RunOptions } from "../core/run-options.ts";
import { LIMIT_ROWS } from "./limit-options.ts";
import { option, request, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import * as values from "./values.ts";

/** What a person asked `watchdog keep` for. */
export interface KeepOptions {
  /** `--output`: where the kept process writes; undefined: nowhere. */
  readonly outputPath: string | undefined;
  readonly stateDir: string | undefined;
}

const stateDirRow = option(
  "--state-dir",
  "path",
  {
    valueName: "DIR",
    example: "/var/lib/watchdog",
    defaultText: "root: /var/lib/watchdog, others: ~/.local/state/watchdog",
    help: "Where logs and records are kept.",
  },
  (text) => values.mapped(values.parsePath(text), (stateDir) => ({ stateDir })),
);

const helpRow = request("--help", "-h", "Print this text.");

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
  toggle(
    "--no-lease",
    { help: "Run without a lease. In this version every run does." },
    () => ({}),
  ),
];

export const RUN_COMMAND: CommandRow<Partial<RunOptions>> = {
  name: "run",
  summary: "run a command, hold it to its limits and leave nothing of it behind",
  usage: "watchdog run [options] [--] COMMAND [ARG...]",
  rows: [...LIMIT_ROWS, ...OUTPUT_ROWS, ...RECORD_ROWS, stateDirRow, helpRow],
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
    stateDirRow,
    helpRow,
  ],
};

export const TOP_ROWS: readonly OptionRow<object>[] = [
  request("--help", "-h", "Print the list of commands; --help after a command tells of that one."),
  request("--version", undefined, "Print the version and the commit it was built from."),
];
