/**
 * Whether a line holds what must not be printed: it is not offered for pasting then, because a line
 * with stars in it would be a wrong one.
 *
 * Changes nothing. Always: a word that cannot be told from a secret counts as one.
 */

import { hideTargetSecrets } from "../core/probe-target.ts";
import { RUN_COMMAND } from "./options-table.ts";
import { PROBE_COMMAND } from "./probe-table.ts";

export function holdsSecret(words: readonly string[]): boolean {
  const takesTargets = words[0] === PROBE_COMMAND.name;
  return words.some((word, at) => {
    // Wherever it stands: the hint to a slip may take a probe for the words of a command.
    const isTarget = takesTargets || /:\/\//.test(word);
    if (isTarget && hideTargetSecrets(word) !== word) return true;
    return holdsSecretValue(word, words[at + 1]);
  });
}

/** @param next  the value of an option that has none attached */
function holdsSecretValue(word: string, next: string | undefined): boolean {
  const equals = word.indexOf("=");
  const flag = equals < 0 ? word : word.slice(0, equals);
  const value = equals < 0 ? next : word.slice(equals + 1);
  if (value === undefined) return false;
  const hide = RUN_COMMAND.rows.find((row) => row.flag === flag)?.hide;
  if (hide !== undefined && hide(value) !== value) return true;
  // An option that was taken for the value of the one before it has its own value behind it.
  return equals >= 0 && value.startsWith("--") && holdsSecretValue(value, next);
}
