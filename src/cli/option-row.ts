/**
 * The shape of the tables of options and commands, and the names that follow from a flag.
 *
 * Holds no option itself. Always: an option's variable is `WATCHDOG_` and its flag, so that one
 * word is used for one thing on the command line and in the environment.
 */

import { accepted, mapped, parseSwitch } from "./values.ts";
import type { Parsed } from "./values.ts";

export type ValueKind =
  | "span"
  | "size"
  | "percent"
  | "time of day"
  | "signal"
  | "exit codes"
  | "choice"
  | "text"
  | "path"
  | "switch"
  | "request";

/** One option. `Part` is the piece of the command's options that it decides. */
export interface OptionRow<Part> {
  readonly flag: `--${string}`;
  readonly short: `-${string}` | undefined;
  readonly variable: string | undefined;
  /** A `switch` and a `request` (help, version) take no value on the command line. */
  readonly kind: ValueKind;
  /** How the value is called in help: `SPAN`, `kill|wait|leave`; empty where there is none. */
  readonly valueName: string;
  /** A value that is always accepted: shown in hints and tried by the tests. */
  readonly example: string;
  readonly defaultText: string;
  /** One sentence or two, with a capital and a full stop. */
  readonly help: string;
  /** Reads a value. A switch is read from `on` when its flag is there. */
  readonly read: (text: string) => Parsed<Part>;
}

export interface CommandRow<Part> {
  readonly name: string;
  /** One sentence without a full stop, for the list of commands. */
  readonly summary: string;
  readonly usage: string;
  readonly rows: readonly OptionRow<Part>[];
}

export function takesValue(row: { readonly kind: ValueKind }): boolean {
  return row.kind !== "switch" && row.kind !== "request";
}

/** `--idle-timeout` → `WATCHDOG_IDLE_TIMEOUT`. */
export function variableOf(flag: string): string {
  return `WATCHDOG_${flag.slice(2).replaceAll("-", "_").toUpperCase()}`;
}

type Details = Omit<OptionRow<unknown>, "flag" | "short" | "variable" | "kind" | "read">;

export function option<Part>(
  flag: `--${string}`,
  kind: ValueKind,
  details: Details & { readonly short?: `-${string}` },
  read: (text: string) => Parsed<Part>,
): OptionRow<Part> {
  return { short: undefined, variable: variableOf(flag), ...details, flag, kind, read };
}

export function toggle<Part>(
  flag: `--${string}`,
  details: { readonly help: string; readonly short?: `-${string}` },
  change: (isOn: boolean) => Part,
): OptionRow<Part> {
  return option(
    flag,
    "switch",
    { valueName: "", example: "on", defaultText: "off", ...details },
    (text) => mapped(parseSwitch(text), change),
  );
}

export function request(
  flag: `--${string}`,
  short: `-${string}` | undefined,
  help: string,
): OptionRow<object> {
  const nothing = { valueName: "", example: "", defaultText: "" };
  return {
    ...nothing,
    flag,
    short,
    variable: undefined,
    kind: "request",
    help,
    read: () => accepted({}),
  };
}
