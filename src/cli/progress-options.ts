/**
 * The options of `watchdog run` about the items of a job: how many of them may fail.
 *
 * A part of the one table in options-table.ts. Always: a bare fraction is no percentage, because
 * 0.2 may be meant as 20 %.
 */

import type { RunOptions } from "../core/run-options.ts";
import { option } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import * as values from "./values.ts";
import type { Parsed } from "./values.ts";

/** As many items as one line of a progress file can count. */
const MOST_ITEMS = 1_000_000_000;

export const EXPECTED_ITEMS = {
  rate: "a percentage from 0 to 100, such as 20% or 0.5%",
  count: `a number of items from 1 to ${MOST_ITEMS}, such as 5`,
} as const;

export const PROGRESS_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--max-fail-rate",
    "percent",
    {
      valueName: "PERCENT",
      example: "20%",
      defaultText: "no bound",
      help:
        "End the run with 65 when more than this share of the items that it has reported failed: " +
        "judged from the 20th item on, and at the end.",
    },
    (text) => values.mapped(parseFailRate(text), (maxFailRate) => ({ maxFailRate })),
  ),
  option(
    "--max-consecutive-fails",
    "count",
    {
      valueName: "COUNT",
      example: "5",
      defaultText: "no bound",
      help: "End the run with 65 when this many of its items in a row failed.",
    },
    (text) => values.mapped(parseItemCount(text), (count) => ({ maxConsecutiveFails: count })),
  ),
];

/** `20%`, `20`, `0.5%`; 0: none may fail. */
export function parseFailRate(text: string): Parsed<number> {
  const hasSign = text.endsWith("%");
  const digits = hasSign ? text.slice(0, -1) : text;
  const isNumber = hasSign ? /^[0-9]{1,3}(?:\.[0-9]{1,6})?$/ : /^[0-9]{1,3}$/;
  if (!isNumber.test(digits) || Number(digits) > 100) return values.refused(EXPECTED_ITEMS.rate);
  return values.accepted(Number(digits));
}

/** From 1 on. */
export function parseItemCount(text: string): Parsed<number> {
  const count = /^[0-9]{1,10}$/.test(text) ? Number(text) : 0;
  const isWithin = count >= 1 && count <= MOST_ITEMS;
  return isWithin ? values.accepted(count) : values.refused(EXPECTED_ITEMS.count);
}
