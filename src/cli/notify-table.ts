/**
 * The commands about notices: `notify list`, `notify test`, `notify flush`, `notify drop`: their
 * options.
 *
 * Knows nothing of how a command line is cut. Always: whom to tell is said as to `watchdog run`.
 */

import { DEFAULT_HISTORY_LIMIT } from "./cut.ts";
import { parseLimit } from "./lease-values.ts";
import { notifyTimeoutRow } from "./notify-options.ts";
import { option, toggle } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import type { RunPart } from "./probe-options.ts";
import { helpRow, jsonRow, placeRows } from "./shared-rows.ts";
import { SINK_ROWS } from "./sink-options.ts";
import * as values from "./values.ts";

/** What one of their options decides. */
export type NotifyPart = RunPart & {
  readonly isJson?: boolean;
  readonly isAll?: boolean;
  readonly isAllDead?: boolean;
  readonly isWithDead?: boolean;
  readonly limit?: number;
};

type Row = OptionRow<NotifyPart>;

/** What could change something stands on the line; no variable says it. */
const onLine = (row: Row): Row => ({ ...row, variable: undefined });

const allRow = onLine(
  toggle(
    "--all",
    { help: "Show those that were delivered, or are not needed any more, too." },
    (isAll) => ({ isAll }),
  ),
);

const limitRow = onLine(
  option(
    "--limit",
    "count",
    {
      valueName: "COUNT",
      example: "5",
      defaultText: String(DEFAULT_HISTORY_LIMIT),
      help: "Show at most this many notices, the newest.",
    },
    (text) => values.mapped(parseLimit(text), (limit) => ({ limit })),
  ),
);

const deadRow = onLine(
  toggle("--dead", { help: "Try again what was given up, too." }, (isWithDead) => ({ isWithDead })),
);

const allDeadRow = onLine(
  toggle("--all-dead", { help: "Drop everything that was given up." }, (isAllDead) => ({
    isAllDead,
  })),
);

export const NOTIFY_LIST_COMMAND: CommandRow<NotifyPart> = {
  name: "notify list",
  summary: "show the notices that are not delivered",
  usage: "watchdog notify list [options]",
  rows: [allRow, limitRow, jsonRow, ...placeRows, helpRow],
};

export const NOTIFY_TEST_COMMAND: CommandRow<NotifyPart> = {
  name: "notify test",
  summary: "send a notice that says it is a test",
  usage: "watchdog notify test [options]",
  rows: [...SINK_ROWS, notifyTimeoutRow, jsonRow, ...placeRows, helpRow],
};

export const NOTIFY_FLUSH_COMMAND: CommandRow<NotifyPart> = {
  name: "notify flush",
  summary: "deliver what waits, now",
  usage: "watchdog notify flush [options]",
  rows: [deadRow, ...SINK_ROWS, notifyTimeoutRow, jsonRow, ...placeRows, helpRow],
};

export const NOTIFY_DROP_COMMAND: CommandRow<NotifyPart> = {
  name: "notify drop",
  summary: "forget notices that are not delivered",
  usage: "watchdog notify drop [options] ID...",
  rows: [allDeadRow, ...placeRows, helpRow],
};

/** In the order of the help. */
export const NOTIFY_COMMANDS: readonly CommandRow<NotifyPart>[] = [
  NOTIFY_LIST_COMMAND,
  NOTIFY_TEST_COMMAND,
  NOTIFY_FLUSH_COMMAND,
  NOTIFY_DROP_COMMAND,
];
