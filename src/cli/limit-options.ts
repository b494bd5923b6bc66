/**
 * The options of `watchdog run` that limit a run: when its tree is ended, and how.
 *
 * A part of the one table in options-table.ts. Always: a limit of 0 is no limit, as in GNU timeout.
 */

import type { RunOptions } from "../core/run-options.ts";
import { option } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import * as values from "./values.ts";

/** 0 is "no limit", as in GNU timeout. */
function limitOf(ms: number): number | undefined {
  return ms === 0 ? undefined : ms;
}

const SPAN = { valueName: "SPAN", defaultText: "no limit" } as const;

export const LIMIT_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--timeout",
    "span",
    {
      ...SPAN,
      example: "2h",
      help: "End the whole tree when the run has lasted this long. 0: no limit.",
    },
    (text) => values.mapped(values.parseSpan(text), (ms) => ({ timeoutMs: limitOf(ms) })),
  ),
  option(
    "--idle-timeout",
    "span",
    {
      ...SPAN,
      example: "30m",
      help:
        "End the tree when it was idle for this long: no output, CPU below --idle-cpu and " +
        "I/O below --idle-io. 0: no limit.",
    },
    (text) => values.mapped(values.parseSpan(text), (ms) => ({ idleTimeoutMs: limitOf(ms) })),
  ),
  option(
    "--idle-cpu",
    "percent",
    {
      valueName: "PERCENT",
      example: "0.5",
      defaultText: "1",
      help: "The tree counts as idle below this percentage of one core.",
    },
    (text) => values.mapped(values.parsePercent(text), (idleCpuPercent) => ({ idleCpuPercent })),
  ),
  option(
    "--idle-io",
    "size",
    {
      valueName: "SIZE",
      example: "1MiB",
      defaultText: "64KiB",
      help: "The tree counts as idle below this many bytes read and written per minute.",
    },
    (text) => values.mapped(values.parsePositiveSize(text), (idleIoBytes) => ({ idleIoBytes })),
  ),
  option(
    "--not-after",
    "time of day",
    {
      valueName: "HH:MM[:SS]",
      example: "06:00",
      defaultText: "no limit",
      help: "End the tree at the next such time of the day after the start, local time.",
    },
    (text) => values.mapped(values.parseTimeOfDay(text), (notAfter) => ({ notAfter })),
  ),
  option(
    "--signal",
    "signal",
    {
      valueName: "SIGNAL",
      example: "INT",
      defaultText: "TERM",
      help:
        "The first signal that a limit sends: a name with or without SIG, a number, or " +
        "RTMIN+1.",
    },
    (text) => values.mapped(values.parseSignal(text), (signal) => ({ signal })),
  ),
  option(
    "--kill-after",
    "span",
    {
      valueName: "SPAN",
      example: "30s",
      defaultText: "10s",
      help:
        "Send KILL when the tree lives this long after the first signal. 0: KILL at once. " +
        "As a flag it also holds for TERM, INT and QUIT passed on.",
    },
    (text) => values.mapped(values.parseSpan(text), (killAfterMs) => ({ killAfterMs })),
  ),
  option(
    "--leftovers",
    "choice",
    {
      valueName: "kill|wait|leave",
      example: "wait",
      defaultText: "kill",
      help: "What happens to processes that are alive when the command has ended.",
    },
    (text) =>
      values.mapped(values.parseChoice(text, ["kill", "wait", "leave"] as const), (leftovers) => ({
        leftovers,
      })),
  ),
];
