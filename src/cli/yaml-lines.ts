/**
 * Reads the plain part of YAML: block mappings and lists, values on one line, flow collections on
 * one line, ASCII. Pure; about ten times as fast as the package behind yaml-text.ts, for jobs of
 * thousands of steps.
 *
 * Always: whatever is not plain (anchors, tags, escapes, texts of several lines, documents, numbers
 * that are not whole, and every mistake) is not read here at all but left to the package; what is
 * read here the package reads as the same values at the same places (a property test).
 */

import { DEEPEST } from "./located.ts";
import type { Entry, Located, Scalar } from "./located.ts";

/** Undefined: it is for the package. */
export function readPlainYaml(text: string): Located | undefined {
  // Tabs, other line ends and letters that might end a line are for the package.
  if (/[^\n\x20-\x7e]/.test(text)) return undefined;
  const lines = listLines(text);
  if (lines[0]?.indent !== 0) return undefined;
  try {
    return new Reader(lines).readDocument();
  } catch (stop) {
    if (stop instanceof NotPlain) return undefined;
    throw stop;
  }
}

class NotPlain extends Error {}

function giveUp(): never {
  throw new NotPlain();
}

interface Line {
  readonly indent: number;
  /** Without the blanks around it. */
  readonly content: string;
  /** The offset of its first letter. */
  readonly at: number;
}

/** Those that are neither empty nor a comment. */
function listLines(text: string): readonly Line[] {
  const lines: Line[] = [];
  let start = 0;
  while (start < text.length) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    const line = text.slice(start, end);
    const content = line.trim();
    const indent = line.length - line.trimStart().length;
    if (content !== "" && !content.startsWith("#")) {
      lines.push({ indent, content, at: start + indent });
    }
    start = end + 1;
  }
  return lines;
}

/** A key that is longer may be one that YAML refuses. */
const KEY = /^([A-Za-z_][A-Za-z0-9_.-]{0,99}):(?: +(.*))?$/;
const ITEM = "- ";

class Reader {
  readonly #lines: readonly Line[];
  #next = 0;

  constructor(lines: readonly Line[]) {
    this.#lines = lines;
  }

  readDocument(): Located {
    const root = this.#readTable(0, 0);
    return this.#next === this.#lines.length ? root : giveUp();
  }

  #readTable(indent: number, depth: number): Located {
    const at = this.#lines[this.#next]?.at ?? 0;
    const entries: Entry[] = [];
    for (let line = this.#peek(indent); line !== undefined; line = this.#peek(indent)) {
      const [, key, inline = ""] = KEY.exec(line.content) ?? giveUp();
      if (key === undefined) giveUp();
      this.#next += 1;
      const isInline = inline !== "" && !inline.startsWith("#");
      const value = isInline ? this.#readInline(line, inline) : this.#readBelow(indent, depth + 1);
      entries.push({ key, keyAt: line.at, value });
    }
    return { kind: "map", entries, at };
  }

  #readList(indent: number): Located {
    const at = this.#lines[this.#next]?.at ?? 0;
    const items: Located[] = [];
    for (let line = this.#peek(indent); line !== undefined; line = this.#peek(indent)) {
      // A key of the table around a list that is not indented.
      if (!line.content.startsWith(ITEM)) break;
      this.#next += 1;
      items.push(this.#readInline(line, line.content.slice(ITEM.length).trimStart()));
    }
    return { kind: "list", items, at };
  }

  /**
   * The next line, where it belongs to a block of this indent. One that is deeper belongs to no
   * block that is plain, so that the document does not end with its last line.
   */
  #peek(indent: number): Line | undefined {
    const line = this.#lines[this.#next];
    return line?.indent === indent ? line : undefined;
  }

  /** What stands in the lines below a key. */
  #readBelow(indent: number, depth: number): Located {
    const line = this.#lines[this.#next] ?? giveUp();
    const isList = line.content.startsWith(ITEM);
    if (depth > DEEPEST || line.indent < indent) giveUp();
    if (line.indent === indent) return isList ? this.#readList(indent) : giveUp();
    return isList ? this.#readList(line.indent) : this.#readTable(line.indent, depth);
  }

  /** @param text  the end of the line */
  #readInline(line: Line, text: string): Located {
    const at = line.at + line.content.length - text.length;
    return new InlineReader(text, at).readWhole();
  }
}

const DOUBLE = /"([^"\\]*)"/y;
const SINGLE = /'((?:[^']|'')*)'/y;
const FLOW_PLAIN = /[A-Za-z0-9_./$(][^,[\]{}#:]*(?::[^ ,[\]{}#:][^,[\]{}#:]*)*/y;
const FLOW_KEY = /([A-Za-z_][A-Za-z0-9_.-]{0,99}): +/y;
const BLANKS = / */y;
const PLAIN = /^[A-Za-z0-9_./$(]/;

/** What stands on one line: a text, a number, a word, or a flow collection of them. */
class InlineReader {
  readonly #text: string;
  readonly #offset: number;
  #at = 0;

  constructor(text: string, offset: number) {
    this.#text = text;
    this.#offset = offset;
  }

  readWhole(): Located {
    const first = this.#text[0] ?? "";
    if (!"\"'[{".includes(first)) return this.#readRest();
    const value = this.#readFlow(0);
    const rest = this.#text.slice(this.#at);
    return /^(?: +(?:#.*)?)?$/.test(rest) ? value : giveUp();
  }

  /** A text without quotes goes on to the end of the line, or to a comment. */
  #readRest(): Located {
    const end = this.#text.indexOf(" #");
    const text = (end < 0 ? this.#text : this.#text.slice(0, end)).trimEnd();
    if (!PLAIN.test(text) || text.includes(": ") || text.endsWith(":")) giveUp();
    return { kind: "scalar", value: resolve(text), at: this.#offset };
  }

  #readFlow(depth: number): Located {
    const at = this.#offset + this.#at;
    const first = this.#text[this.#at];
    if (depth > DEEPEST) giveUp();
    if (first === "[") return { kind: "list", items: this.#readItems(depth), at };
    if (first === "{") return { kind: "map", entries: this.#readEntries(depth), at };
    if (first === '"') return { kind: "scalar", value: this.#match(DOUBLE)[1] ?? "", at };
    if (first === "'") {
      const [, text = ""] = this.#match(SINGLE);
      return { kind: "scalar", value: text.replaceAll("''", "'"), at };
    }
    return { kind: "scalar", value: resolve(this.#match(FLOW_PLAIN)[0].trimEnd()), at };
  }

  #readItems(depth: number): readonly Located[] {
    const items: Located[] = [];
    this.#at += 1;
    if (this.#take("]")) return items;
    do items.push(this.#readFlow(depth + 1));
    while (this.#take(","));
    return this.#take("]") ? items : giveUp();
  }

  #readEntries(depth: number): readonly Entry[] {
    const entries: Entry[] = [];
    this.#at += 1;
    if (this.#take("}")) return entries;
    do {
      const keyAt = this.#offset + this.#at;
      const [, key = ""] = this.#match(FLOW_KEY);
      entries.push({ key, keyAt, value: this.#readFlow(depth + 1) });
    } while (this.#take(","));
    return this.#take("}") ? entries : giveUp();
  }

  /** Whether the letter stood there, with blanks around it; then it is passed with them. */
  #take(letter: string): boolean {
    this.#match(BLANKS);
    if (this.#text[this.#at] !== letter) return false;
    this.#at += 1;
    // Behind the last bracket the rest of the line is looked at with its blanks.
    if (letter === ",") this.#match(BLANKS);
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? giveUp();
    this.#at += found[0].length;
    return found;
  }
}

/** Of the core schema; numbers that are not plain whole ones are for the package. */
function resolve(text: string): Scalar {
  if (text === "true") return true;
  if (text === "false") return false;
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  const isOther = /^(?:true|false|null)$/i.test(text) || /^\.(?:inf|nan)$/i.test(text);
  const isNumber =
    /^(?:0o[0-7]+|0x[0-9a-fA-F]+)$/.test(text) ||
    /^(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text);
  return isOther || isNumber ? giveUp() : text;
}
