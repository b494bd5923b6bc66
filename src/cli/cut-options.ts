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
}

export type OptionsReading<Part> =
  | { readonly kind: "options"; readonly parts: readonly Part[]; readonly next: number }
  | { readonly kind: "help" }
  | Problem;

type Step<Part> =
  | {
      readonly kind: "value";
      readonly row: OptionRow<Part>;
      readonly part: Part;
      readonly next: number;
    }
  | { readonly kind: "help" }
  | Problem;

/** The options of `words` from `start` on, with what the variables say where the flag is absent. */
export function cutOptions<Part>(
  words: readonly string[],
  start: number,
  command: CommandRow<Part>,
  variables: Variables,
): OptionsReading<Part> {
  const parts: Part[] = [];
  const givenFlags = new Set<string>();
  let next = start;
  for (let word = words[next]; word !== undefined && isOptionLike(word); word = words[next]) {
    if (word === "--") {
      next += 1;
      break;
    }
    const step = cutOption(words, next, command);
    if (step.kind !== "value") return step;
    parts.push(step.part);
    givenFlags.add(step.row.flag);
    next = step.next;
  }
  const fromVariables = readVariables(words, command, variables, givenFlags);
  if (fromVariables.kind === "problem") return fromVariables;
  return { kind: "options", parts: [...fromVariables.parts, ...parts], next };
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
    return problem(
      `${row.flag} needs a value, found ${showWord(following)}; ` +
        `a value that starts with -- is written ${row.flag}=${showBare(following)}`,
      [
        replacedAt(words, at, 2, `${row.flag}=${following}`),
        replacedAt(words, at, 1, row.flag, row.example),
      ],
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
  const message = `${row.flag}: found ${showWord(found.text)}, expected ${parsed.expected}`;
  return problem(message, [replacedAt(words, at, found.count, row.flag, row.example)]);
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
  const instead = found.attached === undefined ? near : `${near}=${found.attached}`;
  return problem(`${start}; the nearest is ${near}`, [replacedAt(words, at, 1, instead)]);
}

function readVariables<Part>(
  words: readonly string[],
  command: CommandRow<Part>,
  variables: Variables,
  givenFlags: ReadonlySet<string>,
): { readonly kind: "parts"; readonly parts: readonly Part[] } | Problem {
  const parts: Part[] = [];
  for (const row of command.rows) {
    const text = row.variable === undefined ? undefined : variables[row.variable];
    if (row.variable === undefined || text === undefined || text === "") continue;
    if (givenFlags.has(row.flag)) continue;
    const parsed = row.read(text);
    if (parsed.kind === "refused") {
      const message = `${row.variable}: found ${showWord(text)}, expected ${parsed.expected}`;
      return problem(message, [{ words, variables: { [row.variable]: row.example } }]);
    }
    parts.push(parsed.value);
  }
  return { kind: "parts", parts };
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

function showBare(word: string): string {
  return showWord(word).slice(1, -1);
}
