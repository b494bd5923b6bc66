/** The words that main and the heartbeat's thread share, and the pure decisions beside them. */
import { describe, expect, test } from "bun:test";
import { SLOT_RUN_STATES } from "../../../src/core/lease-record.ts";
import type { LeaseRecord } from "../../../src/core/lease-record.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";
import { nextOnGrid } from "../../../src/lease/beat/loop.ts";
import { decideStanding } from "../../../src/lease/beat/standing.ts";
import { BeatState } from "../../../src/lease/beat/state.ts";
import type { RecordReading } from "../../../src/lease/files/record-file.ts";

const NOBODY = { mainChild: null, mainGroup: null, guard: null };
const LARGEST = Number.MAX_SAFE_INTEGER;

describe("shared words", () => {
  test("what one thread writes the other reads, up to the largest numbers", () => {
    const main = new BeatState(2);
    const thread = new BeatState(main.memory);
    main.countMainLoop(1234.5678 as MonotonicAt);
    main.countMainLoop(9876.5432 as MonotonicAt);
    const mainGroup = { pid: 4711, start_time: LARGEST };
    main.showMainChild({ ...mainGroup, pidfd_inode: LARGEST - 1 }, mainGroup);
    main.showGuard({ pid: 4712, start_time: 99 });
    expect(thread.mainLoopSequence).toBe(2);
    expect(thread.mainLoopAt as number).toBe(9876.543);
    expect(thread.readProcesses()).toEqual({
      mainChild: { pid: 4711, start_time: LARGEST, pidfd_inode: LARGEST - 1 },
      mainGroup,
      guard: { pid: 4712, start_time: 99 },
    });
  });

  test("nobody is shown before main has named somebody, and after it has taken it back", () => {
    const state = new BeatState(1);
    expect(state.readProcesses()).toEqual(NOBODY);
    state.showMainChild({ pid: 7, start_time: 8, pidfd_inode: 9 });
    state.showGuard({ pid: 10, start_time: 11 });
    state.showMainChild(null);
    const guard = { pid: 10, start_time: 11 };
    expect(state.readProcesses()).toEqual({ ...NOBODY, guard });
  });

  test("the group of a command is shown until there is another command", () => {
    const state = new BeatState(1);
    const child = { pid: 7, start_time: 8, pidfd_inode: 9 };
    state.showMainChild(child, { pid: 7, start_time: 8 });
    state.showMainChild(null);
    expect(state.readProcesses()).toEqual({ ...NOBODY, mainGroup: { pid: 7, start_time: 8 } });
    state.showMainChild(child);
    expect(state.readProcesses()).toEqual({ ...NOBODY, mainChild: child });
  });

  test("every run state comes over", () => {
    const main = new BeatState(1);
    const thread = new BeatState(main.memory);
    expect(thread.runState).toBe("starting");
    for (const runState of SLOT_RUN_STATES) {
      main.runState = runState;
      expect(thread.runState).toBe(runState);
    }
  });

  test("the end can be asked for, and there is no way back", () => {
    const main = new BeatState(1);
    const thread = new BeatState(main.memory);
    expect(thread.isStopping).toBe(false);
    main.stop();
    main.runState = "ending";
    expect(thread.isStopping).toBe(true);
  });

  test("the words of each lease are its own, whoever looks", () => {
    const thread = new BeatState(3);
    thread.leases.forEach((words, index) => {
      words.sequence = 100 + index;
      words.lockFd = 200 + index;
      words.slotFd = 300 + index;
      words.failures = 400 + index;
    });
    thread.leases[1]?.lose();
    thread.leases[2]?.tellMiss();
    const seen = new BeatState(thread.memory).leases.map((words) => [
      words.sequence,
      words.lockFd,
      words.slotFd,
      words.failures,
      words.isLost,
      words.isMissTold,
    ]);
    expect(seen).toEqual([
      [100, 200, 300, 400, false, false],
      [101, 201, 301, 401, true, false],
      [102, 202, 302, 402, false, true],
    ]);
    expect(thread.runState).toBe("starting");
    expect(thread.readProcesses()).toEqual(NOBODY);
  });

  test("a process that is being written is not read in halves", () => {
    const state = new BeatState(1);
    const words = new BigInt64Array(state.memory);
    const at = { version: 4, mainPid: 5 };
    state.showMainChild({ pid: 1, start_time: 10, pidfd_inode: 100 });
    expect(state.readProcesses().mainChild?.pid).toBe(1);
    expect(words[at.version]).toBe(2n);
    words[at.version] = 3n; // a writer that was stopped between its words
    words[at.mainPid] = 2n;
    expect(state.readProcesses().mainChild).toEqual({ pid: 1, start_time: 10, pidfd_inode: 100 });
    words[at.version] = 4n;
    expect(state.readProcesses().mainChild?.pid).toBe(2);
  });
});

describe("the grid of beats", () => {
  test.each([
    [1000, 1000, 1100, "on time"],
    [1000, 1003, 1100, "a little late"],
    [1000, 1099, 1100, "late by almost an interval"],
    [1000, 1100, 1200, "late by exactly one"],
    [1000, 1555, 1600, "late by several, which are left out"],
    [1000, 990, 1100, "a clock that went back"],
  ])("from %d at %d the next beat is due at %d: %s", (last, now, next) => {
    expect(nextOnGrid(last, now, 100)).toBe(next);
  });
});

describe("the standing of a lease in its record", () => {
  const own = { generation: 7, run_id: "run-a", lock_inode: "1:2" };
  const read = (record: Partial<LeaseRecord>): RecordReading => ({
    kind: "read",
    record: { ...own, state: "held", ...record } as LeaseRecord,
  });

  test.each<[string, RecordReading, object]>([
    ["our own", read({}), { kind: "ours", because: "named" }],
    ["a missing one", { kind: "none" }, { kind: "rewrite", because: "missing" }],
    [
      "a corrupt one",
      { kind: "unreadable", reason: "it is no JSON" },
      { kind: "rewrite", because: "unreadable" },
    ],
    [
      "our own marked released",
      read({ state: "released" }),
      { kind: "rewrite", because: "marked-released" },
    ],
    [
      "our own of another lock file",
      read({ lock_inode: "1:3" }),
      { kind: "rewrite", because: "other-lock" },
    ],
    [
      "one of a newer version",
      { kind: "newer", format: 2 },
      { kind: "unknown", because: "newer-format" },
    ],
    [
      "another generation",
      read({ generation: 8, run_id: "run-b" }),
      { kind: "lost", because: "other-generation", found: { generation: 8, run_id: "run-b" } },
    ],
    [
      "a smaller generation",
      read({ generation: 6 }),
      { kind: "lost", because: "other-generation", found: { generation: 6, run_id: "run-a" } },
    ],
    [
      "another run under our number, even released",
      read({ run_id: "run-b", state: "released" }),
      { kind: "lost", because: "other-run", found: { generation: 7, run_id: "run-b" } },
    ],
  ])("%s", (_, reading, standing) => {
    expect<object>(decideStanding(reading, own)).toEqual(standing);
  });
});
