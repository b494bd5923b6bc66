/**
 * The options of `watchdog run` about who is told, and about what is told to nobody.
 *
 * A part of the one table in options-table.ts. Each row reads its own value; what stands in tables
 * `[sinks.NAME]` is added in finish-sinks.ts.
 */

import { compilePattern } from "../core/masking.ts";
import { makeSink } from "../core/sink.ts";
import type { SinkKind, SinkWords } from "../core/sink.ts";
import {
  COMMAND_FORM,
  hideCommandSecrets,
  hideSinkSecrets,
  parseOn,
  parseSinkTarget,
  withEvents,
} from "../core/sink-words.ts";
import type { SinkParsing } from "../core/sink-words.ts";
import type { RunOptions } from "../core/run-options.ts";
import { option } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import { accepted, refused } from "./values.ts";
import type { Parsed } from "./values.ts";

type Part = Partial<RunOptions>;

const onRow: OptionRow<Part> = {
  ...option(
    "--on",
    "texts",
    {
      valueName: "EVENT='COMMAND'",
      example: "recovered=true",
      defaultText: "none",
      help:
        "Run COMMAND when EVENT happens, with the notice as JSON on its input and in " +
        "WATCHDOG_EVENT_* variables; several events with commas. May be given more than once.",
    },
    (text) => partOf(parseOn(text)),
  ),
  hide: hideCommandSecrets,
};

const onFailureRow: OptionRow<Part> = {
  ...option(
    "--on-failure",
    "texts",
    {
      valueName: "'COMMAND'",
      example: "true",
      defaultText: "none",
      help: "As --on failure='COMMAND': every bad ending, whatever the reason.",
    },
    (text) => partOf(parseFailureHook(text)),
  ),
  hide: hideCommandSecrets,
};

export const webhookRow = targetRow("--webhook", "webhook", {
  valueName: "URL",
  // An address would be hidden in the hint: what is behind --webhook is a secret.
  example: "file:/etc/watchdog/webhook",
  help:
    "Post notices to URL: as JSON, or as Slack, Discord and ntfy take them, told by the host or " +
    "by slack:, discord: or ntfy: before it. file:/PATH reads the URL from a file, so that no " +
    "token is on the command line. May be given more than once.",
});

export const pingRow = targetRow("--ping", "ping", {
  valueName: "URL",
  example: "https://hc-ping.com/check",
  help:
    "Ping URL at each start and end in the protocol of healthchecks.io, which tells when a run " +
    "does not come at all. file:/PATH reads the URL from a file.",
});

export const mailRow = targetRow("--mail", "mail", {
  valueName: "ADDRESS",
  example: "root",
  help: "Mail notices by sendmail of this machine. May be given more than once.",
});

const maskRow: OptionRow<Part> = option(
  "--mask",
  "texts",
  {
    valueName: "REGEX",
    example: "acct-[0-9]+",
    defaultText: "none",
    help:
      "Hide what REGEX finds in notices, records and messages, beside the secrets that are known " +
      "by name and shape. May be given more than once.",
  },
  (text) =>
    compilePattern(text) === undefined
      ? refused(
          "a regular expression that finds something, of which each repetition but the last ends " +
            "at what follows it, such as acct-[0-9]+-[a-z]+",
        )
      : accepted({ masks: [text] }),
);

/** Rows of which the values add up. */
export const SINK_ROWS: readonly OptionRow<Part>[] = [
  onFailureRow,
  onRow,
  webhookRow,
  pingRow,
  mailRow,
  maskRow,
];

/** Of these the variable may be what keeps the secret from the line: a sink remembers its name. */
export const TARGET_ROWS: readonly OptionRow<Part>[] = [webhookRow, pingRow, mailRow];

interface TargetDetails {
  readonly valueName: string;
  readonly example: string;
  readonly help: string;
}

function targetRow(flag: `--${string}`, kind: SinkKind, details: TargetDetails): OptionRow<Part> {
  const valueKind = kind === "ping" ? "text" : "texts";
  return {
    ...option(flag, valueKind, { ...details, defaultText: "none" }, (text) =>
      partOf(parseSinkTarget(kind, text)),
    ),
    hide: kind === "mail" ? undefined : hideSinkSecrets,
  };
}

function parseFailureHook(text: string): SinkParsing {
  const parsed = parseSinkTarget("command", text);
  return parsed.kind === "refused"
    ? { kind: "refused", expected: COMMAND_FORM }
    : withEvents(parsed, ["failure"]);
}

function partOf(parsing: SinkParsing): Parsed<Part> {
  if (parsing.kind === "refused") return refused(parsing.expected);
  return accepted({ sinks: [makeSink(parsing.words satisfies SinkWords)] });
}
