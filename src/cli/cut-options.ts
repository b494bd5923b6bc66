/**
 * Reads the options of one command, up to the first word that is none.
 *
 * Knows the shape of the tables, not what is in them, and never looks at a word behind the options.
 * Always: the flag beats its variable, the last of two equal flags wins (scripts append the
 * overriding one), an empty variable counts as not set, and a variable whose flag is there is not
 * read.
 */

import { laterFlagOf, listLaterFlags, reasonOfLaterFlag } from "./later-names.ts";
import { nearestOf } from "./nearest.ts";
import { takesValue } from "./option-row.ts";
import type { CommandRow, OptionRow } from "./option-row.ts";
import { showWord } from "./shown-words.ts";
import { parseSwitch } from "./values.ts";
import type { Refused } from "./values.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/** Words, and variables before them, that may be what the user meant: untested. */
export interface Repair {
  readonly words: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

export interface Problem {
  readonly kind: "problem";
  readonly message: string;
  readonly repairs: readonly Repair[];
  /** What is wrong stands in a configuration file: the line is right. */
  readonly isOfFile?: boolean;
  /** `--config`, where the files were read. */
  readonly configFile?: string | undefined;
}

/** Where an option was given: by words of the line, by its variable, or in a file. */
export interface Given {
  /** The flag, the variable or the key, as it is called in a sentence. */
  readonly name: string;
  /** Undefined: not by words of the line. */
  readonly at: number | undefined;
  readonly count: number;
  /** The configuration file that says so; undefined: none does. */
  readonly file?: string;
  /** Of two files the larger one is the stronger. */
  readonly rank?: number;
}

export type GivenOptions = ReadonlyMap<string, Given>;

export interface FlagsReading<Part> {
  readonly kind: "flags";
  readonly parts: readonly Part[];
  readonly given: GivenOptions;
  readonly next: number;
  /** Whether `--` said that no option follows. */
  readonly isClosed: boolean;
}

export interface OptionsReading<Part> {
  readonly kind: "options";
  /** Those of variables first. */
  readonly parts: readonly Part[];
  readonly given: GivenOptions;
  readonly next: number;
}

export interface HelpAsked {
  readonly kind: "help";
}

type Step<Part> =
  | {
      readonly kind: "value";
      readonly row: OptionRow<Part>;
      readonly part: Part;
      readonly next: number;
    }
  | HelpAsked
  | Problem;

/** The options of `words` from `start` on, with what the variables say where the flag is absent. */
export function cutOptions<Part>(
  words: readonly string[],
  start: number,
  command: CommandRow<Part>,
  variables: Variables,
): OptionsReading<Part> | HelpAsked | Problem {
  const flags = cutFlags(words, start, command);
  if (flags.kind !== "flags") return flags;
  const { next } = flags;
  const whole = addVariables(words, command, variables, flags);
  return whole.kind === "problem" ? whole : { ...whole, next };
}

/** The options of `words` from `start` on; no variable is looked at. */
export function cutFlags<Part>(
  words: readonly string[],
  start: number,
  command: CommandRow<Part>,
): FlagsReading<Part> | HelpAsked | Problem {
  const parts: Part[] = [];
  const given = new Map<string, Given>();
  let next = start;
  let isClosed = false;
  for (let word = words[next]; word !== undefined && isOptionLike(word); word = words[next]) {
    if (word === "--") {
      next += 1;
      isClosed = true;
      break;
    }
    const step = cutOption(words, next, command);
    if (step.kind !== "value") return step;
    parts.push(step.part);
    given.set(step.row.flag, { name: step.row.flag, at: next, count: step.next - next });
    next = step.next;
  }
  return { kind: "flags", parts, given, next, isClosed };
}

/** `-` alone is a word, as for every program. */
export function isOptionLike(word: string): boolean {
  return word.startsWith("-") && word !== "-";
}

export function problem(message: string, repairs: readonly Repair[] = []): Problem {
  return { kind: "problem", message, repairs };
}

/** The words with `count` of them at `at` replaced. */
export function replacedAt(
  words: readonly string[],
  at: number,
  count: number,
  ...instead: readonly string[]
): Repair {
  return { words: words.toSpliced(at, count, ...instead) };
}

function cutOption<Part>(
  words: readonly string[],
  at: number,
  command: CommandRow<Part>,
): Step<Part> {
  const word = words[at] ?? "";
  const equals = word.startsWith("--") ? word.indexOf("=") : -1;
  const name = equals < 0 ? word : word.slice(0, equals);
  const attached = equals < 0 ? undefined : word.slice(equals + 1);
  const row = command.rows.find((each) => each.flag === name || each.short === name);
  if (row === undefined) return refuseName(words, at, { name, attached }, command);
  if (!takesValue(row)) return cutBare(words, at, row, attached);
  const following = words[at + 1];
  if (attached !== undefined) return readValue(words, at, row, { text: attached, count: 1 });
  if (following === undefined) {
    return problem(
      `${row.flag} needs a value, found the end of the line, expected ${row.valueName}`,
    );
  }
  if (following.startsWith("--")) {
    // It may be another option, with a value that must not be shown.
    const shown = (row.hide?.(following) ?? following).replace(/=.+$/s, "=…");
    return problem(
      `${row.flag} needs a value, found ${showWord(shown)}; ` +
        `a value that starts with -- is written ${row.flag}=${showBare(shown)}`,
      [replacedAt(words, at, 2, `${row.flag}=${following}`), ...withExample(words, at, 1, row)],
    );
  }
  return readValue(words, at, row, { text: following, count: 2 });
}

function cutBare<Part>(
  words: readonly string[],
  at: number,
  row: OptionRow<Part>,
  attached: string | undefined,
): Step<Part> {
  if (attached !== undefined) {
    const asSwitch = parseSwitch(attached);
    const isOff = asSwitch.kind === "value" && !asSwitch.value;
    const repair = isOff ? replacedAt(words, at, 1) : replacedAt(words, at, 1, row.flag);
    const found = `found ${showWord(attached)}, expected ${row.flag} alone`;
    return problem(`${row.flag} takes no value, ${found}`, [repair]);
  }
  if (row.flag === "--help") return { kind: "help" };
  return readValue(words, at, row, { text: "on", count: 1 });
}

function readValue<Part>(
  words: readonly string[],
  at: number,
  row: OptionRow<Part>,
  found: { readonly text: string; readonly count: number },
): Step<Part> {
  const parsed = row.read(found.text);
  if (parsed.kind === "value") {
    return { kind: "value", row, part: parsed.value, next: at + found.count };
  }
  const message = `${row.flag}: ${renderRefusal(row, found.text, parsed)}`;
  return problem(message, withExample(words, at, found.count, row));
}

/** Whoever pastes it must not have decided what he has never thought of. */
function withExample<Part>(
  words: readonly string[],
  at: number,
  count: number,
  { flag, example, isDecision = false }: OptionRow<Part>,
): Repair[] {
  return isDecision ? [] : [replacedAt(words, at, count, flag, example)];
}

function refuseName<Part>(
  words: readonly string[],
  at: number,
  found: { readonly name: string; readonly attached: string | undefined },
  command: CommandRow<Part>,
): Problem {
  const later = reasonOfLaterFlag(found.name);
  if (later !== undefined)
    return problem(`${found.name} is not available in this version: ${later}`);
  const flags = command.rows.map((row): string => row.flag);
  const near = nearestOf(found.name, [...flags, ...listLaterFlags()]);
  const expected = `expected an option of watchdog ${command.name}`;
  const start = `unknown option ${showWord(found.name)}, ${expected}`;
  if (near === undefined) return problem(start);
  if (!flags.includes(near)) {
    return problem(`${start}; the nearest is ${near}, which is not available in this version`);
  }
  const guess = `${start}; the nearest is ${near}`;
  const row = command.rows.find(({ flag }) => flag === near);
  // A whole decision would stand there that nobody has typed.
  if (row?.isDecision === true && !takesValue(row)) return problem(guess);
  const instead = found.attached === undefined ? near : `${near}=${found.attached}`;
  return problem(guess, [replacedAt(words, at, 1, instead)]);
}

/** What the variables say of the options that no flag has decided. */
export function addVariables<Part>(
  words: readonly string[],
  command: CommandRow<Part>,
  variables: Variables,
  flags: Pick<FlagsReading<Part>, "parts" | "given">,
): Omit<OptionsReading<Part>, "next"> | Problem {
  const parts: Part[] = [];
  const given = new Map(flags.given);
  for (const row of command.rows) {
    const text = row.variable === undefined ? undefined : variables[row.variable];
    if (row.variable === undefined || text === undefined || text === "") continue;
    if (flags.given.has(row.flag)) continue;
    const parsed = row.read(text);
    if (parsed.kind === "refused") {
      const message = `${row.variable}: ${renderRefusal(row, text, parsed)}`;
      return problem(message, [{ words, variables: { [row.variable]: row.example } }]);
    }
    parts.push(parsed.value);
    given.set(row.flag, { name: row.variable, at: undefined, count: 0 });
  }
  return { kind: "options", parts: [...parts, ...flags.parts], given };
}

/** A protection asked for by a variable of a later version is refused as its flag is. */
export function refuseLaterVariables(variables: Variables): Problem | undefined {
  for (const variable of Object.keys(variables)) {
    if (!variable.startsWith("WATCHDOG_") || (variables[variable] ?? "") === "") continue;
    const flag = laterFlagOf(variable);
    if (flag === undefined) continue;
    const reason = reasonOfLaterFlag(flag) ?? "";
    return problem(`${variable} (${flag}) is not available in this version: ${reason}`);
  }
  return undefined;
}

/** `found "5x", expected a span such as ...`, or with what is wrong with the value as a whole. */
export function renderRefusal(
  row: Pick<OptionRow<unknown>, "hide">,
  text: string,
  { found = showValue(row, text), expected }: Refused,
): string {
  return `found ${found}, expected ${expected}`;
}

/** As `showWord`, without the secrets of a value. */
export function showValue(row: Pick<OptionRow<unknown>, "hide">, text: string): string {
  return showWord(row.hide?.(text) ?? text);
}

function showBare(word: string): string {
  return showWord(word).slice(1, -1);
}
