/** The ring against a plain list: both sides in one thread, no I/O. */
import { describe, expect, test } from "bun:test";
import { array, assert, constant, integer, oneof, property, record } from "fast-check";
import { CHUNK_BYTES, ChunkRing, MAX_RECORDS } from "../../../src/output/chunk-ring.ts";

function put(ring: ChunkRing, sequence: number, length: number): boolean {
  const offset = ring.claim();
  if (offset < 0) return false;
  ring.bytes.fill(sequence & 255, offset, offset + length);
  ring.publish(sequence, length);
  return true;
}

function take(ring: ChunkRing): { sequence: number; length: number; isIntact: boolean } {
  const bytes = ring.bytes.subarray(ring.offset, ring.offset + ring.length);
  const isIntact = bytes.every((byte) => byte === (ring.sequence & 255));
  const taken = { sequence: ring.sequence, length: ring.length, isIntact };
  ring.release();
  return taken;
}

describe("chunk ring", () => {
  test("gives back what was put in, in order and unharmed, whatever the sizes and turns", () => {
    let fullTurns = 0;
    const size = oneof(integer({ min: 1, max: CHUNK_BYTES }), constant(CHUNK_BYTES));
    const step = oneof(
      { arbitrary: record({ put: size }), weight: 3 },
      { arbitrary: record({ take: constant(true) }), weight: 2 },
    );
    assert(
      property(array(step, { minLength: 60, maxLength: 300 }), (steps) => {
        const ring = new ChunkRing();
        const oracle: { sequence: number; length: number }[] = [];
        let sequence = 0;
        for (const one of steps) {
          if ("put" in one) {
            if (put(ring, sequence, one.put)) oracle.push({ sequence, length: one.put });
            else fullTurns += 1;
            sequence += 1;
          } else if (!ring.isEmpty) {
            expect(take(ring)).toEqual({ ...oracle.shift()!, isIntact: true });
          }
          expect(ring.isEmpty).toBe(oracle.length === 0);
        }
      }),
      { numRuns: 60, seed: 7 },
    );
    expect(fullTurns).toBeGreaterThan(0);
  }, 60_000);

  test("is full after sixteen whole chunks, and has room again after one is taken", () => {
    const ring = new ChunkRing();
    let count = 0;
    while (put(ring, count, CHUNK_BYTES)) count += 1;
    expect(count).toBe(16);
    take(ring);
    expect(put(ring, count, CHUNK_BYTES)).toBe(true);
    expect(put(ring, count + 1, CHUNK_BYTES)).toBe(false);
  });

  test("goes round many times without losing its place", () => {
    const ring = new ChunkRing();
    for (let i = 0; i < 3; i += 1) put(ring, i, CHUNK_BYTES - 1);
    for (let i = 3; i < 500; i += 1) {
      expect(take(ring)).toEqual({ sequence: i - 3, length: CHUNK_BYTES - 1, isIntact: true });
      expect(put(ring, i, CHUNK_BYTES - 1)).toBe(true);
    }
  });

  test("holds many small chunks, and no more than its records", () => {
    const ring = new ChunkRing();
    let count = 0;
    while (put(ring, count, 10)) count += 1;
    expect(count).toBe(MAX_RECORDS);
  });

  test("starts at its beginning when it is empty, so little output touches little memory", () => {
    const ring = new ChunkRing();
    for (let i = 0; i < 100; i += 1) {
      expect(ring.claim()).toBe(0);
      put(ring, i, 100);
      take(ring);
    }
  });
});
