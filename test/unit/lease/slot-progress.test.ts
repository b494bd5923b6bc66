/** Progress in a slot and in the words that main and the heartbeat share. */
import { describe, expect, test } from "bun:test";
import { describeProgress } from "../../../src/core/described-progress.ts";
import {
  MOST_SLOT_MEMBERS,
  type SlotCounts,
  type SlotWork,
} from "../../../src/core/lease-record.ts";
import {
  cutBytes,
  NO_PROGRESS,
  type Progress,
  SHOWN_CHECKPOINT_BYTES,
  SHOWN_MESSAGE_BYTES,
} from "../../../src/core/progress.ts";
import { PROGRESS_WORDS, ProgressWords } from "../../../src/lease/beat/shown-progress.ts";
import { decodeWork, encodeWork, MOST_WORK_BYTES } from "../../../src/lease/files/slot-work.ts";
import { decodeSlot, encodeSlot, SLOT_HEAD_BYTES } from "../../../src/lease/files/slot.ts";
import { sampleSlot } from "../../support/lease-samples.ts";

const WORK = sampleSlot().body.work as SlotWork;

function countsThrough(counts: SlotCounts | null): SlotCounts | null | undefined {
  return decodeSlot(encodeSlot(sampleSlot({ head: { counts } })))?.head.counts;
}

describe("counts in the head of a slot", () => {
  test.each([
    { ok: 0, failed: 0, total: 0 },
    { ok: 1, failed: 0, total: null },
    { ok: 0, failed: 1, total: null },
    { ok: 256, failed: 65_536, total: 4_294_967_296 },
    { ok: 2 ** 48 - 1, failed: 2 ** 40 - 1, total: 2 ** 40 - 2 },
  ])("come back as they were: %j", (counts) => {
    expect(countsThrough(counts)).toEqual(counts);
  });

  test("beyond what the bytes hold are the largest that they do", () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(countsThrough({ ok: most, failed: most, total: most })).toEqual({
      ok: 2 ** 48 - 1,
      failed: 2 ** 40 - 1,
      total: 2 ** 40 - 2,
    });
    expect(countsThrough(null)).toBeNull();
  });

  test("are whole where the body of the slot is torn", () => {
    const bytes = encodeSlot(sampleSlot());
    bytes[SLOT_HEAD_BYTES + 40] = (bytes[SLOT_HEAD_BYTES + 40] ?? 0) ^ 1;
    const slot = decodeSlot(bytes);
    expect(slot?.body).toBeUndefined();
    expect(describeProgress(slot)).toMatchObject({ ok: 900, failed: 12, done: 912, total: 1_800 });
  });
});

describe("work in the body of a slot", () => {
  test("comes back as it was, and none of it as none", () => {
    expect(decodeWork(encodeWork(WORK))).toEqual(WORK);
    const nothing: SlotWork = { lastOutputMs: null, filesChangedMs: null, use: null, told: null };
    expect(decodeWork(encodeWork(nothing))).toEqual(nothing);
    expect(decodeWork(encodeWork(null))).toBeNull();
  });

  test("of an earlier version has no change of files, and the rest", () => {
    const earlier = encodeWork(WORK).subarray(0, -8);
    expect(decodeWork(earlier)).toEqual({ ...WORK, filesChangedMs: null });
  });

  test("of a later version is read as far as it is known, of a broken one not at all", () => {
    const later = new Uint8Array([...encodeWork(WORK), 1, 2, 3, 4, 5]);
    expect(decodeWork(later)).toEqual(WORK);
    expect(decodeWork(encodeWork(WORK).subarray(0, 40))).toBeNull();
  });

  test("with the longest texts takes no room from the members", () => {
    const told = {
      ...WORK.told,
      checkpoint: "ä".repeat(300),
      lastMessage: "\u{1f600}".repeat(300),
    };
    const work = { ...WORK, told } as SlotWork;
    const all = Array.from({ length: MOST_SLOT_MEMBERS }, (_, at) => ({
      pid: at + 1,
      start_time: 9,
    }));
    const slot = sampleSlot({ body: { work, members: all, memberCount: all.length } });
    const body = decodeSlot(encodeSlot(slot))?.body;
    expect(body?.members).toEqual(all);
    expect(body?.work?.told?.checkpoint).toBe("ä".repeat(SHOWN_CHECKPOINT_BYTES / 2));
    expect(body?.work?.told?.lastMessage).toBe("\u{1f600}".repeat(SHOWN_MESSAGE_BYTES / 4));
    expect(encodeWork(work).length).toBe(MOST_WORK_BYTES);
  });

  test("cuts a text at a letter, whatever its bytes are", () => {
    expect(cutBytes("aä\u{1f600}", 7)).toBe("aä\u{1f600}");
    expect([6, 5, 4, 3, 2, 1, 0].map((longest) => cutBytes("aä\u{1f600}", longest))).toEqual([
      "aä",
      "aä",
      "aä",
      "aä",
      "a",
      "a",
      "",
    ]);
  });
});

const PROGRESS: Progress = {
  items: {
    ok: 900,
    failed: 12,
    total: 1_800,
    checkpoint: "tables ä",
    lastMessage: "item 17: no answer",
    ratePerMinute: 45.5,
    reportedMs: 980.25,
  },
  lastOutputMs: 985.125,
  filesChangedMs: 990.5,
  use: {
    measuredMs: 970,
    cpuMs: 420,
    ioBytes: 2 ** 40,
    windowMs: 500.5,
    windowCpuMs: 60,
    windowIoBytes: 4_096,
  },
};

describe("the words between main and the heartbeat", () => {
  /** As main has them, and as the heartbeat has. */
  function share(): { words: BigInt64Array; shared: ProgressWords; other: ProgressWords } {
    const words = new BigInt64Array(new SharedArrayBuffer(PROGRESS_WORDS * 8));
    return { words, shared: new ProgressWords(words), other: new ProgressWords(words) };
  }

  test("hold nothing at first, then what was shown, and nothing of it when that is over", () => {
    const { shared, other } = share();
    expect(other.read()).toEqual(NO_PROGRESS);
    shared.show(PROGRESS);
    expect(other.read()).toEqual(PROGRESS);
    const bare = { ok: 1, failed: 0, total: null, checkpoint: null, lastMessage: null };
    const items = { ...bare, ratePerMinute: null, reportedMs: 5 };
    for (const progress of [{ ...NO_PROGRESS, items }, NO_PROGRESS, PROGRESS]) {
      shared.show(progress);
      expect(other.read()).toEqual(progress);
    }
  });

  test("give what was read before while main is writing", () => {
    const { words, shared, other } = share();
    shared.show(PROGRESS);
    other.read();
    Atomics.add(words, 0, 1n);
    Atomics.store(words, 1, 77n);
    expect(other.read()).toEqual(PROGRESS);
    Atomics.add(words, 0, 1n);
    expect(other.read().lastOutputMs).toBe(0.077);
  });
});

describe("what is described", () => {
  test("is nothing where nothing is told, and no items where only others are", () => {
    expect(describeProgress(undefined)).toBeUndefined();
    const silent = sampleSlot({ head: { counts: null }, body: { work: null } });
    expect(describeProgress(silent)).toBeUndefined();
    const idle = sampleSlot({ head: { counts: null }, body: { work: { ...WORK, told: null } } });
    expect(describeProgress(idle)).toMatchObject({ ok: null, done: null, timeLeftMs: null });
    const named = sampleSlot({ head: { counts: null } });
    expect(describeProgress(named)).toMatchObject({ ok: 0, done: 0, checkpoint: "tables" });
  });

  test("has the rest of the time, and what was used within the last window", () => {
    expect(describeProgress(sampleSlot())).toMatchObject({
      done: 912,
      timeLeftMs: (888 / 45.5) * 60_000,
      cpuPercent: (1_200 * 100) / 10_000.25,
      ioBytesPerMinute: (3 * 2 ** 20 * 60_000) / 10_000.25,
      lastOutputMs: 999_000,
      filesChangedMs: 997_500.5,
    });
  });
});
