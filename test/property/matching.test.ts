/**
 * Expressions on output that comes in any chunks, against the plainest search: line by line over
 * the whole text.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { OVERLAP_BYTES, WINDOW_BYTES } from "../../src/output/line-window.ts";
import { cutChunks, findByHand, matchChunks } from "../support/matching.ts";

/** Of few letters, so that something is found often; line ends of every kind. */
const letter = fc.constantFrom(
  "a",
  "b",
  "\n",
  "\r",
  "\r\n",
  " ",
  "é",
  "€",
  "😀",
  "-",
  "\t",
  "\u2028",
);
const text = fc.array(letter, { maxLength: 60 }).map((letters) => letters.join(""));

const atom = fc.constantFrom(
  "a",
  "b",
  ".",
  "\\s",
  "\\S",
  "\\w",
  "\\W",
  "\\D",
  "[ab]",
  "[^a]",
  "[^-b]",
  "[^\\w ]",
  "é",
  "[é€]",
  "\\b",
  "\\B",
  "^",
  "$",
  "(?=a)",
  "(?!b)",
  "(?<=a)",
  "(?:a|b)",
  "(?:^|-)",
  "(?i:A)",
  "\\r",
  "[\\s]",
);
const times = fc.constantFrom("", "", "", "*", "+?", "{2}");
const pattern = fc
  .array(fc.tuple(atom, times), { minLength: 1, maxLength: 4 })
  .map((parts) =>
    parts.map(([one, many]) => (/^(?:\^|\$|\\[bB]|\(\?[=!<])/.test(one) ? one : one + many)),
  )
  .chain((parts) => fc.constantFrom(parts.join(""), parts.join("|")));
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });

test("what is found in lines is what is found in each line alone, however they are cut", () => {
  let found = 0;
  fc.assert(
    fc.property(
      fc.array(pattern, { minLength: 1, maxLength: 4 }),
      text,
      sizes,
      (sources, output, cuts) => {
        const bytes = Buffer.from(output);
        const matched = matchChunks(sources, cutChunks(bytes, cuts));
        for (const [index, source] of sources.entries()) {
          const wanted = findByHand(source, bytes);
          const seen = matched[index];
          expect([source, output, seen?.status]).toEqual([
            source,
            output,
            wanted === undefined ? "open" : "found",
          ]);
          if (wanted !== undefined) found += 1;
        }
      },
    ),
    { numRuns: 8_000 },
  );
  expect(found).toBeGreaterThan(4_000);
}, 600_000);

test("the first line is told where all output comes at once", () => {
  fc.assert(
    fc.property(pattern, text, (source, output) => {
      const bytes = Buffer.from(output);
      const [matched] = matchChunks([source], bytes.length === 0 ? [] : [bytes]);
      expect(matched?.line).toBe(findByHand(source, bytes) as never);
    }),
    { numRuns: 5_000 },
  );
});

test("any bytes, also such that are no UTF-8, are looked at to the last", () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(bytes, sizes, (noise, cuts) => {
      const output = Buffer.concat([noise, Buffer.from("\nEND")]);
      const [end, never] = matchChunks(["^END$", "NEVER"], cutChunks(output, cuts));
      expect([end?.status, never?.status]).toEqual(["found", "open"]);
    }),
    { numRuns: 1_000 },
  );
});

test("in a line of any length a match of up to the overlap is found, wherever it lies", () => {
  const places = fc.tuple(
    fc.integer({ min: 0, max: 3 * WINDOW_BYTES }),
    fc.integer({ min: 1, max: OVERLAP_BYTES - 8 }),
    fc.integer({ min: 0, max: 2 * WINDOW_BYTES }),
    fc.constantFrom("x", "é", "€", "😀", "\xff"),
    fc.integer({ min: 1_000, max: 65_536 }),
  );
  fc.assert(
    fc.property(places, ([before, length, after, filler, size]) => {
      const encoding = filler === "\xff" ? "latin1" : "utf8";
      const fill = (bytes: number) =>
        Buffer.from(filler.repeat(Math.ceil(bytes / Buffer.byteLength(filler))), encoding);
      const needle = Buffer.from(`<${"-".repeat(length)}>`);
      const output = Buffer.concat([fill(before), needle, fill(after), Buffer.from("\n")]);
      const sources = ["<-+>", "<-+>(?=.|$)", "^<-+>", "<-+>$", "<<"];
      const statuses = matchChunks(sources, cutChunks(output, [size])).map(({ status }) => status);
      const when = (isThere: boolean): string => (isThere ? "found" : "open");
      expect([before, length, after, ...statuses]).toEqual([
        before,
        length,
        after,
        "found",
        "found",
        when(fill(before).length === 0),
        when(fill(after).length === 0),
        "open",
      ]);
    }),
    { numRuns: 300 },
  );
}, 600_000);
