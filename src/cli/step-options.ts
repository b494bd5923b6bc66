/**
 * The options of `watchdog run` that a step of a job may have, by their names in a file: a closed
 * list, and the line of a nested run that stands for them.
 *
 * Reads no file. Always: what is of the whole job (its leases, who is told, when it is expected) is
 * not on the list, and a step that asks for it is refused: a protection that was asked for and is
 * not there is worse than none.
 */

import type { ConfigKeys } from "../core/config-values.ts";
import type { ProbeTableSettings, Settings } from "../core/settings.ts";
import { NO_SETTINGS } from "../core/settings.ts";
import { WatchdogError } from "../core/errors.ts";
import { cutCommandLine } from "./command-line.ts";
import { CHECK_ROWS } from "./check-options.ts";
import { JOB_ROWS } from "./config-schema.ts";
import { configNameOf } from "./option-row.ts";
import type { OptionRow, ValueKind } from "./option-row.ts";
import { PROBE_ROWS } from "./probe-options.ts";
import type { RunPart } from "./probe-options.ts";
import { PROGRESS_ROWS } from "./progress-options.ts";

type Row = OptionRow<RunPart>;

/** Beside those of probes, of checks and of items. */
const OTHERS: readonly string[] = [
  "--idle-timeout",
  "--idle-cpu",
  "--idle-io",
  "--not-after",
  "--signal",
  "--leftovers",
  "--log",
  "--log-max",
  "--quiet",
  "--success-exit-codes",
];

/** In the order of the help of `watchdog run`. */
export const STEP_ROWS: ReadonlyMap<string, Row> = new Map(
  JOB_ROWS.filter((row) => isOfStep(row)).map((row) => [configNameOf(row.flag), row]),
);

function isOfStep({ flag }: Row): boolean {
  const whole = [...PROBE_ROWS, ...CHECK_ROWS, ...PROGRESS_ROWS];
  return OTHERS.includes(flag) || whole.some((row) => row.flag === flag);
}

/** Options of a run that no step has. */
export function isOfWholeJob(name: string): boolean {
  return JOB_ROWS.some(({ flag }) => configNameOf(flag) === name) && !STEP_ROWS.has(name);
}

/** How the value of an option is written in a file; see config-values.ts. */
export const STEP_OPTION_KEYS: ConfigKeys = new Map(
  [...STEP_ROWS].map(([name, row]) => [
    name,
    {
      kind: kindOf(row.kind),
      hide: row.hide,
      refusalOf: (text: string) => {
        // true and false are all that there is
        const parsed = row.kind === "switch" ? undefined : row.read(text);
        return parsed?.kind === "refused" ? parsed : undefined;
      },
    },
  ]),
);

function kindOf(kind: ValueKind): "switch" | "amount" | "text" | "codes" | "texts" {
  switch (kind) {
    case "switch":
      return "switch";
    case "texts":
    case "key":
      return "texts";
    case "exit codes":
    case "statuses":
      return "codes";
    case "span":
    case "size":
    case "percent":
    case "signal":
    case "exit code":
    case "count":
    case "factor":
      return "amount";
    default:
      return "text";
  }
}

/**
 * The options as words of `watchdog run`: `--probe=…`, `--expect-output`.
 *
 * @param options  as StepSpec has them; each of the names is of STEP_ROWS
 */
export function wordsOfStep(options: ReadonlyMap<string, readonly string[]>): readonly string[] {
  return [...options].flatMap(([name, texts]) => {
    const row = STEP_ROWS.get(name);
    if (row === undefined) return [];
    // Each switch is off where it is not given, and has no word for that.
    if (row.kind === "switch") return texts.at(-1) === "on" ? [row.flag] : [];
    return texts.map((text) => `${row.flag}=${text}`);
  });
}

/**
 * What a nested run would be refused for: options that contradict each other, a probe that no
 * configuration knows. Undefined: nothing.
 *
 * @param probes  the tables `[probes.NAME]` of the configuration
 */
export function refusalOfStep(
  options: ReadonlyMap<string, readonly string[]>,
  probes: ReadonlyMap<string, ProbeTableSettings>,
): string | undefined {
  if (options.size === 0) return undefined;
  const settings: Settings = { ...NO_SETTINGS, probes };
  const words = ["run", "--no-lease", ...wordsOfStep(options), "--", "true"];
  try {
    cutCommandLine(words, {}, () => settings);
    return undefined;
  } catch (error) {
    if (error instanceof WatchdogError) return error.message;
    throw error;
  }
}
