/** Notes for the guard: what was written to its end is believed, and nothing else. */
import { describe, expect, test } from "bun:test";
import { AREA_BYTES, decodeNotes, encodeNotes } from "../../../src/run/guard-notes.ts";
import { makeNotes, RUNNING_RECORD } from "../../support/guard-notes.ts";

const NOTES = makeNotes({ mainChild: { pid: 4711, start_time: 99 }, resultFile: "/r ä.json" });

describe("a note", () => {
  test("comes back as it was, with its number", () => {
    const bytes = encodeNotes(NOTES, 7);
    expect(decodeNotes(bytes)).toEqual({ sequence: 7, notes: NOTES });
  });

  test("is followed by whatever was in its area before", () => {
    const area = new Uint8Array(8192).fill(0x7d);
    area.set(encodeNotes(NOTES, 1));
    expect(decodeNotes(area)?.notes).toEqual(NOTES);
  });

  test("is read from the middle of a larger buffer, too", () => {
    const bytes = encodeNotes(NOTES, 3);
    const whole = new Uint8Array(bytes.length + 20);
    whole.set(bytes, 13);
    expect(decodeNotes(whole.subarray(13))?.sequence).toBe(3);
  });

  test("with one byte changed is none, whichever byte it is", () => {
    const bytes = encodeNotes(NOTES, 1);
    const believed = [...bytes.keys()].filter((at) => {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ 0x01;
      return decodeNotes(changed) !== undefined;
    });
    expect(bytes.length).toBeGreaterThan(500);
    expect(believed).toEqual([]);
  });

  test("that was cut off is none, wherever it ends", () => {
    const bytes = encodeNotes(NOTES, 1);
    const believed = [...bytes.keys()].filter((end) => decodeNotes(bytes.subarray(0, end)));
    expect(believed).toEqual([]);
  });

  test("written over another is none until it is complete", () => {
    const before = encodeNotes(NOTES, 1);
    const after = encodeNotes({ ...NOTES, phase: "stopping" }, 3);
    for (let written = 1; written < after.length; written += 1) {
      const area = new Uint8Array(Math.max(before.length, after.length));
      area.set(before);
      area.set(after.subarray(0, written));
      const isOld = Buffer.from(area.subarray(0, before.length)).equals(Buffer.from(before));
      const isNew = Buffer.from(area.subarray(0, after.length)).equals(Buffer.from(after));
      expect(decodeNotes(area)?.sequence).toBe(isNew ? 3 : isOld ? 1 : undefined);
    }
  });

  test("of a command line beyond all measure keeps its first word", () => {
    const word = "x".repeat(AREA_BYTES / 2);
    const record = { ...RUNNING_RECORD, command: ["sh", word, word], command_bytes: ["AA=="] };
    const bytes = encodeNotes({ ...NOTES, record }, 1);
    expect(bytes.length).toBeLessThan(AREA_BYTES);
    const found = decodeNotes(bytes)?.notes;
    expect(found).toEqual({ ...NOTES, record: { ...RUNNING_RECORD, command: ["sh"] } });
  });

  test("of one that just fits keeps all", () => {
    const spare = AREA_BYTES - encodeNotes(NOTES, 1).length;
    const longer = (more: number) => ({
      ...NOTES,
      record: { ...RUNNING_RECORD, command: ["sleep", `100${"x".repeat(more)}`] },
    });
    expect(encodeNotes(longer(spare), 1)).toHaveLength(AREA_BYTES);
    expect(encodeNotes(longer(spare + 1), 1).length).toBeLessThan(4096);
  });
});

test("an area that nobody has written holds none", () => {
  expect(decodeNotes(new Uint8Array())).toBeUndefined();
  expect(decodeNotes(new Uint8Array(4096))).toBeUndefined();
});
