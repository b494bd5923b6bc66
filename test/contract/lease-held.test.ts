/** Held leases: whose they are, their release (R2), and their end (R5). */
import { describe, expect, test } from "bun:test";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import type { LeaseRecord } from "../../src/core/lease-record.ts";
import type { HeldLeases } from "../../src/lease/held.ts";
import { openLock, tryLock } from "../../src/lease/files/lock-file.ts";
import { readRecord, writeRecord } from "../../src/lease/files/record-file.ts";
import { claim, isFree, openClaimScene } from "../support/claim-scene.ts";
import { countOpen } from "../support/open-files.ts";

const scene = openClaimScene();

function recordOf(held: HeldLeases): LeaseRecord {
  const reading = readRecord(held.leases[0]?.place.record ?? "");
  if (reading.kind !== "read") throw new Error(reading.kind);
  return reading.record;
}

function rewrite(held: HeldLeases, changes: Partial<LeaseRecord>): void {
  writeRecord(held.leases[0]?.place.record ?? "", { ...recordOf(held), ...changes });
}

describe("a held lease", () => {
  test("is ours as long as the record does not name somebody else", async () => {
    const held = await scene.hold([scene.key()]);
    const record = held.leases[0]?.place.record ?? "";
    expect(held.check()).toEqual({ kind: "ours" });
    writeFileSync(record, "{");
    expect(held.check()).toEqual({ kind: "ours" });
    unlinkSync(record);
    expect(held.check()).toEqual({ kind: "ours" });
    held.close();
  });

  test("is lost to another run or another generation, and the key is named", async () => {
    for (const changes of [{ run_id: "another" }, { generation: 77 }]) {
      const held = await scene.hold([scene.key()]);
      const { key, generation, record } = held.leases[0] ?? {};
      rewrite(held, changes);
      const found = { generation, run_id: record?.run_id, ...changes };
      expect(held.check() as unknown).toEqual({ kind: "lost", key, found });
      held.close();
    }
  });
});

describe("a release", () => {
  test("says released, with the same generation, while the lock is still held", async () => {
    const held = await scene.hold([scene.key()]);
    const before = recordOf(held);
    expect(held.markReleased()).toEqual([]);
    const after = recordOf(held);
    expect(after).toEqual({ ...before, state: "released", released_at: after.released_at });
    expect(Date.parse(after.released_at ?? "")).toBeGreaterThan(Date.parse("2020-01-01"));
    expect(isFree(held.leases[0]?.place.lock ?? "")).toBe(false);
    held.close();
    expect(isFree(held.leases[0]?.place.lock ?? "")).toBe(true);
  });

  test("does not touch the record of another run", async () => {
    const held = await scene.hold([scene.key()]);
    rewrite(held, { run_id: "another", generation: 8 });
    const before = recordOf(held);
    const { key } = held.leases[0] ?? {};
    const reason = "lease.json is of another run (other-generation)";
    expect<unknown>(held.markReleased()).toEqual([{ key, isLost: true, reason }]);
    expect(recordOf(held)).toEqual(before);
    held.close();
  });

  test("does not touch the record of a newer version", async () => {
    const held = await scene.hold([scene.key()]);
    const record = held.leases[0]?.place.record ?? "";
    writeFileSync(record, JSON.stringify({ format: 2 }));
    expect(held.markReleased().map(({ reason }) => reason)).toEqual([
      "lease.json is of a newer version",
    ]);
    expect(readRecord(record)).toEqual({ kind: "newer", format: 2 });
    held.close();
  });

  test("writes nothing beside a lock file that is not ours", async () => {
    const held = await scene.hold([scene.key()]);
    const lock = held.leases[0]?.place.lock ?? "";
    unlinkSync(lock);
    const { key } = held.leases[0] ?? {};
    const reason = "the lock file is missing or was replaced";
    expect<unknown>(held.markReleased()).toEqual([{ key, isLost: false, reason }]);
    expect(isFree(lock)).toBe(true);
    expect(held.markReleased()).toHaveLength(1);
    expect(recordOf(held).state).toBe("held");
    held.close();
  });

  test("counts a lock that was got back as ours, and closes it with the others", async () => {
    const held = await scene.hold([scene.key()]);
    const lock = held.leases[0]?.place.lock ?? "";
    unlinkSync(lock);
    const opened = openLock(lock, "create");
    if (opened.kind !== "open") throw new Error(opened.kind);
    expect(tryLock(opened.fd, "exclusive")).toBe("locked");
    held.keepDescriptor(opened.fd);
    expect(held.markReleased()).toEqual([]);
    expect([recordOf(held).state, isFree(lock)]).toEqual(["released", false]);
    held.close();
    expect(isFree(lock)).toBe(true);
  });

  test("goes on with the other keys where one cannot be written, and throws nothing", async () => {
    const held = await scene.hold([scene.key("aa"), scene.key("bb")]);
    const [first, second] = held.leases.map(({ place }) => place.record);
    unlinkSync(first ?? "");
    mkdirSync(first ?? "");
    const unreleased = held.markReleased();
    expect(unreleased.map(({ key }) => key.kind)).toEqual(["aa"]);
    expect(unreleased[0]?.reason).toMatch(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readRecord(second ?? "")).toMatchObject({ kind: "read", record: { state: "released" } });
    rmSync(first ?? "", { recursive: true });
    held.close();
  });

  test("writes a record again that was gone", async () => {
    const held = await scene.hold([scene.key()]);
    unlinkSync(held.leases[0]?.place.record ?? "");
    expect(held.markReleased()).toEqual([]);
    expect(recordOf(held)).toMatchObject({ state: "released", generation: 1 });
    held.close();
  });
});

describe("the end", () => {
  test("closes every descriptor once, however often it is asked for", async () => {
    (await scene.hold([scene.key()])).close();
    const before = countOpen();
    const held = await scene.hold([scene.key("aa"), scene.key("bb")]);
    expect(countOpen()).toBe(before + 4);
    held.close();
    const other = openSync("/dev/null", "r"); // takes a number that was just given back
    held.close();
    expect(() => closeSync(other)).not.toThrow();
    expect(countOpen()).toBe(before);
  });

  test("leaves the slots open to a heartbeat that did not answer, and frees the lock", async () => {
    const held = await scene.hold([scene.key()]);
    const before = countOpen();
    held.close("abandoned");
    expect(countOpen()).toBe(before - 1);
    expect(isFree(held.leases[0]?.place.lock ?? "")).toBe(true);
    closeSync(held.leases[0]?.slotFd ?? -1);
  });

  test("without a release leaves a dead owner, and the next one gets the key", async () => {
    const key = scene.key();
    const held = await scene.hold([key], { run_id: "left", pid: 2 ** 22 + 1 });
    held.close();
    const claimed = await claim(scene.request([key]));
    expect(claimed.keys[0]?.abandoned?.runId).toBe("left");
    claimed.release();
    expect(readdirSync(scene.placeOf(key).directory).toSorted()).toEqual([
      "beat.1",
      "fence",
      "lease.json",
      "lock",
    ]);
  });
});
