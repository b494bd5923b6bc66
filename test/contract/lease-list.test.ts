/** The list of keys that have a lease directory, from real directories. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import { raiseFloor } from "../../src/lease/files/floors.ts";
import { listKeys } from "../../src/lease/list.ts";
import { makePlace, placeOf } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { sampleRecord } from "../support/lease-samples.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-list-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
let state = "";

beforeEach(() => {
  count += 1;
  state = `${root}/${count}`;
  mkdirSync(state);
});

describe("the list of keys", () => {
  const LONG = "x".repeat(300);

  function keep(key: LeaseKey, hasRecord = false): void {
    const other = placeOf(state, key);
    makePlace(other);
    if (hasRecord) writeRecord(other.record, sampleRecord({ ...key }));
  }

  test("is empty where there is no state", () => {
    expect(listKeys(state)).toEqual([]);
    expect(listKeys(`${state}/absent`)).toEqual([]);
  });

  test("has each key once, in the order of their text, and each leads back", () => {
    const keys: LeaseKey[] = [
      { kind: "job", name: "b" },
      { kind: "job", name: "a/ä ☃.~" },
      { kind: "job", name: "floors" },
      { kind: "lane", name: "a" },
      { kind: "task", name: "T42" },
    ];
    for (const key of keys.toReversed()) keep(key);
    raiseFloor(placeOf(state, { kind: "job", name: "b" }), 4);
    expect(listKeys(state)).toEqual([keys[1], keys[0], ...keys.slice(2)] as LeaseKey[]);
    for (const key of listKeys(state))
      expect(statSync(placeOf(state, key).directory)).toBeDefined();
  });

  test("has a name that was cut as long as its record can be read", () => {
    keep({ kind: "job", name: LONG }, true);
    expect(listKeys(state)).toEqual([{ kind: "job", name: LONG }]);
    const other = placeOf(state, { kind: "job", name: LONG });
    writeRecord(other.record, sampleRecord({ name: "stranger" }));
    expect(listKeys(state)).toEqual([]);
    writeFileSync(other.record, "");
    expect(listKeys(state)).toEqual([]);
  });

  test("leaves out what is no lease directory", () => {
    keep({ kind: "job", name: "a" });
    writeFileSync(`${state}/leases/job/file`, "");
    writeFileSync(`${state}/leases/stray`, "");
    mkdirSync(`${state}/leases/Strange/a`, { recursive: true });
    mkdirSync(`${state}/leases/job/not encoded`);
    symlinkSync(state, `${state}/leases/job/link`);
    expect(listKeys(state)).toEqual([{ kind: "job", name: "a" }]);
  });

  test("is an error where a directory is there and cannot be read", () => {
    symlinkSync("leases", `${state}/leases`);
    expect(() => listKeys(state)).toThrow(expect.objectContaining({ code: "state.unusable" }));
  });
});
