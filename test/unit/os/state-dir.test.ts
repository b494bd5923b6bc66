/** Names for files out of any text: always safe, always short, never two for one. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { encodeName, resolveStateDirectory } from "../../../src/os/state-dir.ts";

test.each([
  ["nightly-backup.sh_2", "nightly-backup.sh_2"],
  ["a/b", "a%2Fb"],
  ["..", "%2E."],
  [".hidden", "%2Ehidden"],
  ["100%", "100%25"],
  ["ä", "%C3%A4"],
  ["a b\n", "a%20b%0A"],
  ["\u0000", "%00"],
  ["~", "%7E"],
  ["", ""],
])("%j is encoded as %j", (name, encoded) => {
  expect(encodeName(name)).toBe(encoded);
});

test("any text gives a safe name of at most 150 characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 400 }), (name) => {
      const encoded = encodeName(name);
      expect(encoded).toMatch(/^[A-Za-z0-9_%~-][A-Za-z0-9._%~-]{0,149}$/);
    }),
    { numRuns: 300 },
  );
});

test("a short name can be read back", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 12 }), (name) => {
      const encoded = encodeName(name);
      if (!encoded.includes("~")) expect(decodeURIComponent(encoded)).toBe(name);
    }),
    { numRuns: 200 },
  );
});

test("two long names with one beginning stay two, and neither can be that of a short one", () => {
  const [first, second] = ["a", "b"].map((end) => encodeName("x".repeat(300) + end));
  expect(first).not.toBe(String(second));
  expect(first).toHaveLength(150);
  expect(first).toContain("~");
  expect(encodeName(String(first))).not.toBe(String(first));
  expect(encodeName("x".repeat(150))).toBe("x".repeat(150));
});

test("a directory that was asked for becomes absolute, and nothing else is looked at", () => {
  expect(resolveStateDirectory("/srv/state")).toBe("/srv/state");
  expect(resolveStateDirectory("/srv/../state/.")).toBe("/state");
  expect(resolveStateDirectory("state")).toBe(`${process.cwd()}/state`);
});
