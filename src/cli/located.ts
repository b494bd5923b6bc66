/**
 * The values of a text of YAML or JSON with the places where they stand, and the plain values that
 * are made of them.
 *
 * Knows no language and no key. Always: of two equal keys neither is dropped in silence, and what
 * aliases make of a short text is bounded.
 */

import type { Finding, FindingPath } from "./job-findings.ts";

/** `at` is the offset of its first letter. */
export type Located =
  | { readonly kind: "scalar"; readonly value: Scalar; readonly at: number }
  | { readonly kind: "list"; readonly items: readonly Located[]; readonly at: number }
  | { readonly kind: "map"; readonly entries: readonly Entry[]; readonly at: number };

export type Scalar = string | number | boolean | null;

export interface Entry {
  readonly key: string;
  readonly keyAt: number;
  readonly value: Located;
}

/** What stands deeper is no job, and a reader that calls itself would run out of stack. */
export const DEEPEST = 64;
/** 20,000 steps of 50 values each. */
export const MOST_VALUES = 1_000_000;

export interface PlainReading {
  /** Tables have no prototype. */
  readonly value: unknown;
  readonly findings: readonly Finding[];
}

/** The plain value; two equal keys of one table are a finding. */
export function plainOf(root: Located): PlainReading {
  const findings: Finding[] = [];
  let count = 0;
  const make = (located: Located, path: FindingPath): unknown => {
    count += 1;
    if (count > MOST_VALUES) return undefined;
    if (located.kind === "list") return located.items.map((item, at) => make(item, [...path, at]));
    if (located.kind === "map") return makeTable(located.entries, path);
    const { value, at } = located;
    if (typeof value === "string" && !value.isWellFormed()) {
      findings.push(lostLetters(path, at));
    }
    return value;
  };
  const makeTable = (entries: readonly Entry[], path: FindingPath): unknown => {
    const table: Record<string, unknown> = Object.create(null);
    const known = new Map<string, number>();
    for (const { key, keyAt, value } of entries) {
      const own = [...path, key];
      const before = known.get(key);
      if (before !== undefined) findings.push(twice(own, keyAt, before));
      // Wherever such a table is copied its prototype would be changed instead.
      else if (key === "__proto__") findings.push(noKey(own, keyAt));
      else table[key] = make(value, own);
      known.set(key, before ?? keyAt);
    }
    return table;
  };
  const value = make(root, []);
  if (count > MOST_VALUES) findings.push(tooMuch());
  return { value, findings };
}

function lostLetters(path: FindingPath, at: number): Finding {
  const found = "a text with half of a letter (a lone surrogate)";
  return { because: "wrong-value", path, at, found, expected: "a text of Unicode" };
}

function twice(path: FindingPath, at: number, before: number): Finding {
  const found = "a key that stands there already";
  return { because: "duplicate-key", path, at, found, expected: "each key once", before };
}

function noKey(path: FindingPath, at: number): Finding {
  return { because: "unknown-key", path, at, found: "an unknown key", expected: "another name" };
}

function tooMuch(): Finding {
  const found = `more than ${MOST_VALUES} values, those of aliases counted each time`;
  return { because: "too-large", path: [], at: undefined, found, expected: "fewer" };
}

/** Where the key of a path stands, or else its value; undefined: there is no such path. */
export function placeOf(root: Located, path: FindingPath, wanted: "key" | "value"): number {
  let located = root;
  let at = root.at;
  for (const part of path) {
    const entry = located.kind === "map" ? entryOf(located.entries, part) : undefined;
    const next = located.kind === "list" ? located.items[Number(part)] : entry?.value;
    if (next === undefined) return at; // what is missing is missed in what is around it
    at = wanted === "key" && entry !== undefined ? entry.keyAt : next.at;
    located = next;
  }
  return at;
}

function entryOf(entries: readonly Entry[], key: string | number): Entry | undefined {
  return entries.find((entry) => entry.key === key);
}

export interface Place {
  /** From 1 on. */
  readonly line: number;
  /** From 1 on, in units of UTF-16, as editors count. */
  readonly column: number;
}

/** Finds the line of an offset: `placesIn(text)(17)`. */
export function placesIn(text: string): (at: number) => Place {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (at) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= at) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: at - (starts[low] ?? 0) + 1 };
  };
}
