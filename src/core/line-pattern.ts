/**
 * Expressions that are tried on output, line by line: how one is compiled, and when many lines may
 * be tried at once. Pure.
 *
 * A line alone is what a pattern is about: it never sees the line feed, nor a carriage return right
 * before it. Lines that are too long come in windows, and then a pattern must not take the edge of
 * a window for the edge of a line: `^` and `$` hold only where the line itself begins and ends.
 *
 * Trying each line costs 20 to 600 MB/s, trying a whole text 1,000 to 10,000 (measured). So where
 * it is certain that no part of a pattern can match a line feed, the pattern is first tried on all
 * lines at once; what is found there is tried again on its line alone.
 */

/** Longer ones are refused before they are compiled. */
export const LONGEST_PATTERN = 1_000;

/** Where a text stands in its line. */
export interface Edges {
  readonly isLineStart: boolean;
  readonly isLineEnd: boolean;
}

export interface LinePattern {
  readonly source: string;
  /** Whether it is found in this text, which holds no line feed. */
  readonly expressionFor: (edges: Edges) => RegExp;
  /** For a text of whole lines; undefined: each line must be tried alone. */
  readonly manyLines: RegExp | undefined;
}

/** @returns undefined: it is no expression */
export function compileLinePattern(source: string): LinePattern | undefined {
  if (source === "" || source.length > LONGEST_PATTERN) return undefined;
  try {
    const whole = new RegExp(source);
    const inner = new RegExp(`(?<=[^])(?:${source})(?=[^])`);
    const first = new RegExp(`(?:${source})(?=[^])`);
    const last = new RegExp(`(?<=[^])(?:${source})`);
    const many = rewriteForManyLines(source);
    return {
      source,
      expressionFor({ isLineStart, isLineEnd }) {
        if (isLineStart) return isLineEnd ? whole : first;
        return isLineEnd ? last : inner;
      },
      manyLines: many === undefined ? undefined : new RegExp(many, "m"),
    };
  } catch {
    return undefined; // SyntaxError
  }
}

/**
 * Words of other dialects (grep, Perl, PCRE, Python) that JavaScript takes for letters without a
 * word: a check with one of them would look for something else, and say that all is well.
 */
const FOREIGN = /^(?:\\[pP]\{?|\\u\{|\\[<>]|\\[ACEGHIJKLMNOQRTUVXYZaeghijlmoqyz])/;
const FOREIGN_CLASS = /^\[[:.=][a-z]/;

/** @returns the first word that is not of JavaScript; undefined: there is none */
export function findForeignWord(source: string): string | undefined {
  let isInClass = false;
  for (let at = 0; at < source.length; at += 1) {
    const rest = source.slice(at, at + 4);
    const foreign = FOREIGN.exec(rest)?.[0] ?? (isInClass ? FOREIGN_CLASS.exec(rest)?.[0] : null);
    if (typeof foreign === "string") return foreign;
    if (rest.startsWith("\\")) at += 1;
    else if (rest.startsWith("[")) isInClass = true;
    else if (rest.startsWith("]")) isInClass = false;
  }
  return undefined;
}

/**
 * Whether it wants a line feed somewhere: no line holds one, so that this part would never be
 * found, and a `--fail-match` with it would say that all is well.
 */
export function wantsLineFeed(source: string): boolean {
  // Classes, in which it may be one of several, and escapes other than this one say nothing.
  const plain = source.replace(/\\[^n]|\[(?:\\[^]|[^\]\\])*\]/g, "x");
  return /(?:\\n|\n)(?![?*]|\{0)/.test(plain);
}

/** Whether it is found in every line, so that nothing is looked for. */
export function isFoundEverywhere(source: string): boolean {
  const expression = new RegExp(source);
  return expression.test("") && expression.test("\u0001");
}

/** Escapes that mean one character, or a place, and never a line feed. */
const HARMLESS_ESCAPE = /^[dwSbB^$\\.*+?()[\]{}|/\-"'#&,:;<=>@!%~`_ ]$/;
const CLASS_ESCAPE = /^[dwS^$\\.*+?()[\]{}|/\-"'#&,:;<=>@!%~`_ ]$/;
/** The same without the line feed, which no line holds. */
const WITHOUT_LINE_FEED: Readonly<Record<string, string>> = {
  s: "[^\\S\\n]",
  W: "[^\\w\\n]",
  D: "[^\\d\\n]",
};
const GROUP = /^\((?:\?:|\?i:|\?<[A-Za-z_]\w*>|(?!\?))/;
const CLASS = /^\[(\^?)((?:\\[^]|[^\]\\])*)\]/;
/** Below a space there are the line feed and what a range might reach it from. */
const FIRST_PLAIN = 0x20;

/**
 * An expression (for the flag `m`) that finds something in lines wherever `source` does in one of
 * them alone, and nothing that goes over a line feed. Undefined where that is not certain: looking
 * ahead or behind sees the next line, a back-reference or a rare escape is not worth a rule.
 */
export function rewriteForManyLines(source: string): string | undefined {
  let rest = source;
  let written = "";
  while (rest !== "") {
    const step = rewriteOne(rest);
    if (step === undefined) return undefined;
    written += step.written;
    rest = rest.slice(step.length);
  }
  return written;
}

interface Step {
  readonly length: number;
  readonly written: string;
}

function rewriteOne(rest: string): Step | undefined {
  const first = rest[0] ?? "";
  if (first === "\\") return rewriteEscape(rest[1] ?? "");
  if (first === "[") return rewriteClass(rest);
  if (first === "(") {
    const group = GROUP.exec(rest)?.[0];
    return group === undefined ? undefined : { length: group.length, written: group };
  }
  if (!isPlain(first) && first !== "\t") return undefined;
  return { length: 1, written: first };
}

function rewriteEscape(letter: string): Step | undefined {
  const instead = WITHOUT_LINE_FEED[letter];
  if (instead !== undefined) return { length: 2, written: instead };
  if (letter !== "t" && !HARMLESS_ESCAPE.test(letter)) return undefined;
  return { length: 2, written: `\\${letter}` };
}

function rewriteClass(rest: string): Step | undefined {
  const found = CLASS.exec(rest);
  if (found === null) return undefined;
  const [whole, negation, content = ""] = found;
  if (negation === "^") {
    // In front, because behind it a closing `-` would become a range.
    const safe = content.startsWith("-") ? `\\${content}` : content;
    return { length: whole.length, written: `[^\\n${safe}]` };
  }
  return isHarmlessClass(content) ? { length: whole.length, written: whole } : undefined;
}

function isHarmlessClass(content: string): boolean {
  for (let at = 0; at < content.length; at += 1) {
    const letter = content[at] ?? "";
    if (letter !== "\\") {
      if (!isPlain(letter)) return false;
      continue;
    }
    at += 1;
    if (!CLASS_ESCAPE.test(content[at] ?? "")) return false;
  }
  return true;
}

function isPlain(letter: string): boolean {
  return letter.charCodeAt(0) >= FIRST_PLAIN;
}
