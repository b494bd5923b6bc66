/**
 * `watchdog tick`: the options.
 *
 * Knows nothing of how a command line is cut. Always: no option has a variable, because it runs
 * inside a command, from which the variables of options were taken away.
 */

import type { ItemReport } from "../core/item-report.ts";
import { option } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { helpRow, placeRows } from "./shared-rows.ts";
import * as values from "./values.ts";
import type { Parsed } from "./values.ts";

/** What one of its options decides. */
export type TickPart = Partial<ItemReport> & {
  readonly stateDir?: string;
  readonly configFile?: string;
};

const MOST_ITEMS = 1_000_000_000;
const EXPECTED_COUNT = `a number of items from 0 to ${MOST_ITEMS}, such as 10`;
const EXPECTED_TEXT = "a text that is not empty";

const ROWS: readonly OptionRow<TickPart>[] = [
  countRow("--ok", "So many items went well.", (ok) => ({ ok })),
  countRow("--fail", "So many items failed.", (failed) => ({ failed })),
  countRow("--total", "So many items there are to do in all.", (total) => ({ total })),
  textRow("--checkpoint", "NAME", "What the job has come to.", (checkpoint) => ({ checkpoint })),
  textRow(
    "--message",
    "TEXT",
    "What there is to say, of the items that failed for example.",
    (message) => ({ message }),
  ),
];

export const TICK_COMMAND: CommandRow<TickPart> = {
  name: "tick",
  summary: "report from within a run what has become of its items",
  usage: "watchdog tick [options]",
  rows: [...ROWS, ...placeRows, helpRow],
};

function countRow(
  flag: `--${string}`,
  help: string,
  change: (count: number) => TickPart,
): OptionRow<TickPart> {
  const details = { valueName: "COUNT", example: "10", defaultText: "none", help };
  const read = (text: string): Parsed<TickPart> => values.mapped(parseCount(text), change);
  return { ...option(flag, "count", details, read), variable: undefined };
}

function textRow(
  flag: `--${string}`,
  valueName: string,
  help: string,
  change: (text: string) => TickPart,
): OptionRow<TickPart> {
  const details = { valueName, example: "tables", defaultText: "none", help };
  const read = (text: string): Parsed<TickPart> =>
    text.trim() === "" ? values.refused(EXPECTED_TEXT) : values.accepted(change(text));
  return { ...option(flag, "text", details, read), variable: undefined };
}

function parseCount(text: string): Parsed<number> {
  const count = /^[0-9]{1,10}$/.test(text) ? Number(text) : Infinity;
  return count <= MOST_ITEMS ? values.accepted(count) : values.refused(EXPECTED_COUNT);
}
