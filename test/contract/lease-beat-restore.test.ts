/** The lock file of a held lease is removed or replaced: real files, real locks. */
import { describe, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { RESTORE_LIMIT_MS, RESTORE_STEP_MS } from "../../src/lease/beat/beat.ts";
import { tryLock } from "../../src/lease/files/lock-file.ts";
import { slotPath } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { createSlot, writeSlot } from "../../src/lease/files/slot-file.ts";
import {
  GENERATION,
  isFree,
  openBeatScene,
  OTHER_RUN_ID,
  otherRecord,
  readJson,
  readWholeSlot,
  RUN_ID,
  tryAsNewcomer,
} from "../support/beat-scene.ts";

const scene = openBeatScene();

/** What a newcomer under the new lock file would have written as its beat. */
function beatAsOther(lease: ReturnType<typeof scene.hold>, generation: number): void {
  const whole = readWholeSlot(lease.slotPath);
  const fd = createSlot(lease.place, generation);
  writeSlot(fd, {
    head: { ...whole.head, generation },
    body: { ...whole.body, runId: OTHER_RUN_ID },
  });
  closeSync(fd);
}

describe("a lock file that is gone or replaced", () => {
  test("is locked again under its path, and the old lock is kept", () => {
    const { lease, at, words, events } = scene.open();
    renameSync(lease.place.lock, `${lease.place.lock}.old`);
    expect(isFree(lease.place.lock)).toBe(true); // the negative twin: nobody holds the new one
    at(1000);
    expect(isFree(lease.place.lock)).toBe(false);
    expect(isFree(`${lease.place.lock}.old`)).toBe(false);
    expect(events).toMatchObject([
      { kind: "lock-restored", key: lease.key, fd: words.lockFd },
      { kind: "rewritten", what: "record" },
    ]);
    const { dev, ino } = lstatSync(lease.place.lock, { bigint: true });
    expect(words.lockFd).not.toBe(lease.lockFd);
    expect(readJson(lease.place.record)).toEqual({
      ...lease.record,
      lock_inode: `${dev}:${ino}`,
    });
    expect(readWholeSlot(lease.slotPath).body.lockInode).toBe(`${dev}:${ino}`);
    at(1100);
    expect(events).toHaveLength(2);
    closeSync(words.lockFd);
    expect(isFree(lease.place.lock)).toBe(true);
  });

  test("comes back with record and slot where the whole directory was removed", () => {
    const { lease, at, events } = scene.open();
    rmSync(lease.place.directory, { recursive: true });
    at(1000);
    expect(isFree(lease.place.lock)).toBe(false);
    expect(readJson(lease.place.record).run_id).toBe(RUN_ID);
    expect(readWholeSlot(lease.slotPath).head.monotonicMs).toBe(1000);
    expect(events.map((event) => ("what" in event ? event.what : event.kind))).toEqual([
      "lock-restored",
      "record",
      "slot",
    ]);
  });

  test.each(["shared", "exclusive"] as const)(
    "is tried again every 100 ms while somebody holds the new one (%s), without a word",
    (mode) => {
      const { lease, at, beat, words, events } = scene.open();
      unlinkSync(lease.place.lock);
      const newcomer = tryAsNewcomer(lease.place.lock, mode);
      expect(newcomer.isLocked).toBe(true);
      at(1000);
      expect(beat.retryAt).toBe(1000 + RESTORE_STEP_MS);
      at(1100);
      expect(events).toEqual([]);
      expect(readWholeSlot(lease.slotPath).head.monotonicMs).toBe(1100);
      expect(words.lockFd).toBe(lease.lockFd);
      newcomer.release();
      at(1200);
      expect(events[0]).toMatchObject({ kind: "lock-restored" });
      expect(beat.retryAt).toBeUndefined();
      expect(isFree(lease.place.lock)).toBe(false);
    },
  );

  test("is a failed beat after two seconds of it, and the next beat begins anew", () => {
    const { lease, at, beat, words, events } = scene.open();
    unlinkSync(lease.place.lock);
    const newcomer = tryAsNewcomer(lease.place.lock);
    for (let spent = 0; spent < RESTORE_LIMIT_MS; spent += RESTORE_STEP_MS) at(1000 + spent);
    expect(events).toEqual([]);
    at(1000 + RESTORE_LIMIT_MS);
    expect(beat.retryAt).toBeUndefined();
    expect([events.map(({ kind }) => kind), words.failures]).toEqual([["beat-missed"], 1]);
    for (const next of [20_000, 40_000]) {
      at(next);
      expect(beat.retryAt).toBe(next + RESTORE_STEP_MS);
      at(next + RESTORE_LIMIT_MS);
    }
    expect(events.map(({ kind }) => kind)).toEqual(["beat-missed", "beat-failing"]);
    expect(words.isLost).toBe(false);
    newcomer.release();
  });

  test.each(["held by the other", "free again"])(
    "is a loss where the record names another grant (%s), and the new lock is left alone",
    (standing) => {
      const { lease, at, words, events } = scene.open();
      unlinkSync(lease.place.lock);
      const newcomer = tryAsNewcomer(lease.place.lock);
      writeRecord(lease.place.record, otherRecord(lease));
      if (standing === "free again") newcomer.release();
      at(1000);
      const found = { generation: GENERATION + 1, run_id: OTHER_RUN_ID };
      expect(events).toEqual([{ kind: "lost", key: lease.key, found }]);
      expect(words.lockFd).toBe(lease.lockFd);
      if (standing === "held by the other") newcomer.release();
      expect(isFree(lease.place.lock)).toBe(true);
    },
  );

  test("is a loss where a newer version wrote the record meanwhile", () => {
    const { lease, at, events } = scene.open();
    unlinkSync(lease.place.lock);
    writeFileSync(lease.place.record, JSON.stringify({ ...lease.record, format: 2 }));
    at(1000);
    const found = { generation: null, run_id: null };
    expect(events).toEqual([{ kind: "lost", key: lease.key, found }]);
    expect(readJson(lease.place.record).format).toBe(2 as 1);
  });

  test("is not taken for restored where it was replaced again before the lock was had", () => {
    let replacements = 0;
    const { lease, at, beat, words, events } = scene.open({
      tryLock: (fd, mode) => {
        if (replacements === 0) unlinkSync(lease.place.lock);
        replacements += 1;
        return tryLock(fd, mode);
      },
    });
    unlinkSync(lease.place.lock);
    at(1000);
    expect([words.lockFd, events]).toEqual([lease.lockFd, []]);
    expect(beat.retryAt).toBe(1100);
    at(1100);
    expect(events[0]).toMatchObject({ kind: "lock-restored" });
    expect(isFree(lease.place.lock)).toBe(false);
  });

  test("is a loss where only the slot of another grant is left to tell", () => {
    const { lease, at, events } = scene.open();
    at(1000);
    unlinkSync(lease.place.lock);
    unlinkSync(lease.place.record);
    beatAsOther(lease, GENERATION + 1);
    at(1100);
    const found = { generation: GENERATION + 1, run_id: OTHER_RUN_ID };
    expect(events).toEqual([{ kind: "lost", key: lease.key, found }]);
    expect(existsSync(lease.place.record)).toBe(false);
  });

  test("is none where a newcomer took a number and was granted nothing", () => {
    const { lease, at, events } = scene.open();
    unlinkSync(lease.place.lock);
    unlinkSync(lease.place.record);
    closeSync(createSlot(lease.place, GENERATION + 1));
    at(1000);
    expect(events[0]).toMatchObject({ kind: "lock-restored" });
    expect(readJson(lease.place.record).generation).toBe(GENERATION);
    expect(existsSync(slotPath(lease.place, GENERATION + 1))).toBe(true);
  });

  test("is not followed where a link took its place", () => {
    const { lease, at, words, events } = scene.open();
    const target = `${lease.place.directory}/elsewhere`;
    unlinkSync(lease.place.lock);
    symlinkSync(target, lease.place.lock);
    for (const moment of [1000, 1100, 1200]) at(moment);
    expect(events.map(({ kind }) => kind)).toEqual(["beat-missed", "beat-failing"]);
    expect(existsSync(target)).toBe(false);
    expect(words.isLost).toBe(false);
    expect(readWholeSlot(lease.slotPath).head.sequence).toBe(4);
  });

  test("leaks no descriptor while it is tried", () => {
    const { lease, at } = scene.open();
    unlinkSync(lease.place.lock);
    const newcomer = tryAsNewcomer(lease.place.lock);
    const probe = () => {
      const fd = openSync(lease.place.record, "r");
      closeSync(fd);
      return fd;
    };
    at(1000);
    const before = probe();
    for (let step = 1; step < 20; step += 1) at(1000 + step * RESTORE_STEP_MS);
    expect(probe()).toBe(before);
    newcomer.release();
  });
});
