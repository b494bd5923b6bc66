/**
 * The options by which a job says when a good run of it is expected: `--every`, `--schedule`,
 * `--time-zone`. A part of the one table in options-table.ts.
 *
 * Always: no calendar is asked before the start, unless a time zone is named (os/calendar.ts).
 */

import { parseCron } from "../core/cron-expression.ts";
import type { RunOptions } from "../core/run-options.ts";
import { isTimeZone } from "../os/calendar.ts";
import { problem } from "./cut-options.ts";
import type { Problem } from "./cut-options.ts";
import { option } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import { isOfFileAlone, nameOf, rankOf, setTo } from "./read-line.ts";
import type { ReadLine } from "./read-line.ts";
import * as values from "./values.ts";

export const SCHEDULE_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--every",
    "span",
    {
      valueName: "SPAN",
      example: "24h",
      defaultText: "nothing is expected",
      help:
        "Say that a good run of this job is expected at least so often: watchdog patrol tells " +
        "when there was none.",
    },
    (text) => values.mapped(values.parsePositiveSpan(text), (everyMs) => ({ everyMs })),
  ),
  option(
    "--schedule",
    "text",
    {
      valueName: "CRON",
      example: "0 2 * * *",
      defaultText: "nothing is expected",
      help:
        "The same for a job that is started by a schedule: five fields as in crontab(5). It only " +
        "says when to expect the job; cron or a timer starts it.",
    },
    (text) => values.mapped(readCron(text), (cron) => ({ cron })),
  ),
  option(
    "--time-zone",
    "text",
    {
      valueName: "ZONE",
      example: "Europe/Berlin",
      defaultText: "the local one",
      help: "The time zone of --schedule.",
    },
    (text) => values.mapped(readTimeZone(text), (timeZone) => ({ timeZone })),
  ),
];

function readCron(text: string): values.Parsed<string> {
  const reading = parseCron(text);
  if (reading.kind === "cron") return values.accepted(reading.text);
  return values.refused(reading.expected, reading.found);
}

function readTimeZone(text: string): values.Parsed<string> {
  return isTimeZone(text)
    ? values.accepted(text)
    : values.refused("the name of a time zone, such as Europe/Berlin or UTC");
}

/** One of the two says it: a flag beats a variable, and two of one kind contradict each other. */
export function settleSchedule(line: ReadLine, options: RunOptions): RunOptions | Problem {
  const { everyMs, cron, timeZone } = options;
  if (everyMs !== undefined && cron !== undefined) {
    const [every, schedule] = [rankOf(line, "--every"), rankOf(line, "--schedule")];
    if (every > schedule) return { ...options, cron: undefined, timeZone: undefined };
    if (schedule > every) return { ...options, everyMs: undefined };
    const names = `${nameOf(line, "--every")} and ${nameOf(line, "--schedule")}`;
    const message = `${names} both say when the job is expected, expected one of them`;
    const isOfFile = isOfFileAlone(line, ["--every", "--schedule"]);
    return { ...problem(message, [setTo(line, "--every", undefined)]), isOfFile };
  }
  const isAlone = timeZone !== undefined && cron === undefined;
  if (!isAlone) return options;
  if (line.given.get("--time-zone")?.at === undefined) return { ...options, timeZone: undefined };
  const message = "--time-zone is about --schedule, which is not given";
  return problem(message, [setTo(line, "--time-zone", undefined)]);
}
