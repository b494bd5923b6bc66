/** Rows of the journal held against the processes of this machine. */
import { describe, expect, test } from "bun:test";
import { showHistory } from "../../../src/inspect/history.ts";
import { isGoingOn, showRun, supervisorOf, viewAnswer } from "../../../src/inspect/journal-runs.ts";
import { showStatus } from "../../../src/inspect/status.ts";
import { bootedAt, wallNow } from "../../../src/os/clock.ts";
import { readStat } from "../../../src/os/proc.ts";
import { runningRun, sampleRun, sampleRunRecord } from "../../support/lease-views.ts";

const ownStart = readStat(process.pid)?.startTicks ?? 0;
const ours = { pid: process.pid, pidStartTime: ownStart, startedAt: wallNow() };

describe("a run goes on", () => {
  test("where its row says so and its very process lives", () => {
    expect(isGoingOn(runningRun(ours))).toBe(true);
  });

  test("nowhere else: not with another start time, another pid, or an end", () => {
    expect(isGoingOn(runningRun({ ...ours, pidStartTime: ownStart + 1 }))).toBe(false);
    expect(isGoingOn(runningRun({ ...ours, pid: 2 ** 22 + 1 }))).toBe(false);
    expect(isGoingOn(runningRun({ ...ours, pidStartTime: null }))).toBe(false);
    expect(isGoingOn(sampleRun(ours))).toBe(false);
  });

  test("not where it began before this boot, whoever has its pid and start time now", () => {
    expect(isGoingOn(runningRun({ ...ours, startedAt: bootedAt() - 60_000 }))).toBe(false);
    expect(isGoingOn(runningRun({ ...ours, startedAt: bootedAt() + 60_000 }))).toBe(true);
  });
});

test("this boot began before this process", () => {
  expect(bootedAt()).toBeLessThan(wallNow());
  expect(bootedAt()).toBeGreaterThan(wallNow() - 10 * 365 * 86_400_000);
});

test("a row without the start time of its watchdog names no process", () => {
  expect(supervisorOf(sampleRun())).toEqual({ pid: 4711, start_time: 123_456 });
  expect(supervisorOf(sampleRun({ pidStartTime: null }))).toBeUndefined();
});

describe("an answer of the journal", () => {
  test("that is missing is empty, and no trouble", () => {
    expect(viewAnswer({ kind: "missing" }, "none")).toEqual({
      value: "none",
      isReadable: true,
      troubles: [],
    });
  });

  test("that cannot be had is empty with its reason", () => {
    const view = viewAnswer({ kind: "unreadable", reason: "journal.db cannot be used" }, "none");
    expect(view).toEqual({
      value: "none",
      isReadable: false,
      troubles: ["journal: journal.db cannot be used"],
    });
  });

  test("tells what still waits in the spool, and what went wrong with it", () => {
    const answer = { kind: "read", value: 5, waiting: 1, notes: ["a file was dropped"] } as const;
    expect(viewAnswer<number>(answer, 0)).toEqual({
      value: 5,
      isReadable: true,
      troubles: [
        "journal: a file was dropped",
        "journal: 1 file in spool/ could not be read in yet",
      ],
    });
  });
});

describe("a run as JSON", () => {
  test("is its record, unchanged", () => {
    const record = sampleRunRecord();
    expect(showRun(sampleRun({ record }))).toBe(record);
  });

  test("is what the columns tell, under the same names, where the record cannot be read", () => {
    const shown = showRun(sampleRun());
    const known: Record<string, unknown> = { ...sampleRunRecord() };
    expect(Object.keys(shown).filter((name) => !(name in known))).toEqual([]);
    expect(shown).toMatchObject({ run_id: "run-7", started_at: known["started_at"] });
    expect(shown).toMatchObject({ ended_at: known["ended_at"], duration_ms: 303_000 });
  });

  test.each(["guard", "next-run", null] as const)(
    "tells in history and status who wrote down that it was abandoned: %p",
    (abandonedBy) => {
      const run = sampleRun({ record: sampleRunRecord(), abandonedBy });
      const about = { leases: [], runs: [], circuits: [], troubles: [] };
      const history = showHistory({
        target: undefined,
        isReadable: true,
        troubles: [],
        runs: [{ run, isGoingOn: false }],
      });
      const status = showStatus({
        stateDirectory: "/s",
        name: undefined,
        ...about,
        lastRuns: [run],
      });
      const shown = [{ ...sampleRunRecord(), abandoned_by: abandonedBy }];
      expect<unknown>([history["runs"], status["last_runs"]]).toEqual([shown, shown]);
    },
  );

  test("survives an instant that no calendar has", () => {
    expect(showRun(sampleRun({ startedAt: 1e300 }))).toMatchObject({ started_at: null });
  });
});
