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
  | "exit code"
  | "exit codes"
  | "count"
  | "key"
  | "factor"
  | "statuses"
  | "choice"
  | "text"
  | "texts"
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
  /** A person's word about what becomes of a step: no hint says it, or another one in its place. */
  readonly isDecision?: boolean;
  /** The value without its secrets, for a sentence; undefined: it has none. */
  readonly hide?: ((text: string) => string) | undefined;
  /** Reads a value. A switch is read from `on` when its flag is there. */
  readonly read: (text: string) => Parsed<Part>;
}

/** Options that the help shows under a title of their own. */
export interface OptionSection {
  readonly title: string;
  readonly rows: readonly OptionRow<unknown>[];
}

export interface CommandRow<Part> {
  readonly name: string;
  /** One sentence without a full stop, for the list of commands. */
  readonly summary: string;
  readonly usage: string;
  readonly rows: readonly OptionRow<Part>[];
  /** Rows of these stand in `rows` too. */
  readonly sections?: readonly OptionSection[];
}

/** The rows of a command that stand in no section. */
export function plainRowsOf<Part>({
  rows,
  sections = [],
}: CommandRow<Part>): readonly OptionRow<Part>[] {
  const sectioned = new Set(sections.flatMap((section) => section.rows.map(({ flag }) => flag)));
  return rows.filter(({ flag }) => !sectioned.has(flag));
}

export function takesValue(row: { readonly kind: ValueKind }): boolean {
  return row.kind !== "switch" && row.kind !== "request";
}

/** `--idle-timeout` → `WATCHDOG_IDLE_TIMEOUT`. */
export function variableOf(flag: string): string {
  return `WATCHDOG_${flag.slice(2).replaceAll("-", "_").toUpperCase()}`;
}

/** `--idle-timeout` → `idle_timeout`, its key in a configuration file. */
export function configNameOf(flag: string): string {
  return flag.slice(2).replaceAll("-", "_");
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
