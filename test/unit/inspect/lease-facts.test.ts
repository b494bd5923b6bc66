/** What a view of a lease tells: its holder, its main loop, and the whole of it as JSON. */
import { describe, expect, test } from "bun:test";
import {
  isMainLoopBlocked,
  isTaken,
  jobOf,
  mainLoopAgeMs,
  ownerOf,
  runIdOf,
  showLease,
  troubleOf,
} from "../../../src/inspect/lease-facts.ts";
import { sampleRecord, sampleSlot } from "../../support/lease-samples.ts";
import { deadView, releasedView, sampleView } from "../../support/lease-views.ts";

/** The lock is taken by one who has not written its own record yet. */
const acquiring = sampleView({
  key: { kind: "lane", name: "gpu" },
  record: sampleRecord({ state: "released" }),
});

describe("the holder", () => {
  test("is the owner of the record while the lock is taken", () => {
    const view = sampleView();
    expect([isTaken(view), runIdOf(view), jobOf(view)]).toEqual([true, "run-7", "backup"]);
    expect(ownerOf(view)).toEqual({ pid: 4711, start_time: 123_456 });
  });

  test("is nobody of the record while the key is just being acquired", () => {
    expect(acquiring.verdict.because).toBe("being-acquired");
    expect([isTaken(acquiring), runIdOf(acquiring)]).toEqual([true, undefined]);
    expect([jobOf(acquiring), ownerOf(acquiring)]).toEqual([undefined, undefined]);
  });

  test("is known from the slot where the record cannot be read", () => {
    const view = sampleView({ record: undefined });
    expect(ownerOf(view)).toEqual({ pid: 4711, start_time: 123_456 });
    expect(jobOf(view)).toBe("backup"); // by the key
  });
});

describe("the main loop", () => {
  const withLoop = (ageMs: number, beatAgeMs = 2_000) =>
    sampleView({
      slot: sampleSlot({ head: { monotonicMs: 100_000, mainLoopMs: 100_000 - ageMs } }),
      beatAgeMs,
    });

  test("is blocked where it has not counted for longer than the limit, as of the last beat", () => {
    expect(isMainLoopBlocked(withLoop(10_000))).toBe(false);
    expect(isMainLoopBlocked(withLoop(10_001))).toBe(true);
    expect(mainLoopAgeMs(withLoop(32_000))).toBe(32_000);
  });

  test("is blocked sooner where beats are quicker, and later only where nothing tells", () => {
    const withInterval = (interval: number | undefined, ageMs: number) =>
      isMainLoopBlocked({
        ...withLoop(ageMs),
        evidence: {
          ...withLoop(ageMs).evidence,
          record:
            interval === undefined ? undefined : sampleRecord({ heartbeat_interval_ms: interval }),
        },
      });
    expect([withInterval(200, 5_000), withInterval(200, 5_001)]).toEqual([false, true]);
    expect([withInterval(undefined, 10_000), withInterval(undefined, 10_001)]).toEqual([
      false,
      true,
    ]);
  });

  test("is nobody's business where the beats themselves are old, or nobody holds the key", () => {
    expect(isMainLoopBlocked(withLoop(32_000, 41_000))).toBeUndefined();
    expect(isMainLoopBlocked(releasedView())).toBeUndefined();
    expect(isMainLoopBlocked(sampleView({ slot: undefined }))).toBeUndefined();
  });

  test("is never blocked for less than no time", () => {
    expect(mainLoopAgeMs(withLoop(-5))).toBe(0);
  });
});

describe("trouble", () => {
  test("is a lock that cannot be asked, or a record that cannot be read", () => {
    const lock = { kind: "unaskable", reason: "it is a FIFO" } as const;
    expect(troubleOf(sampleView({ lock }))).toBe("the lock cannot be asked: it is a FIFO");
    const source = { kind: "unreadable", reason: "it is no JSON" } as const;
    const view = sampleView({ source, record: undefined, slot: undefined });
    expect(troubleOf(view)).toBe("the record cannot be read: it is no JSON");
    expect(troubleOf(sampleView())).toBeUndefined();
  });
});

describe("a lease as JSON", () => {
  test("tells key, verdict, rule and reason beside record and slot", () => {
    expect(showLease(sampleView())).toMatchObject({
      key: "job:backup",
      verdict: "held",
      rule: "R2",
      because: "beat-fresh",
      lock: "held",
      trouble: null,
      generation: 7,
      run_id: "run-7",
      pid: 4711,
      run_state: "running",
      member_count: 2,
      heartbeat_seq: 3,
      heartbeat_age_ms: 2_000,
      main_loop_seq: 29,
      main_loop_age_ms: 1,
      is_main_loop_blocked: false,
      survivors: null,
      suspects: null,
    });
  });

  test("names survivors and suspects once they were looked for", () => {
    const found = { pid: 5, start_time: 6, command: "sleep 9", isSignalable: true };
    const member = { ...found, isAncestor: false };
    const shown = showLease(deadView({ members: [member], suspects: [] }));
    expect(shown).toMatchObject({ verdict: "orphaned", because: "members", suspects: [] });
    expect(shown["survivors"]).toEqual([
      { pid: 5, start_time: 6, command: "sleep 9", is_signalable: true },
    ]);
  });

  test("has the same names whatever is known, and can be written as JSON", () => {
    const bare = sampleView({
      lock: { kind: "free" },
      source: { kind: "none" },
      record: undefined,
      slot: undefined,
      hasHistory: "no",
      beatAgeMs: undefined,
    });
    const names = Object.keys(showLease(sampleView()));
    expect(Object.keys(showLease(bare))).toEqual(names);
    expect(Object.keys(JSON.parse(JSON.stringify(showLease(bare))))).toEqual(names);
  });
});
