/** One beat at a time: real files and real locks, the moment handed in. */
import { describe, expect, test } from "bun:test";
import { existsSync, lstatSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { FAILURES_TOLD } from "../../src/lease/beat/beat.ts";
import { inodeAt, tryLock } from "../../src/lease/files/lock-file.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { writeSlot } from "../../src/lease/files/slot-file.ts";
import {
  FACTS,
  GENERATION,
  isFree,
  openBeatScene,
  OTHER_RUN_ID,
  PROGRESS,
  readJson,
  readWholeSlot,
  RUN_ID,
} from "../support/beat-scene.ts";

const scene = openBeatScene();
const NO_SPACE = () => {
  throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
};

describe("a beat", () => {
  test("writes who holds the lease, when, and how the run stands", () => {
    const { lease, at, events } = scene.open();
    at(1000);
    const { head, body } = readWholeSlot(lease.slotPath);
    expect(head).toMatchObject({
      generation: GENERATION,
      sequence: 2,
      monotonicMs: 1000,
      boottimeMs: 1050,
      mainLoopSequence: 3,
      mainLoopMs: 990,
      bootId: lease.record.boot_id,
      staleAfterMs: lease.record.stale_after_ms,
      runState: "running",
      counts: { ok: 900, failed: 12, total: 1800 },
    });
    const { owner, sessionId, mainGroup, mainChild, guard, members, memberCount } = FACTS;
    expect(body).toEqual({
      runId: RUN_ID,
      lockInode: lease.lockInode,
      pidNamespace: lease.record.pid_namespace,
      timeNamespace: lease.record.time_namespace,
      sessionId,
      owner,
      mainGroup,
      mainChild,
      guard,
      members,
      memberCount,
      work: {
        lastOutputMs: PROGRESS.lastOutputMs,
        filesChangedMs: PROGRESS.filesChangedMs,
        use: PROGRESS.use,
        told: {
          checkpoint: "tables",
          lastMessage: "item 17: no answer",
          ratePerMinute: 45.5,
          reportedMs: 980,
        },
      },
    });
    expect(events).toEqual([]);
  });

  test("counts each beat, and touches neither lock nor record where all is well", () => {
    const { lease, at, words, events } = scene.open();
    const before = lstatSync(lease.place.record, { bigint: true });
    for (const moment of [1000, 1100, 1200]) at(moment);
    expect(readWholeSlot(lease.slotPath).head).toMatchObject({ sequence: 4, monotonicMs: 1200 });
    expect(words.sequence).toBe(4);
    const after = lstatSync(lease.place.record, { bigint: true });
    expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
    expect(events).toEqual([]);
  });

  test("writes nothing once main has asked for the end, whatever is missing", () => {
    const { lease, at, state, words, events } = scene.open();
    at(1000);
    const bytes = readFileSync(lease.slotPath);
    state.stop();
    unlinkSync(lease.place.record);
    unlinkSync(lease.place.lock);
    at(1100);
    expect(readFileSync(lease.slotPath).equals(bytes)).toBe(true);
    expect(words.sequence).toBe(2);
    expect([existsSync(lease.place.record), existsSync(lease.place.lock)]).toEqual([false, false]);
    expect(events).toEqual([]);
  });

  test("does not write the record again when main asks for the end while it is read", () => {
    const written: string[] = [];
    const once = scene.open({
      readRecord: () => {
        once.state.stop();
        return { kind: "none" };
      },
      writeRecord: (path) => void written.push(path),
    });
    once.at(1000);
    expect([written, once.words.sequence, once.events]).toEqual([[], 1, []]);
  });

  test("that was cut short by the end is no recovery", () => {
    const once = scene.open({
      inodeAt: (path) => {
        if (once.words.failures === FAILURES_TOLD) once.state.stop();
        return inodeAt(path);
      },
      writeSlot: NO_SPACE,
    });
    for (const moment of [1000, 1100, 1200, 1300]) once.at(moment);
    expect(once.events.map(({ kind }) => kind)).toEqual(["beat-missed", "beat-failing"]);
  });
});

describe("progress between two beats", () => {
  const LATER = { ...FACTS, progress: { ...PROGRESS, lastOutputMs: 1_500 } };

  test("is shown at once, and makes no beat look younger than it is", () => {
    const { lease, words, at, beat, events } = scene.open();
    at(1000);
    beat.showAgain(LATER);
    const { head, body } = readWholeSlot(lease.slotPath);
    expect(head).toMatchObject({ sequence: 2, monotonicMs: 1000, boottimeMs: 1050 });
    expect(body.work?.lastOutputMs).toBe(1_500);
    expect(words.sequence).toBe(2);
    at(2000);
    expect(readWholeSlot(lease.slotPath).head.sequence).toBe(3);
    expect(events).toEqual([]);
  });

  test("is not written before there is a beat, after a loss, or towards the end", () => {
    const early = scene.open();
    early.beat.showAgain(LATER);
    expect(readFileSync(early.lease.slotPath).length).toBe(0);

    for (const end of ["lost", "stopping"]) {
      const { lease, words, state, at, beat } = scene.open();
      at(1000);
      if (end === "lost") words.lose();
      else state.stop();
      beat.showAgain(LATER);
      expect([end, readWholeSlot(lease.slotPath).body.work?.lastOutputMs]).toEqual([end, 985]);
    }
  });

  test("that a full disk does not take is no failure of a beat", () => {
    let isFull = false;
    const { lease, words, at, beat, events } = scene.open({
      writeSlot: (fd, slot) => (isFull ? NO_SPACE() : writeSlot(fd, slot)),
    });
    at(1000);
    isFull = true;
    for (let times = 0; times < FAILURES_TOLD + 1; times += 1) beat.showAgain(LATER);
    expect([words.failures, events]).toEqual([0, []]);
    isFull = false;
    beat.showAgain(LATER);
    expect(readWholeSlot(lease.slotPath).body.work?.lastOutputMs).toBe(1_500);
  });
});

describe("the record under our own lock", () => {
  test.each([
    ["missing", (path: string) => unlinkSync(path)],
    ["empty", (path: string) => writeFileSync(path, "")],
    ["half of one", (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 200))],
  ])("is written again where it is %s", (_, damage) => {
    const { lease, at, events } = scene.open();
    damage(lease.place.record);
    at(1000);
    expect(readJson(lease.place.record)).toEqual(lease.record);
    expect(events).toEqual([{ kind: "rewritten", key: lease.key, what: "record" }]);
    at(1100);
    expect(events).toHaveLength(1);
  });

  test.each([
    ["another generation", { generation: GENERATION + 1, run_id: RUN_ID }],
    ["another run", { generation: GENERATION, run_id: OTHER_RUN_ID }],
  ])("of %s is a loss: told once, left alone, and the last beat was before it", (_, found) => {
    const { lease, at, words, events } = scene.open();
    at(1000);
    writeRecord(lease.place.record, { ...lease.record, ...found });
    const record = readFileSync(lease.place.record);
    const slot = readFileSync(lease.slotPath);
    for (const moment of [1100, 1200]) at(moment);
    expect(events).toEqual([{ kind: "lost", key: lease.key, found }]);
    expect(words.isLost).toBe(true);
    expect(readFileSync(lease.place.record).equals(record)).toBe(true);
    expect(readFileSync(lease.slotPath).equals(slot)).toBe(true);
  });

  test("of a newer version is neither a loss nor written over: it is a failure, and told", () => {
    const { lease, at, words, events } = scene.open();
    writeFileSync(lease.place.record, JSON.stringify({ ...lease.record, format: 2 }));
    for (const moment of [1000, 1100, 1200]) at(moment);
    expect(events.map(({ kind }) => kind)).toEqual(["beat-missed", "beat-failing"]);
    expect(words.isLost).toBe(false);
    expect(readJson(lease.place.record).format).toBe(2 as 1);
    expect(readWholeSlot(lease.slotPath).head.monotonicMs).toBe(1200);
  });
});

describe("a slot that is gone or replaced", () => {
  test.each([
    ["gone", (path: string) => unlinkSync(path)],
    [
      "replaced",
      (path: string) => {
        unlinkSync(path);
        writeFileSync(path, "not a slot");
      },
    ],
  ])("is made again (%s), because its name reserves the number", (_, damage) => {
    const { lease, at, words, events } = scene.open();
    at(1000);
    damage(lease.slotPath);
    at(1100);
    expect(readWholeSlot(lease.slotPath).head).toMatchObject({ sequence: 3, monotonicMs: 1100 });
    damage(lease.slotPath);
    at(1200);
    expect(readWholeSlot(lease.slotPath).head).toMatchObject({ sequence: 4, monotonicMs: 1200 });
    expect(events.map(({ kind }) => kind)).toEqual(["rewritten", "rewritten"]);
    expect(tryLock(lease.lockFd, "exclusive")).toBe("locked");
    expect(lstatSync(`/proc/self/fd/${lease.slotFd}`).isSymbolicLink()).toBe(true);
    expect(words.slotFd).not.toBe(lease.slotFd);
  });
});

describe("a beat that fails", () => {
  test("is told once; the third in a row is an event; a good one after it is told", () => {
    let isFull = true;
    const { at, words, events } = scene.open({
      writeSlot: (fd, slot) => (isFull ? NO_SPACE() : writeSlot(fd, slot)),
    });
    const kinds = () => events.map(({ kind }) => kind);
    at(1000);
    expect(kinds()).toEqual(["beat-missed"]);
    at(1100);
    expect(kinds()).toEqual(["beat-missed"]);
    at(1200);
    expect(kinds()).toEqual(["beat-missed", "beat-failing"]);
    expect(events[1]).toMatchObject({ reason: "ENOSPC: no space left on device" });
    for (let more = 0; more < 10; more += 1) at(1300 + more * 100);
    expect(kinds()).toHaveLength(2);
    expect(words.sequence).toBe(1);
    isFull = false;
    at(3000);
    expect(kinds()).toEqual(["beat-missed", "beat-failing", "recovered"]);
    expect([words.sequence, words.failures]).toEqual([2, 0]);
  });

  test("for a moment, again and again, is one warning and no event", () => {
    let count = 0;
    const { at, events } = scene.open({
      writeSlot: (fd, slot) => {
        count += 1;
        return count % FAILURES_TOLD === 0 ? writeSlot(fd, slot) : NO_SPACE();
      },
    });
    for (let beat = 0; beat < 12; beat += 1) at(1000 + beat * 100);
    expect(events.map(({ kind }) => kind)).toEqual(["beat-missed"]);
  });

  test("at its look still shows in the slot that the owner lives", () => {
    const { lease, at, events } = scene.open({ inodeAt: () => "unread" });
    for (const moment of [1000, 1100, 1200]) at(moment);
    expect(readWholeSlot(lease.slotPath).head).toMatchObject({ sequence: 4, monotonicMs: 1200 });
    expect(events.map(({ kind }) => kind)).toEqual(["beat-missed", "beat-failing"]);
  });

  test("at writing the record again keeps the new lock and tries at the next beat", () => {
    let isFull = true;
    const { lease, at, events } = scene.open({
      writeRecord: (path, record) => (isFull ? NO_SPACE() : writeRecord(path, record)),
    });
    rmSync(lease.place.directory, { recursive: true });
    at(1000);
    expect(isFree(lease.place.lock)).toBe(false);
    expect(existsSync(lease.place.record)).toBe(false);
    isFull = false;
    at(1100);
    expect(readJson(lease.place.record).run_id).toBe(RUN_ID);
    expect(events.map(({ kind }) => kind)).toEqual([
      "lock-restored",
      "beat-missed",
      "rewritten",
      "rewritten",
    ]);
  });
});
