/**
 * The manifest of a directory: the same for the same tree in whatever order it was read, another
 * one for any other tree. The oracle compares trees entry by entry and knows no text.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { type ManifestEntry, renderManifest } from "../../src/core/artifact-manifest.ts";
import { asByteText } from "../../src/core/byte-text.ts";

const RUNS = 2_000;

const render = (entries: readonly ManifestEntry[]): string => [...renderManifest(entries)].join("");

/** Bytes that look like the text around them are likelier than others. */
const byte = fc.oneof(
  fc.constantFrom(...Buffer.from(" -\\x\n0123456789abcdef/file")),
  fc.integer({ min: 1, max: 255 }),
);
const path = fc
  .array(byte, { minLength: 1, maxLength: 12 })
  .map((bytes) => asByteText(Uint8Array.from(bytes)));
const digest = fc.constantFrom("a".repeat(64), "b".repeat(64), "0".repeat(64));
const entry: fc.Arbitrary<ManifestEntry> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("file" as const, "link" as const),
    path,
    bytes: fc.nat(20),
    sha256: digest,
  }),
  path.map((path) => ({ kind: "directory" as const, path, bytes: 0, sha256: "" })),
);
const tree = fc.uniqueArray(entry, { maxLength: 6, selector: ({ path }) => path });

function isSameTree(one: readonly ManifestEntry[], other: readonly ManifestEntry[]): boolean {
  const known = new Map(one.map((each) => [each.path, each]));
  return (
    one.length === other.length && other.every((each) => Bun.deepEquals(known.get(each.path), each))
  );
}

test("has one text for one tree, whatever the order", () => {
  fc.assert(
    fc.property(tree, fc.infiniteStream(fc.nat()), (entries, dice) => {
      const shuffled = entries.toSorted(() => (dice.next().value % 2 === 0 ? 1 : -1));
      expect(render(shuffled)).toBe(render(entries));
    }),
    { numRuns: RUNS },
  );
});

test("has two texts for two trees", () => {
  fc.assert(
    fc.property(tree, tree, (one, other) => {
      expect(render(one) === render(other)).toBe(isSameTree(one, other));
    }),
    { numRuns: RUNS },
  );
});

test("has another text after any single change", () => {
  const change = fc.record({
    at: fc.nat(),
    entry,
    what: fc.constantFrom("path", "bytes", "sha256", "kind", "all", "gone", "more"),
  });
  fc.assert(
    fc.property(tree, change, (entries, { at, entry, what }) => {
      const index = entries.length === 0 ? 0 : at % entries.length;
      const old = entries[index];
      const rest = entries.filter((_, each) => each !== index);
      const made =
        what === "gone"
          ? []
          : what === "more" || what === "all" || old === undefined
            ? [...(what === "more" && old !== undefined ? [old] : []), entry]
            : [{ ...old, [what]: entry[what as keyof ManifestEntry] } as ManifestEntry];
      const other = [...rest, ...made].map(asReal);
      fc.pre(new Set(other.map(({ path }) => path)).size === other.length);
      expect(render(entries) === render(other)).toBe(isSameTree(entries, other));
    }),
    { numRuns: RUNS },
  );
});

/** A directory has no content; what else was changed of it is nothing that there is. */
function asReal(entry: ManifestEntry): ManifestEntry {
  if (entry.kind === "directory") return { ...entry, bytes: 0, sha256: "" };
  return entry.sha256 === "" ? { ...entry, sha256: "c".repeat(64) } : entry;
}

test("is in the order of bytes, one printable line an entry", () => {
  fc.assert(
    fc.property(tree, (entries) => {
      const lines = [...renderManifest(entries)];
      expect(lines).toHaveLength(entries.length);
      expect(lines.filter((line) => !/^[\x20-\x7e]+\n$/.test(line))).toEqual([]);
      const bytes = entries.map(({ path }) => Buffer.from(path, "latin1"));
      const sorted = bytes.toSorted((one, other) => Buffer.compare(one, other));
      const paths = lines.map((line) => unescape(line.slice(0, -1).split(" ").slice(3).join(" ")));
      expect(paths).toEqual(sorted);
    }),
    { numRuns: RUNS },
  );
});

function unescape(text: string): Buffer {
  const plain = text.replace(/\\x([0-9a-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(plain, "latin1");
}

test("is, of one tree, this text", () => {
  const at = (path: string) => asByteText(Buffer.from(path));
  expect(
    render([
      { kind: "link", path: at("ü"), bytes: 3, sha256: "b".repeat(64) },
      { kind: "directory", path: at("a"), bytes: 0, sha256: "" },
      { kind: "file", path: at("a/new\nline \\"), bytes: 7, sha256: "a".repeat(64) },
      { kind: "file", path: at("B"), bytes: 0, sha256: "c".repeat(64) },
    ]),
  ).toBe(
    [
      `file 0 ${"c".repeat(64)} B`,
      "directory 0 - a",
      `file 7 ${"a".repeat(64)} a/new\\x0aline \\x5c`,
      `link 3 ${"b".repeat(64)} \\xc3\\xbc`,
      "",
    ].join("\n"),
  );
});
