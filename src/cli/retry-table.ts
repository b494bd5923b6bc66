/**
 * `watchdog retry`: the options.
 *
 * Knows nothing of how a command line is cut. Always: only --state-dir and --config have a
 * variable, because the rest is for use inside a command, from which the variables of options were
 * taken away.
 */

import type { Backoff } from "../core/backoff.ts";
import { DEFAULT_RETRY_BACKOFF } from "../core/retry-options.ts";
import type { RetryOptions } from "../core/retry-options.ts";
import { renderLongSpan } from "./lease-values.ts";
import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import * as probe from "./probe-values.ts";
import { helpRow, placeRows } from "./shared-rows.ts";
import * as values from "./values.ts";

/** All that it can be told by options, on one level. */
export type RetryParts = Omit<RetryOptions, "backoff"> & Backoff;

export const RETRY_DEFAULTS: RetryParts = {
  ...DEFAULT_RETRY_BACKOFF,
  breaker: undefined,
  attemptTimeoutMs: undefined,
  retryOn: undefined,
  noRetryOn: [],
  buffersStdin: false,
  resultFile: undefined,
  isVerbose: false,
  stateDir: undefined,
  configFile: undefined,
};

type Row = OptionRow<Partial<RetryParts>>;

function own(row: Row): Row {
  return { ...row, variable: undefined };
}

const WAIT_ROWS: readonly Row[] = [
  option(
    "--backoff",
    "text",
    {
      valueName: "FIRST..CAP",
      example: "500ms..10s",
      defaultText: `${renderLongSpan(DEFAULT_RETRY_BACKOFF.initialMs)}..${renderLongSpan(
        DEFAULT_RETRY_BACKOFF.capMs,
      )}`,
      help:
        "Wait up to FIRST before the second attempt, then longer each time, up to CAP. How long " +
        "within that is left to chance, so that many do not come back at once.",
    },
    probe.parseBackoffSpans,
  ),
  option(
    "--backoff-factor",
    "factor",
    {
      valueName: "FACTOR",
      example: "1.5",
      defaultText: String(DEFAULT_RETRY_BACKOFF.factor),
      help: "By how much each of these waits is longer than the one before.",
    },
    (text) => values.mapped(probe.parseFactor(text), (factor) => ({ factor })),
  ),
  option(
    "--max-attempts",
    "count",
    {
      valueName: "COUNT",
      example: "3",
      defaultText: String(DEFAULT_RETRY_BACKOFF.maxAttempts),
      help: "Try at most so often, the first time counted.",
    },
    (text) => values.mapped(probe.parseAttempts(text), (maxAttempts) => ({ maxAttempts })),
  ),
  option(
    "--max-elapsed",
    "span",
    {
      valueName: "SPAN",
      example: "2m",
      defaultText: renderLongSpan(DEFAULT_RETRY_BACKOFF.maxElapsedMs),
      help: "Begin no attempt after this long.",
    },
    (text) => values.mapped(values.parsePositiveSpan(text), (maxElapsedMs) => ({ maxElapsedMs })),
  ),
  option(
    "--attempt-timeout",
    "span",
    {
      valueName: "SPAN",
      example: "30s",
      defaultText: "no limit",
      help: "End an attempt, with all that it started, when it has lasted this long. 0: no limit.",
    },
    (text) =>
      values.mapped(values.parseSpan(text), (ms) => ({
        attemptTimeoutMs: ms === 0 ? undefined : ms,
      })),
  ),
];

const JUDGING_ROWS: readonly Row[] = [
  option(
    "--breaker",
    "text",
    {
      valueName: "NAME",
      example: "inference",
      defaultText: "none",
      help:
        "Go through the circuit of this name, which probes may have: while it is open nothing is " +
        "tried (69) but one attempt after each wait, and failures count towards it.",
    },
    (text) => values.mapped(values.parseName(text), (breaker) => ({ breaker })),
  ),
  option(
    "--retry-on",
    "exit codes",
    {
      valueName: "CODES",
      example: "7,28",
      defaultText: "all but 0",
      help: "Try again only after these exit codes. 64, 126 and 127 are never tried again.",
    },
    (text) => values.mapped(values.parseFailureCodes(text), (retryOn) => ({ retryOn })),
  ),
  option(
    "--no-retry-on",
    "exit codes",
    {
      valueName: "CODES",
      example: "2,65-78",
      defaultText: "none",
      help: "Do not try again after these exit codes.",
    },
    (text) => values.mapped(values.parseFailureCodes(text), (noRetryOn) => ({ noRetryOn })),
  ),
  toggle(
    "--buffer-stdin",
    { help: "Read the whole standard input first and give it to every attempt." },
    (buffersStdin) => ({ buffersStdin }),
  ),
  option(
    "--result-file",
    "path",
    {
      valueName: "FILE",
      example: "result.json",
      defaultText: "none",
      help: "Write how it went to FILE, as JSON.",
    },
    (text) => values.mapped(values.parsePath(text), (resultFile) => ({ resultFile })),
  ),
  toggle(
    "--verbose",
    { short: "-v", help: "Tell on stderr what each decision was based on." },
    (isVerbose) => ({ isVerbose }),
  ),
];

export const RETRY_COMMAND: CommandRow<Partial<RetryParts>> = {
  name: "retry",
  summary: "run a command again until it succeeds, within bounds",
  usage: "watchdog retry [options] [--] COMMAND [ARG...]",
  rows: [...JUDGING_ROWS.slice(0, 1), ...WAIT_ROWS, ...JUDGING_ROWS.slice(1)]
    .map(own)
    .concat(placeRows, helpRow),
};
