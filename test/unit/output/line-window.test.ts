/** Where windows of a long line begin and end, and what a pattern sees at their edges. */
import { expect, test } from "bun:test";
import { LineWindow, OVERLAP_BYTES, WINDOW_BYTES } from "../../../src/output/line-window.ts";
import { cutChunks, matchChunks } from "../../support/matching.ts";

const STEP = WINDOW_BYTES - OVERLAP_BYTES;
const CHUNK = 65_536;

function statusesOf(sources: readonly string[], output: Uint8Array): string {
  const matched = matchChunks(sources, cutChunks(output, [CHUNK]));
  return matched.map(({ status }) => status).join(" ");
}

function windowsOf(bytes: Uint8Array): (readonly [number, boolean, boolean])[] {
  const window = new LineWindow();
  const found: (readonly [number, boolean, boolean])[] = [];
  for (const chunk of cutChunks(bytes, [CHUNK])) {
    window.append(chunk);
    for (;;) {
      const region = window.region(false);
      if (region === undefined) break;
      found.push([region.end, region.startsInside, region.endsInside]);
      window.consume(region);
    }
  }
  const last = window.region(true);
  if (last !== undefined) found.push([last.end, last.startsInside, last.endsInside]);
  return found;
}

test("lines come together, and a long one in windows that overlap", () => {
  expect(windowsOf(Buffer.from("a\nbc\nd"))).toEqual([
    [4, false, false],
    [1, false, false],
  ]);
  expect(windowsOf(Buffer.from("x".repeat(WINDOW_BYTES)))).toEqual([[WINDOW_BYTES, false, false]]);
  expect(windowsOf(Buffer.from(`${"x".repeat(WINDOW_BYTES)}\n`))).toEqual([
    [WINDOW_BYTES, false, false],
  ]);
  expect(windowsOf(Buffer.from(`${"x".repeat(WINDOW_BYTES + 1)}\na\n`))).toEqual([
    [WINDOW_BYTES, false, true],
    [OVERLAP_BYTES + 3, true, false],
  ]);
  expect(windowsOf(Buffer.alloc(0))).toEqual([]);
});

test("the edge of a window is no edge of the line", () => {
  const line = Buffer.alloc(3 * WINDOW_BYTES, "x");
  // Where the second and the third window begin, and where the first and the second end.
  for (const at of [STEP, 2 * STEP]) line.write("<begin>", at);
  for (const at of [WINDOW_BYTES, STEP + WINDOW_BYTES]) line.write("<end>", at - "<end>".length);
  expect(statusesOf(["^<begin>", "<end>$", "(?<![^])<begin>"], line)).toBe("open open open");
  expect(statusesOf(["<begin>", "<end>", "x<begin>x", "x<end>x"], line)).toBe(
    "found found found found",
  );
  expect(statusesOf(["^x", "x$", "^x.*x$"], line)).toBe("found found open");
});

test("no window cuts a character", () => {
  for (const letter of ["é", "€", "😀"]) {
    for (const before of ["", "x", "xx", "xxx"]) {
      const line = Buffer.from(before + letter.repeat(60_000));
      expect(statusesOf(["\ufffd", `^${before}${letter}`, `${letter}$`], line)).toBe(
        "open found found",
      );
    }
  }
});

test("nor does an expression that looks around see half a character at an edge", () => {
  for (const letter of ["é", "€", "😀"]) {
    for (const before of ["x", "xx", "xxx", "xxxx"]) {
      const line = Buffer.from(`${before}${letter.repeat(60_000)}E`);
      const around = [`${letter}(?!${letter}|E)`, `(?<!${letter}|x)${letter}`];
      expect(statusesOf([...around, `${letter}E`], line)).toBe("open open found");
    }
  }
});

test("a mark of the byte order is a letter as any other, wherever a window begins", () => {
  const marked = Buffer.from(`\ufeffx\n${"a\n".repeat(40_000)}\ufeffy\n`);
  expect(statusesOf(["^x", "^y", "^\ufeffx$", "^\ufeffy$"], marked)).toBe("open open found found");
});

test("what is no UTF-8 at all passes, too", () => {
  const noise = Buffer.alloc(200_000, 0x80);
  expect(statusesOf(["^END$", "\ufffd"], Buffer.concat([noise, Buffer.from("\nEND\n")]))).toBe(
    "found found",
  );
});
