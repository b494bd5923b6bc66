/**
 * Tables of words for tests of decisions: each line fits some cases, and says what follows. A cell
 * is a word; `a|b`: one of these; `*`: any.
 */

export interface Line {
  readonly cells: readonly string[];
  readonly follows: string;
}

/** The first line names the columns, of which the last one takes the rest of each line. */
export function parseTable(table: string): readonly Line[] {
  const [head = "", ...lines] = table.trim().split("\n");
  const count = head.trim().split(/\s+/).length - 1;
  return lines.map((line) => {
    const words = line.trim().split(/\s+/);
    return { cells: words.slice(0, count), follows: words.slice(count).join(" ") };
  });
}

export function fitsLine({ cells }: Line, words: readonly string[]): boolean {
  return cells.every((cell, index) => cell === "*" || cell.split("|").includes(words[index] ?? ""));
}

/** Every choice of one word from each column. */
export function combine(columns: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const start: readonly (readonly string[])[] = [[]];
  return columns.reduce(
    (cases, column) => cases.flatMap((before) => column.map((word) => [...before, word])),
    start,
  );
}

export interface Compared {
  /** Cases that no line fits, or several, or one that says something else. */
  readonly wrong: readonly unknown[];
  /** Lines that fit no case. */
  readonly unused: readonly Line[];
}

export function compareTable(
  lines: readonly Line[],
  cases: readonly (readonly string[])[],
  decide: (words: readonly string[]) => string,
): Compared {
  const used = new Set<Line>();
  const wrong = cases.flatMap((words) => {
    const fitting = lines.filter((line) => fitsLine(line, words));
    for (const line of fitting) used.add(line);
    const follows = decide(words);
    const isRight = fitting.length === 1 && fitting[0]?.follows === follows;
    return isRight ? [] : [{ words, fitting, follows }];
  });
  return { wrong, unused: lines.filter((line) => !used.has(line)) };
}
