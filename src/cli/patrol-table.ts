/**
 * `watchdog patrol`: its options.
 *
 * Knows nothing of how a command line is cut. Always: none of them has a variable, because a patrol
 * is one for all jobs, and a variable may be of one.
 */

import { parseSinkTarget } from "../core/sink-words.ts";
import { makeSink } from "../core/sink.ts";
import type { SinkSpec } from "../core/sink.ts";
import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";
import { pingRow as jobPingRow } from "./sink-options.ts";
import * as values from "./values.ts";

export interface PatrolParts {
  readonly stateDir: string | undefined;
  readonly configFile: string | undefined;
  readonly isJson: boolean;
  /** Print only what has changed since the patrol before. */
  readonly isQuiet: boolean;
  readonly loopMs: number | undefined;
  readonly periodMs: number | undefined;
  readonly forget: string | undefined;
  readonly isRetiring: boolean;
  readonly ping: SinkSpec | undefined;
}

export const PATROL_DEFAULTS: PatrolParts = {
  stateDir: undefined,
  configFile: undefined,
  isJson: false,
  isQuiet: false,
  loopMs: undefined,
  periodMs: undefined,
  forget: undefined,
  isRetiring: false,
  ping: undefined,
};

/** A round looks at every lease; more often than this it would do nothing else. */
const SHORTEST_LOOP_MS = 1_000;

type Row = OptionRow<Partial<PatrolParts>>;

const loopRow: Row = {
  ...option(
    "--loop",
    "span",
    {
      valueName: "SPAN",
      example: "1m",
      defaultText: "once",
      help: "Patrol again and again, this far apart, until it is ended.",
    },
    (text) => values.mapped(parseLoop(text), (loopMs) => ({ loopMs })),
  ),
  variable: undefined,
};

const everyRow: Row = {
  ...option(
    "--every",
    "span",
    {
      valueName: "SPAN",
      example: "5m",
      defaultText: "that of --loop, or as the patrols before have come",
      help:
        "Say how often a patrol is started, as in the crontab: where none has come for more than " +
        "twice as long, every other command of watchdog tells.",
    },
    (text) => values.mapped(values.parsePositiveSpan(text), (periodMs) => ({ periodMs })),
  ),
  variable: undefined,
};

const quietRow: Row = {
  ...toggle(
    "--quiet",
    { help: "Print only what has changed since the patrol before: for cron, which mails it." },
    (isQuiet) => ({ isQuiet }),
  ),
  variable: undefined,
};

/** WATCHDOG_PING is that of a job, whose service would take each patrol for a run of it. */
const pingRow: Row = {
  ...option(
    "--ping",
    "text",
    {
      valueName: "URL",
      example: jobPingRow.example,
      defaultText: "none",
      help:
        "Ping URL after each patrol, in the protocol of healthchecks.io: it tells when patrols " +
        "stop, also with the whole machine. file:/PATH reads the URL from a file.",
    },
    (text) => {
      const parsing = parseSinkTarget("ping", text);
      return parsing.kind === "refused"
        ? values.refused(parsing.expected)
        : values.accepted({ ping: makeSink(parsing.words) });
    },
  ),
  hide: jobPingRow.hide,
  variable: undefined,
};

const forgetRow: Row = {
  ...option(
    "--forget",
    "text",
    {
      valueName: "JOB",
      example: "nightly-backup",
      defaultText: "none",
      help: "Expect nothing of JOB until it declares a schedule again. Nothing else is done.",
    },
    (text) => values.mapped(values.parseName(text), (forget) => ({ forget })),
  ),
  variable: undefined,
};

const retireRow: Row = {
  ...toggle(
    "--retire",
    { help: "Say that no patrol is meant to come any more. Nothing else is done." },
    (isRetiring) => ({ isRetiring }),
  ),
  variable: undefined,
};

export const PATROL_COMMAND: CommandRow<Partial<PatrolParts>> = {
  name: "patrol",
  summary: "look after all leases and jobs once, or again and again",
  usage: "watchdog patrol [options]",
  rows: [
    loopRow,
    everyRow,
    quietRow,
    pingRow,
    forgetRow,
    retireRow,
    jsonRow,
    ...placeRows,
    helpRow,
  ],
};

function parseLoop(text: string): values.Parsed<number> {
  const parsed = values.parseSpan(text);
  const isShort = parsed.kind === "value" && parsed.value < SHORTEST_LOOP_MS;
  return isShort ? values.refused(`${values.EXPECTED.span}, and at least 1s`) : parsed;
}
