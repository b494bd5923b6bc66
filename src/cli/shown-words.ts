/**
 * Shows the words of a user: in a sentence, and as a line that a shell reads back as the same
 * words.
 *
 * Decides nothing about their meaning. Always: nothing that leaves here can move a cursor, change a
 * colour or reorder a line of the terminal it is printed on.
 */

import { escapeUnprintable } from "../core/printable.ts";

export { quoteForShell } from "../core/own-command.ts";

/** A word in a sentence is cut here: the sentence must stay one that a person reads. */
export const MAX_SHOWN_LENGTH = 80;

/** `"word"` for a sentence, cut when it is long. */
export function showWord(word: string): string {
  // A letter takes two units at most, and one letter more than the limit tells that it was passed.
  const letters = Array.from(word.slice(0, MAX_SHOWN_LENGTH * 2 + 2));
  const isLong = letters.length > MAX_SHOWN_LENGTH;
  const shown = isLong ? `${letters.slice(0, MAX_SHOWN_LENGTH - 1).join("")}…` : word;
  return `"${escapeUnprintable(shown)}"`;
}
