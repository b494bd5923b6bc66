/**
 * Reads a text of YAML 1.2 (core schema) with the place of each value and of each key. Pure.
 *
 * What is plain is read by yaml-lines.ts. A package does the rest because Bun's reader drops all
 * but the last of two equal keys and tells no place. Loaded only for the commands of jobs. Always:
 * one document, no tags but those of the core schema, no merge keys; an alias is the value of the
 * last anchor before it, and not of one around it. Equal keys are for plainOf (located.ts): the
 * check of the package compares each with each.
 */

import { isAlias, isMap, isNode, isPair, isScalar, isSeq, parseDocument } from "yaml";
import type { Document, ErrorCode, Node, Pair } from "yaml";
import { DEEPEST } from "./located.ts";
import type { Entry, Located, Scalar } from "./located.ts";
import { readPlainYaml } from "./yaml-lines.ts";

export interface YamlFinding {
  readonly at: number;
  /** A clause: what was found. */
  readonly found: string;
  readonly expected: string;
}

export type YamlReading =
  | { readonly kind: "value"; readonly root: Located }
  | { readonly kind: "refused"; readonly findings: readonly YamlFinding[] };

/** More of them than this are one mistake that was made on top of another. */
const MOST_ERRORS = 5;

export function readYaml(text: string): YamlReading {
  const plain = readPlainYaml(text);
  return plain === undefined ? readAnyYaml(text) : { kind: "value", root: plain };
}

/** The same, by the package alone. */
export function readAnyYaml(text: string): YamlReading {
  const document = parseDocument(text, {
    version: "1.2",
    schema: "core",
    merge: false,
    strict: true,
    uniqueKeys: false,
    prettyErrors: false,
    // "silent" would take the first of several documents without a word.
    logLevel: "error",
  });
  const errors = [...document.errors, ...document.warnings].slice(0, MOST_ERRORS);
  if (errors.length > 0) {
    const findings = errors.map(({ code, message, pos }) => ({
      at: pos[0],
      ...(MISTAKES.get(code) ?? { found: describeError(message), expected: "YAML" }),
    }));
    return { kind: "refused", findings };
  }
  try {
    return { kind: "value", root: new Converter().convertDocument(document) };
  } catch (stop) {
    if (stop instanceof Stop) return { kind: "refused", findings: [stop.finding] };
    throw stop;
  }
}

/** What people do wrong most, in other words than those of the grammar. */
const MISTAKES: ReadonlyMap<ErrorCode, Pick<YamlFinding, "found" | "expected">> = new Map([
  [
    "BLOCK_AS_IMPLICIT_KEY",
    {
      found: "a second colon with a blank behind it",
      expected: "one to a line; a text with one stands in quotes, as a whole",
    },
  ],
  [
    "TAB_AS_INDENT",
    { found: "a tab in front of the first word", expected: "blanks: tabs indent nothing in YAML" },
  ],
  [
    "BAD_INDENT",
    {
      found: "a line that begins in no column in which one above it begins",
      expected: "the keys of a table one below the other",
    },
  ],
]);

/** One line of it, with a small letter in front. */
function describeError(message: string): string {
  const [line = ""] = message.split("\n");
  return line.slice(0, 1).toLowerCase() + line.slice(1);
}

class Stop extends Error {
  readonly finding: YamlFinding;

  constructor(at: number, found: string, expected: string) {
    super(found);
    this.finding = { at, found, expected };
  }
}

const CORE_TAGS: readonly string[] = ["str", "int", "float", "bool", "null", "map", "seq"].map(
  (name) => `tag:yaml.org,2002:${name}`,
);

class Converter {
  readonly #anchors = new Map<string, Located | "begun">();

  convertDocument(document: Document.Parsed): Located {
    const { version } = document.directives.yaml;
    if (version !== "1.2") throw new Stop(0, `YAML ${version}`, "YAML 1.2");
    if (document.contents === null) throw new Stop(0, "an empty file", "a job");
    return this.#convert(document.contents, 0);
  }

  #convert(node: Node, depth: number): Located {
    const at = node.range?.[0] ?? 0;
    if (depth > DEEPEST) throw new Stop(at, "a deeper nesting", `at most ${DEEPEST} levels`);
    if (isAlias(node)) return this.#resolve(node.source, at);
    const tag = "tag" in node ? node.tag : undefined;
    if (tag !== undefined && !CORE_TAGS.includes(tag)) {
      throw new Stop(at, `the tag ${tag}`, "none, or one of the core schema");
    }
    const anchor = "anchor" in node ? node.anchor : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, "begun");
    const located = this.#convertPlain(node, at, depth);
    if (anchor !== undefined) this.#anchors.set(anchor, located);
    return located;
  }

  #convertPlain(node: Node, at: number, depth: number): Located {
    if (isMap(node)) {
      return { kind: "map", entries: node.items.map((pair) => this.#entryOf(pair, depth)), at };
    }
    if (isSeq(node)) {
      const items = node.items.map((item) => {
        if (!isNode(item)) throw new Stop(at, "a list of pairs", "a list of values");
        return this.#convert(item, depth + 1);
      });
      return { kind: "list", items, at };
    }
    if (isScalar(node) && isPlain(node.value)) return { kind: "scalar", value: node.value, at };
    throw new Stop(at, "a value that no job has", "a text, a number, true, false or null");
  }

  #entryOf(pair: unknown, depth: number): Entry {
    if (!isPair(pair)) throw new Stop(0, "an entry without a key", "KEY: VALUE");
    const { key, value } = pair as Pair<unknown, unknown>;
    const keyAt = isNode(key) ? (key.range?.[0] ?? 0) : 0;
    if (!isScalar(key)) throw new Stop(keyAt, "a key that is no text", "a text");
    // A step may be called 1 or true: a key is what is written.
    const text = typeof key.value === "string" ? key.value : (key.source ?? "");
    const located: Located = isNode(value)
      ? this.#convert(value, depth + 1)
      : { kind: "scalar", value: null, at: keyAt };
    return { key: text, keyAt, value: located };
  }

  #resolve(name: string, at: number): Located {
    const located = this.#anchors.get(name);
    if (located === undefined) throw new Stop(at, `*${name}`, `an anchor &${name} before it`);
    if (located === "begun") throw new Stop(at, `*${name} within &${name}`, "no circle");
    return located;
  }
}

function isPlain(value: unknown): value is Scalar {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}
