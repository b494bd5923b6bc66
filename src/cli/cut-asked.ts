/**
 * Reads the line of a command that wraps no other: its options, and the words beside them.
 *
 * Knows the shape of the tables, not what is in them. Always: the words may stand before, between
 * or behind the options; behind `--` they may look like one.
 */

import type { AnswerCommand, AnswerOptions } from "./answers-table.ts";
import { DEFAULT_HISTORY_LIMIT, DEFAULT_SINCE_MS } from "./cut.ts";
import { addVariables, cutFlags, problem, replacedAt } from "./cut-options.ts";
import type { Given, GivenOptions, HelpAsked, Problem, Variables } from "./cut-options.ts";
import type { CommandRow } from "./option-row.ts";
import { showWord } from "./shown-words.ts";

const DEFAULTS: AnswerOptions = {
  stateDir: undefined,
  configFile: undefined,
  isJson: false,
  isWatching: false,
  limit: DEFAULT_HISTORY_LIMIT,
  sinceMs: DEFAULT_SINCE_MS,
  htmlFile: undefined,
  killAfterMs: undefined,
};

/** A word of the line, and where it stands. */
export interface Operand {
  readonly text: string;
  readonly at: number;
}

interface Asked {
  readonly kind: "asked";
  readonly options: AnswerOptions;
  readonly operand: Operand | undefined;
}

export interface WordsReading<Part> {
  readonly kind: "words";
  /** Those of variables first. */
  readonly parts: readonly Part[];
  readonly given: GivenOptions;
  readonly operands: readonly Operand[];
}

/** The options of a command, and the one word at most that it is asked about. */
export function cutAsked(
  words: readonly string[],
  start: number,
  command: AnswerCommand,
  variables: Variables,
): Asked | HelpAsked | Problem {
  const reading = cutWordsAndOptions(words, start, command, variables);
  if (reading.kind !== "words") return reading;
  const { operands, parts } = reading;
  const refusal = refuseOperands(words, command, operands);
  if (refusal !== undefined) return refusal;
  const options: AnswerOptions = Object.assign({}, DEFAULTS, ...parts);
  return { kind: "asked", options, operand: operands[0] };
}

/** The options of a command, and all words beside them. */
export function cutWordsAndOptions<Part>(
  words: readonly string[],
  start: number,
  command: CommandRow<Part>,
  variables: Variables,
): WordsReading<Part> | HelpAsked | Problem {
  const parts: Part[] = [];
  const given = new Map<string, Given>();
  const operands: Operand[] = [];
  let next = start;
  let isClosed = false;
  while (next < words.length) {
    if (!isClosed) {
      const flags = cutFlags(words, next, command);
      if (flags.kind !== "flags") return flags;
      parts.push(...flags.parts);
      for (const [flag, where] of flags.given) given.set(flag, where);
      ({ next, isClosed } = flags);
    }
    const text = words[next];
    if (text !== undefined) operands.push({ text, at: next });
    next += 1;
  }
  const whole = addVariables(words, command, variables, { parts, given });
  if (whole.kind === "problem") return whole;
  return { kind: "words", parts: whole.parts, given: whole.given, operands };
}

function refuseOperands(
  words: readonly string[],
  command: AnswerCommand,
  operands: readonly { readonly text: string; readonly at: number }[],
): Problem | undefined {
  const { name, operand, needsOperand, usage } = command;
  const [first, second] = operands;
  if (first === undefined) {
    if (!needsOperand) return undefined;
    return problem(`${name} was told nothing to look for, expected ${usage}`);
  }
  if (operand === undefined) {
    const message = `${name} takes no word beside its options, found ${showWord(first.text)}`;
    const shown = replacedAt(words, 1, 1, "show");
    return problem(message, [shown, replacedAt(words, first.at, 1)]);
  }
  if (second !== undefined) {
    const message = `${name} takes one word beside its options, found ${showWord(second.text)} too`;
    return problem(message, [replacedAt(words, second.at, 1)]);
  }
  const isName = first.text !== "" && !first.text.includes("\uFFFD");
  if (isName) return undefined;
  return problem(`${name}: found ${showWord(first.text)}, expected ${operand}`);
}
