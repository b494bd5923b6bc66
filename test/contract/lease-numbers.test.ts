/**
 * What outlives a lease directory or its owner: the floors of removed directories and the note of a
 * newcomer; and what a full disk does to all files of a lease.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MOST_NAMES, raiseFloor, readFloor } from "../../src/lease/files/floors.ts";
import { tryLock } from "../../src/lease/files/lock-file.ts";
import { type LeasePlace, makePlace, placeOf, slotPath } from "../../src/lease/files/places.ts";
import { readRecord, writeRecord } from "../../src/lease/files/record-file.ts";
import {
  type NoteQuestion,
  readNote,
  removeNote,
  writeNote,
} from "../../src/lease/files/seen-note.ts";
import { createSlot, readSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import { BOOT, OTHER_BOOT, sampleRecord, sampleSlot } from "../support/lease-samples.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-numbers-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
let place = placeFor("backup");

function placeFor(name: string): LeasePlace {
  return placeOf(`${root}/${count}`, { kind: "job", name });
}

/** A state directory of its own for each test. */
beforeEach(() => {
  count += 1;
  mkdirSync(`${root}/${count}`);
  place = placeFor("backup");
  makePlace(place);
});

describe("floors", () => {
  test("are 0 until one is raised, and are those of their own key alone", () => {
    expect(readFloor(place)).toBe(0);
    raiseFloor(place, 12);
    raiseFloor(placeFor("__proto__"), 5);
    raiseFloor(placeFor("toString"), 6);
    const names = ["backup", "__proto__", "toString", "constructor", "other"];
    expect(names.map((name) => readFloor(placeFor(name)))).toEqual([12, 5, 6, 0, 0]);
  });

  test("never fall", () => {
    raiseFloor(place, 12);
    raiseFloor(place, 3);
    expect(readFloor(place)).toBe(12);
    raiseFloor(place, 13);
    expect(readFloor(place)).toBe(13);
  });

  test("stay when the lease directory goes, in a file of 0600", () => {
    raiseFloor(place, 12);
    rmSync(place.directory, { recursive: true });
    expect(readFloor(place)).toBe(12);
    expect(statSync(place.floors).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.kindDirectory)).toEqual(["floors"]);
  });

  test("of a key that is called like their file are kept too", () => {
    const namesake = placeFor("floors");
    makePlace(namesake);
    raiseFloor(namesake, 4);
    expect(readFloor(namesake)).toBe(4);
  });

  test("of more names than are kept become the largest of them for all", () => {
    const names = Object.fromEntries(
      Array.from({ length: MOST_NAMES }, (_, index) => [`n${index}`, index + 1]),
    );
    writeFileSync(place.floors, JSON.stringify({ format: 1, default: 0, names }));
    expect(readFloor(placeFor("n41"))).toBe(42);
    raiseFloor(placeFor("n41"), 43);
    expect([readFloor(placeFor("n41")), readFloor(place)]).toEqual([43, 0]);
    raiseFloor(place, 7);
    expect([readFloor(placeFor("n41")), readFloor(place), readFloor(placeFor("new"))]).toEqual([
      MOST_NAMES,
      MOST_NAMES,
      MOST_NAMES,
    ]);
    expect(statSync(place.floors).size).toBeLessThan(200);
    raiseFloor(place, 2000);
    expect([readFloor(place), readFloor(placeFor("new"))]).toEqual([2000, MOST_NAMES]);
  });

  test("of all names do not fall when names are given up once more", () => {
    const names = Object.fromEntries(
      Array.from({ length: MOST_NAMES }, (_, index) => [`n${index}`, 1]),
    );
    writeFileSync(place.floors, JSON.stringify({ format: 1, default: 500, names }));
    raiseFloor(place, 501);
    const floors = ["new", "n0", "backup"].map((name) => readFloor(placeFor(name)));
    expect(floors).toEqual([501, 501, 501]);
  });

  test("of several processes at once are all kept", async () => {
    const script = `const { raiseFloor } = await import(${JSON.stringify(sourceOf("floors.ts"))});
      const { placeOf } = await import(${JSON.stringify(sourceOf("places.ts"))});
      const [directory, worker] = process.argv.slice(1);
      for (let n = 1; n <= 10; n += 1) {
        raiseFloor(placeOf(directory, { kind: "job", name: worker + "-" + n }), n);
      }`;
    const workers = ["a", "b", "c", "d"].map((worker) =>
      Bun.spawn([process.execPath, "-e", script, `${root}/${count}`, worker]),
    );
    const exits = await Promise.all(workers.map((each) => each.exited));
    expect(exits).toEqual([0, 0, 0, 0]);
    const names = ["a", "b", "c", "d"].flatMap((worker) => [`${worker}-1`, `${worker}-10`]);
    expect(names.map((name) => readFloor(placeFor(name)))).toEqual([1, 10, 1, 10, 1, 10, 1, 10]);
  });

  test("are not written while another has them", () => {
    const fd = openSync(place.kindDirectory, "r");
    expect(tryLock(fd, "exclusive")).toBe("locked");
    expect(() => raiseFloor(place, 5)).toThrow("another process has it locked");
    closeSync(fd);
    raiseFloor(place, 5);
    expect(readFloor(place)).toBe(5);
  });
});

const BROKEN_FLOORS: readonly (readonly [what: string, content: string])[] = [
  ["empty", ""],
  ["zeros", "\0".repeat(4096)],
  ["cut", '{"format":1,"default":0,"names":{"a"'],
  ["null", "null"],
  ["newer", '{"format":2,"default":0,"names":{}}'],
  ["without names", '{"format":1,"default":0}'],
  ["with a wrong number", '{"format":1,"default":0,"names":{"a":-1}}'],
  ["with a wrong default", '{"format":1,"default":"1","names":{}}'],
];

describe("floors that cannot be read", () => {
  test.each(BROKEN_FLOORS)("(%s) refuse a key without a number, and nobody else", (_, content) => {
    writeFileSync(place.floors, content);
    const refusal = expect.objectContaining({ code: "lease.refused" });
    expect(() => readFloor(place)).toThrow(refusal);
    closeSync(createSlot(place, 3));
    expect(readFloor(place)).toBe(0);
  });

  test.each(BROKEN_FLOORS)("(%s) are not written over", (_, content) => {
    writeFileSync(place.floors, content);
    const refusal = expect.objectContaining({ code: "lease.refused" });
    expect(() => raiseFloor(place, 5)).toThrow(refusal);
    expect(readFileSync(place.floors, "utf8")).toBe(content);
  });

  test("(a link) are not followed", () => {
    symlinkSync("/etc/passwd", place.floors);
    expect(() => readFloor(place)).toThrow("symbolic link");
    expect(() => raiseFloor(place, 5)).toThrow("symbolic link");
  });
});

describe("the note of a newcomer", () => {
  const content = { generation: 7, bootId: BOOT, timeNamespace: "40", monotonicMs: 1000 };
  const asked: NoteQuestion = {
    generation: 7,
    bootId: BOOT,
    timeNamespace: "40",
    nowMs: 1000,
    staleAfterMs: 500,
  };

  test("is none until it is written, and after it is removed", () => {
    expect(readNote(place, asked)).toBe("none");
    removeNote(place);
    writeNote(place, content);
    expect(readNote(place, asked)).toBe("young");
    expect(statSync(place.note).mode & 0o777).toBe(0o600);
    removeNote(place);
    expect(readNote(place, asked)).toBe("none");
  });

  test.each([
    ["young", 1000],
    ["young", 1499],
    ["old", 1500],
    ["old", 1e9],
    ["none", 999],
  ] as const)("is %s at %d ms", (expected, nowMs) => {
    writeNote(place, content);
    expect(readNote(place, { ...asked, nowMs })).toBe(expected);
  });

  test.each([
    ["generation", { generation: 8 }],
    ["boot", { bootId: OTHER_BOOT }],
    ["time namespace", { timeNamespace: null }],
  ])("of another %s is none, whatever its age", (_, changes) => {
    writeNote(place, content);
    expect(readNote(place, { ...asked, nowMs: 1e9 })).toBe("old");
    expect(readNote(place, { ...asked, ...changes, nowMs: 1e9 })).toBe("none");
  });

  test.each([[""], ["\0\0"], ["{"], ["null"], ["[]"], ['{"format":1}'], ["7"]])(
    "that says %j is none, so that the next newcomer writes it anew",
    (text) => {
      writeFileSync(place.note, text);
      expect(readNote(place, asked)).toBe("none");
      writeNote(place, content);
      expect(readNote(place, asked)).toBe("young");
    },
  );

  test("behind a link is unread and never followed; writing takes the place of the link", () => {
    const victim = `${root}/${count}/victim`;
    writeFileSync(victim, "precious");
    symlinkSync(victim, place.note);
    expect(readNote(place, asked)).toBe("unread");
    writeNote(place, content);
    expect(readNote(place, asked)).toBe("young");
    expect(readFileSync(victim, "utf8")).toBe("precious");
  });
});

function sourceOf(name: string): string {
  return join(import.meta.dir, "../../src/lease/files", name);
}

describe("on a full disk (needs root, for a small tmpfs)", () => {
  const isRoot = process.getuid?.() === 0;

  /** Works in a lease directory on a disk of 64 KiB; `fill` leaves no byte free. */
  async function onSmallDisk(work: (disk: LeasePlace, fill: () => void) => void): Promise<void> {
    const mount = `${root}/${count}/disk`;
    mkdirSync(mount);
    await Bun.$`mount -t tmpfs -o size=64k watchdog-test ${mount}`.quiet();
    try {
      const disk = placeOf(mount, { kind: "job", name: "backup" });
      makePlace(disk);
      work(disk, () => {
        expect(() => writeFileSync(`${mount}/ballast`, "x".repeat(70_000))).toThrow("ENOSPC");
      });
    } finally {
      await Bun.$`umount --lazy ${mount}`.quiet();
    }
  }

  test("a shorter record takes the place of a longer one", async () => {
    if (!isRoot) return console.warn("not run: a full disk needs root to mount a small tmpfs");
    await onSmallDisk((disk, fill) => {
      writeRecord(disk.record, sampleRecord({ command: "x".repeat(5000) }));
      fill();
      writeRecord(disk.record, sampleRecord({ generation: 8 }));
      const record = sampleRecord({ generation: 8 });
      expect(readRecord(disk.record)).toEqual({ kind: "read", record });
      expect(statSync(disk.record).size).toBe(8192);
    });
  });

  test("an existing record and a slot with a beat still take the next", async () => {
    if (!isRoot) return console.warn("not run: a full disk needs root to mount a small tmpfs");
    await onSmallDisk((disk, fill) => {
      writeRecord(disk.record, sampleRecord());
      const fd = createSlot(disk, 7);
      writeSlot(fd, sampleSlot());
      fill();
      const next = sampleRecord({ generation: 8, command: "x".repeat(2000) });
      writeRecord(disk.record, next);
      expect(readRecord(disk.record)).toEqual({ kind: "read", record: next });
      writeSlot(fd, sampleSlot({ head: { sequence: 4 } }));
      expect(readSlot(slotPath(disk, 7))).toMatchObject({ head: { sequence: 4 } });
      expect(readdirSync(disk.directory).toSorted()).toEqual(["beat.7", "lease.json"]);
      closeSync(fd);
    });
  });

  test("a record that has no room leaves the old one whole, or none", async () => {
    if (!isRoot) return console.warn("not run: a full disk needs root to mount a small tmpfs");
    await onSmallDisk((disk, fill) => {
      writeRecord(disk.record, sampleRecord());
      fill();
      const longer = sampleRecord({ generation: 8, command: "x".repeat(5000) });
      expect(() => writeRecord(disk.record, longer)).toThrow("ENOSPC");
      expect(readRecord(disk.record)).toEqual({ kind: "read", record: sampleRecord() });
      unlinkSync(disk.record);
      writeFileSync(`${disk.directory}/ballast`, "x".repeat(4096));
      expect(() => writeRecord(disk.record, longer)).toThrow("ENOSPC");
      expect(readRecord(disk.record)).toEqual({ kind: "none" });
    });
  });

  test("a first beat, a floor and a note have no room, and say so", async () => {
    if (!isRoot) return console.warn("not run: a full disk needs root to mount a small tmpfs");
    await onSmallDisk((disk, fill) => {
      const fd = createSlot(disk, 7);
      fill();
      expect(() => writeSlot(fd, sampleSlot())).toThrow("ENOSPC");
      expect(() => raiseFloor(disk, 7)).toThrow(
        expect.objectContaining({ code: "lease.unusable" }),
      );
      const content = { generation: 7, bootId: BOOT, timeNamespace: null, monotonicMs: 0 };
      expect(() => writeNote(disk, content)).toThrow("ENOSPC");
      expect(readFloor(disk)).toBe(0);
      expect(readSlot(slotPath(disk, 7))).toBe("empty");
      closeSync(fd);
    });
  });
});
