/**
 * Reads a text of JSON (RFC 8259) with the place of each value and of each key. Pure.
 *
 * A reader of its own because JSON.parse drops all but the last of two equal keys and does not say
 * where it stopped, and because one of YAML takes fifty times as long. Always: what is read as a
 * value JSON.parse reads as the same one, but for equal keys (a property test).
 */

import { DEEPEST } from "./located.ts";
import type { Entry, Located, Scalar } from "./located.ts";

export type JsonReading =
  | { readonly kind: "value"; readonly root: Located }
  /** Where it stops being JSON, and what was expected there. */
  | { readonly kind: "refused"; readonly at: number; readonly expected: string };

export function readJson(text: string): JsonReading {
  const reader = new Reader(text);
  try {
    const root = reader.readValue(0);
    reader.expectEnd();
    return { kind: "value", root };
  } catch (stop) {
    if (stop instanceof Stop) return { kind: "refused", at: stop.at, expected: stop.expected };
    throw stop;
  }
}

class Stop extends Error {
  readonly at: number;
  readonly expected: string;

  constructor(at: number, expected: string) {
    super(expected);
    this.at = at;
    this.expected = expected;
  }
}

const BLANKS = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /[a-z]+/y;
const WORDS: ReadonlyMap<string, Scalar> = new Map<string, Scalar>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  readValue(depth: number): Located {
    this.#skipBlanks();
    const at = this.#at;
    if (depth > DEEPEST) throw new Stop(at, `lists and tables at most ${DEEPEST} deep`);
    const letter = this.#text[at];
    if (letter === "{") return { kind: "map", entries: this.#readEntries(depth), at };
    if (letter === "[") return { kind: "list", items: this.#readItems(depth), at };
    if (letter === '"') return { kind: "scalar", value: this.#readString(), at };
    return { kind: "scalar", value: this.#readScalar(), at };
  }

  expectEnd(): void {
    this.#skipBlanks();
    if (this.#at < this.#text.length) throw new Stop(this.#at, "the end of the file");
  }

  #readEntries(depth: number): readonly Entry[] {
    const entries: Entry[] = [];
    this.#at += 1;
    if (this.#take("}")) return entries;
    do {
      this.#skipBlanks();
      const keyAt = this.#at;
      if (this.#text[keyAt] !== '"') throw new Stop(keyAt, "a key in double quotes");
      const key = this.#readString();
      if (!this.#take(":")) throw new Stop(this.#at, "a colon");
      entries.push({ key, keyAt, value: this.readValue(depth + 1) });
    } while (this.#take(","));
    if (!this.#take("}")) throw new Stop(this.#at, "a comma or }");
    return entries;
  }

  #readItems(depth: number): readonly Located[] {
    const items: Located[] = [];
    this.#at += 1;
    if (this.#take("]")) return items;
    do items.push(this.readValue(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) throw new Stop(this.#at, "a comma or ]");
    return items;
  }

  #readString(): string {
    const start = this.#at;
    this.#at = this.#findClosingQuote(start) + 1;
    try {
      return String(JSON.parse(this.#text.slice(start, this.#at)));
    } catch {
      // SyntaxError: a control character, an escape that is none
      throw new Stop(start, "a text as JSON writes it");
    }
  }

  /** By hand: an expression with a choice in it gives up on texts of a few megabytes. */
  #findClosingQuote(start: number): number {
    let at = this.#text.indexOf('"', start + 1);
    while (at >= 0 && this.#isEscaped(at)) at = this.#text.indexOf('"', at + 1);
    if (at < 0) throw new Stop(start, "a text that ends with a double quote");
    return at;
  }

  /** An odd number of backslashes stands before it. */
  #isEscaped(at: number): boolean {
    let first = at;
    while (this.#text[first - 1] === "\\") first -= 1;
    return (at - first) % 2 === 1;
  }

  #readScalar(): Scalar {
    const at = this.#at;
    const number = this.#match(NUMBER);
    if (number !== undefined && number !== "") return Number(number);
    const value = WORDS.get(this.#match(WORD) ?? "");
    if (value === undefined) throw new Stop(at, "a value: a text, a number, a list, a table");
    return value;
  }

  /** Whether the letter stood there, behind any blanks; then it is passed. */
  #take(letter: string): boolean {
    this.#skipBlanks();
    if (this.#text[this.#at] !== letter) return false;
    this.#at += 1;
    return true;
  }

  #skipBlanks(): void {
    this.#match(BLANKS);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [token] = pattern.exec(this.#text) ?? [];
    if (token !== undefined) this.#at += token.length;
    return token;
  }
}
