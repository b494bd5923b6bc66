/**
 * A line that was read, and what can be said of its options in a sentence or in a repair: how the
 * user gave them, and the line with another value.
 *
 * Cuts nothing and knows no option.
 */

import { replacedAt } from "./cut-options.ts";
import type { GivenOptions, Repair } from "./cut-options.ts";

export interface ReadLine {
  readonly words: readonly string[];
  readonly given: GivenOptions;
}

/** As the user gave it: the flag, its variable, or the key of a file. */
export function nameOf(line: ReadLine, flag: string): string {
  return line.given.get(flag)?.name ?? flag;
}

/** A flag, a variable, the stronger file, the weaker one. */
export function rankOf(line: ReadLine, flag: string): number {
  const given = line.given.get(flag);
  if (given?.at !== undefined) return Number.MAX_SAFE_INTEGER;
  return given?.file === undefined ? Number.MAX_SAFE_INTEGER - 1 : (given.rank ?? 0);
}

export function isOfFileAlone(line: ReadLine, flags: readonly string[]): boolean {
  return flags.every((flag) => line.given.get(flag)?.file !== undefined);
}

/** The line with another value of this option, or without it, where it was given. */
export function setTo(line: ReadLine, flag: string, value: string | undefined): Repair {
  const given = line.given.get(flag);
  if (given === undefined || given.file !== undefined) {
    return replacedAt(line.words, 1, 0, ...(value === undefined ? [] : [flag, value]));
  }
  if (given.at === undefined) {
    return { words: line.words, variables: { [nameOf(line, flag)]: value ?? "off" } };
  }
  const instead = value === undefined ? [] : [flag, value];
  return replacedAt(line.words, given.at, given.count, ...instead);
}
