/** The reader of JSON against JSON.parse: the same value, or no value at all. */

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { readJson } from "../../src/cli/json-text.ts";
import { placeOf, plainOf } from "../../src/cli/located.ts";

function parsed(text: string): unknown {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined; // SyntaxError: no JSON
  }
}

/** Undefined: it was refused. */
function read(text: string): unknown {
  const reading = readJson(text);
  if (reading.kind === "refused") return undefined;
  const { value, findings } = plainOf(reading.root);
  return findings.length > 0 ? undefined : { value };
}

const noPrototypeKey = (text: string) => !text.includes("__proto__");

describe("the reader of JSON", () => {
  test("reads what JSON.parse reads, however it is indented", () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 6, stringUnit: "binary" }).filter(noPrototypeKey),
        fc.constantFrom("", " ", "\t", "\n  "),
        (text, indent) => {
          const shown = JSON.stringify(JSON.parse(text), null, indent);
          expect(read(shown)).toEqual(parsed(shown));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("refuses what JSON.parse refuses: a letter was changed, lost or added", () => {
    const letters = fc.constantFrom(...'{}[]:,"\\u0-.eE+truefalsnl \n\t/');
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 4, stringUnit: "grapheme-ascii" }).filter(noPrototypeKey),
        fc.nat(),
        fc.nat({ max: 1 }),
        fc.option(letters, { nil: "" }),
        (text, place, removed, letter) => {
          const at = place % (text.length + 1);
          const changed = text.slice(0, at) + letter + text.slice(at + removed);
          const known = parsed(changed);
          const found = read(changed);
          // Equal keys and lost letters are refused here alone.
          if (found === undefined && known !== undefined) {
            expect(hasOwnComplaint(changed)).toBe(true);
          } else expect(found).toEqual(known);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test("reads texts of megabytes, of whatever they are made", () => {
    for (const unit of ["x", "\\n", "\\\\", '\\"', "\\u00e4", "\u00e4", "]"]) {
      const text = `["${unit.repeat(2_000_000)}",1]`;
      expect(Bun.deepEquals(read(text), parsed(text))).toBe(true);
    }
  });

  test("knows where each value stands", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.array(fc.nat())), (table) => {
        if (Object.hasOwn(table, "__proto__")) return;
        const text = JSON.stringify(table, null, 2);
        const reading = readJson(text);
        if (reading.kind === "refused") throw new Error("refused");
        for (const [key, items] of Object.entries(table)) {
          const keyAt = placeOf(reading.root, [key], "key");
          expect(text.slice(keyAt).startsWith(JSON.stringify(key))).toBe(true);
          for (const [at, item] of items.entries()) {
            const valueAt = placeOf(reading.root, [key, at], "value");
            expect(text.slice(valueAt).startsWith(String(item))).toBe(true);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});

function hasOwnComplaint(text: string): boolean {
  const reading = readJson(text);
  if (reading.kind === "refused") return false;
  const reasons = plainOf(reading.root).findings.map(({ because }) => because);
  return reasons.some((because) => ["duplicate-key", "wrong-value"].includes(because));
}
