/** Pieces of a body, whatever their sizes: the whole of them, and no more memory than that. */
import { expect, test } from "bun:test";
import { array, assert, nat, property } from "fast-check";
import { KeptBytes } from "../../../src/probe/kept-bytes.ts";

test("the whole is all of the pieces in their order, also when it is asked for in between", () => {
  assert(
    property(array(nat(9_000), { maxLength: 60 }), nat(60), (sizes, asksAt) => {
      const kept = new KeptBytes();
      const pieces = sizes.map((size, index) => Buffer.alloc(size, index + 1));
      for (const [index, piece] of pieces.entries()) {
        if (index === asksAt) expect(kept.whole).toHaveLength(kept.length);
        kept.add(piece);
      }
      const whole = Buffer.concat(pieces);
      expect(kept.length).toBe(whole.length);
      expect(Buffer.compare(kept.whole, whole)).toBe(0);
    }),
  );
});

test("one piece is kept as it is, without a copy", () => {
  const kept = new KeptBytes();
  const piece = Buffer.from("ok");
  kept.add(piece);
  expect(kept.whole).toBe(piece);
});

test("a million pieces of one byte are kept in a few", () => {
  const kept = new KeptBytes();
  const big = Buffer.alloc(1_000_000, "x");
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let at = 0; at < big.length; at += 1) kept.add(big.subarray(at, at + 1));
  Bun.gc(true);
  expect(process.memoryUsage.rss() - before).toBeLessThan(40_000_000);
  expect(Buffer.compare(kept.whole, big)).toBe(0);
});
