/** The spool of a quiet run: kept, replayed, forgotten, and given up without losing a byte. */
import { ptr } from "bun:ffi";
import { describe, expect, test } from "bun:test";
import { closeSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { Destination } from "../../src/output/destination.ts";
import { StreamState } from "../../src/output/shared-state.ts";
import { Spool } from "../../src/output/spool.ts";
import { openForWriting, openOutputScene } from "../support/output-scene.ts";

const scene = openOutputScene();

function openSpool(name: string, maxBytes: number, destinationPath = scene.path(name)) {
  const directory = mkdtempSync(scene.path("spool-"));
  const state = new StreamState();
  const fd = openForWriting(destinationPath);
  const spool = new Spool({ directory, destination: new Destination(fd, state), state, maxBytes });
  const deliver = (text: string) => {
    const bytes = Buffer.from(text);
    const outcome = spool.deliver(ptr(bytes), bytes.length);
    // An address keeps nothing alive: until here the bytes may not be collected.
    bytes.fill(0, 0, 1);
    return outcome;
  };
  return {
    directory,
    state,
    fd,
    spool,
    deliver,
    printed: () => readFileSync(destinationPath, "utf8"),
  };
}

describe("spool", () => {
  test("has no name on the disk while it holds output", () => {
    const { deliver, directory, spool, printed, fd } = openSpool("nameless", 100);
    expect(deliver("hidden")).toBe(0);
    expect(readdirSync(directory)).toEqual([]);
    expect(printed()).toBe("");
    spool.discard();
    closeSync(fd);
  });

  test("replays everything in order, and only once", () => {
    const { deliver, spool, printed, fd } = openSpool("replayed", 1_000_000);
    const expected = Array.from({ length: 30_000 }, (_, i) => `${i}\n`);
    for (const line of expected) deliver(line);
    expect(spool.replay()).toBe(0);
    expect(spool.replay()).toBe(0);
    expect(printed()).toBe(expected.join(""));
    closeSync(fd);
  });

  test.each([1, 7, 8, 9, 15, 16, 17])(
    "beyond its limit of %d bytes it is loud: every byte once, in order",
    (maxBytes) => {
      const { deliver, state, printed, fd, spool } = openSpool(`limit-${maxBytes}`, maxBytes);
      for (const part of ["12345678", "abcdefgh", "!"]) expect(deliver(part)).toBe(0);
      expect(state.isQuietAbandoned).toBe(maxBytes < 17);
      expect(printed()).toBe(maxBytes < 17 ? "12345678abcdefgh!" : "");
      spool.discard();
      expect(printed()).toBe(maxBytes < 17 ? "12345678abcdefgh!" : "");
      closeSync(fd);
    },
  );

  test("a destination that fails during the replay is told by its error number", () => {
    const { deliver, spool, fd } = openSpool("full", 100, "/dev/full");
    deliver("text");
    expect(spool.replay()).toBe(-28);
    closeSync(fd);
  });
});
