/**
 * The options of `watchdog run` about how long and how often it tells.
 *
 * A part of the one table in options-table.ts. Whom it tells is in sink-options.ts.
 */

import { DEFAULT_REMIND_EVERY_MS } from "../core/notice-part.ts";
import { DEFAULT_NOTIFY_TIMEOUT_MS } from "../core/run-options.ts";
import type { RunOptions } from "../core/run-options.ts";
import { renderLongSpan } from "./lease-values.ts";
import { option } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import * as values from "./values.ts";

export const notifyTimeoutRow: OptionRow<Partial<RunOptions>> = option(
  "--notify-timeout",
  "span",
  {
    valueName: "SPAN",
    example: "10s",
    defaultText: renderLongSpan(DEFAULT_NOTIFY_TIMEOUT_MS),
    help:
      "Wait this long in all, when the run is over, for its notices to be delivered; what is " +
      "left is sent by the next run, or by notify flush. 0: do not wait.",
  },
  (text) => values.mapped(values.parseSpan(text), (notifyTimeoutMs) => ({ notifyTimeoutMs })),
);

export const NOTIFY_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--remind-every",
    "span",
    {
      valueName: "SPAN",
      example: "1h",
      defaultText: renderLongSpan(DEFAULT_REMIND_EVERY_MS),
      help:
        "Tell again after this long that a job still fails. A failure of the same kind is " +
        "otherwise told once, until the job is well again. 0: tell each one.",
    },
    (text) => values.mapped(values.parseSpan(text), (remindEveryMs) => ({ remindEveryMs })),
  ),
  notifyTimeoutRow,
];
