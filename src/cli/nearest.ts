/**
 * Finds the word that a person most likely meant.
 *
 * Knows no flags or commands; it only compares letters. Always: a word that is far from every
 * candidate has no nearest one, because a wrong guess costs more than none.
 */

/** Beyond this a word is no typing slip, and the comparison is not worth its time. */
export const MAX_COMPARED_LENGTH = 64;

/** The candidate within one slip for three letters typed, or the only one that the word begins. */
export function nearestOf(word: string, candidates: readonly string[]): string | undefined {
  const typed = bareWord(word);
  if (typed.length < 2 || typed.length > MAX_COMPARED_LENGTH) return undefined;
  const limit = Math.floor(typed.length / 3);
  let best: { readonly candidate: string; readonly slips: number } | undefined;
  for (const candidate of candidates) {
    const slips = countSlips(typed, bareWord(candidate));
    if (slips <= limit && (best === undefined || slips < best.slips)) best = { candidate, slips };
  }
  if (best !== undefined) return best.candidate;
  const longer = candidates.filter((candidate) => bareWord(candidate).startsWith(typed));
  return longer.length === 1 ? longer[0] : undefined;
}

function bareWord(word: string): string {
  return word.replace(/^-+/, "").replaceAll("_", "-").toLowerCase();
}

/**
 * Optimal string alignment: insertions, deletions, replacements and swaps of neighbours each count
 * as one.
 */
export function countSlips(left: string, right: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const isSame = left[row - 1] === right[column - 1];
      const isSwap = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      const choices = [
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      ];
      if (row > 1 && column > 1 && isSwap) choices.push((beforeLast[column - 2] ?? 0) + 1);
      current.push(Math.min(...choices));
    }
    beforeLast = last;
    last = current;
  }
  return last[right.length] ?? 0;
}
