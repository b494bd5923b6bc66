/**
 * Where this process was told to look, by the words of its own line: kept for the commands that it
 * prints. Set once by the front door; decides nothing.
 *
 * Clock: none. State after a crash: none.
 */
import { addPlace, placeWordsOf, quoteForShell } from "../core/own-command.ts";

let place: readonly string[] = [];

/** @param commandAt  where the words of another program begin; undefined: there are none */
export function rememberOwnLine(words: readonly string[], commandAt?: number): void {
  const marker = words.indexOf("--");
  const end = commandAt ?? (marker < 0 ? words.length : marker);
  place = placeWordsOf(words, end);
}

/** The line of ours with these words behind `watchdog`; undefined: it cannot be shown. */
export function ownLine(words: readonly string[]): string | undefined {
  const line = quoteForShell(["watchdog", ...words]);
  return line === undefined ? undefined : addPlace(line, place);
}

/** `--state-dir DIR`, `--config FILE`: for another process of this program that prints commands. */
export function ownPlace(): readonly string[] {
  return place;
}

/** A sentence for people, with the place in the command that it names. */
export function placeIn(text: string): string {
  return addPlace(text, place);
}
