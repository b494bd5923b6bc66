/** A lease as JSON: every promised name is there, whatever of it is known. */
import { describe, expect, test } from "bun:test";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import { mergeShown } from "../../../src/lease/shown-lease.ts";
import { sampleRecord, sampleSlot } from "../../support/lease-samples.ts";

function evidence(changes: Partial<LeaseEvidence> = {}): LeaseEvidence {
  return {
    key: { kind: "job", name: "backup" },
    lock: { kind: "held" },
    source: { kind: "read", from: "record", generation: 7, isReleased: false, runId: "run-7" },
    record: sampleRecord(),
    slot: sampleSlot(),
    hasHistory: "yes",
    isReleasedByJournal: "unread",
    ownerAlive: "yes",
    sameBoot: "yes",
    sameMachine: "yes",
    sameLockInode: "yes",
    namespaceContained: "yes",
    recordedPids: "ours",
    beatAgeMs: 0,
    staleAfterMs: 40_000,
    note: "none",
    tree: "unread",
    ...changes,
  };
}

/** What every reader may count on. */
const PROMISED = (
  "format kind name generation state run_id run_path runner host machine_id boot_id pid " +
  "pid_start_time pid_namespace time_namespace lock_inode uid session_started_at acquired_at " +
  "heartbeat_at heartbeat_seq main_loop_seq heartbeat_interval_ms stale_after_ms lane task_id " +
  "worktree branch run_state command children progress previous " +
  "repair"
).split(" ");

describe("a lease as JSON", () => {
  test("merges record and slot under one list of names", () => {
    const { adopters: _notShown, previous, ...record } = sampleRecord();
    expect(mergeShown(evidence())).toEqual({
      ...record,
      previous: previous && { ...previous, repair: null },
      heartbeat_at: "2026-01-01T00:00:00.000Z",
      heartbeat_seq: 3,
      main_loop_seq: 29,
      run_state: "running",
      children: [
        { pid: 4712, start_time: 123_460 },
        { pid: 4720, start_time: 123_999 },
      ],
      member_count: 2,
      progress: {
        ok: 900,
        failed: 12,
        done: 912,
        total: 1_800,
        checkpoint: "tables",
        last_message: "item 17: no answer",
        rate_per_minute: 45.5,
        time_left_ms: 1_170_989,
        reported_at: "2025-12-31T23:59:56.999Z",
        last_output_at: "2025-12-31T23:59:58.999Z",
        files_changed_at: "2025-12-31T23:59:57.500Z",
        cpu_ms: 420,
        cpu_percent: 12,
        io_bytes: 2 ** 30,
        io_bytes_per_minute: 18_873_896,
        measured_at: "2025-12-31T23:59:58.000Z",
      },
      repair: null,
    });
  });

  test("shows the mark of a repair as it stands in the record", () => {
    const repair = {
      plan_id: "0a1b2c3d4e",
      action: "marked",
      at: "2026-01-01T00:00:00.000Z",
      boot_id: "boot",
      time_namespace: null,
      monotonic_ms: 12.5,
      by: "ops@nightly",
    } as const;
    const record = { ...sampleRecord(), repair };
    expect(mergeShown(evidence({ record }))["repair"]).toEqual(repair);
  });

  const nothing = { source: { kind: "none" }, record: undefined, slot: undefined } as const;

  test.each([
    ["all is known", evidence()],
    ["nothing is known", evidence(nothing)],
    ["only the slot is known", evidence({ record: undefined })],
    ["only the record is known", evidence({ slot: undefined })],
    ["the body of the slot is torn", evidence({ slot: { ...sampleSlot(), body: undefined } })],
  ])("has every promised name where %s", (_, given) => {
    const names = Object.keys(mergeShown(given));
    expect(PROMISED.filter((name) => !names.includes(name))).toEqual([]);
  });

  test("of which nothing is known holds its key and nulls", () => {
    const { kind, name, ...rest } = mergeShown(evidence(nothing));
    expect([kind, name]).toEqual(["job", "backup"]);
    expect([...new Set(Object.values(rest))]).toEqual([null]);
  });

  test("without a record takes what the slot knows of the owner", () => {
    expect(mergeShown(evidence({ record: undefined }))).toMatchObject({
      run_id: "run-7",
      generation: 7,
      host: null,
      pid: 4711,
      pid_start_time: 123_456,
      boot_id: sampleSlot().head.bootId,
      stale_after_ms: 40_000,
    });
  });

  test.each([
    [
      "record",
      evidence({
        source: { kind: "read", from: "record", generation: 7, isReleased: true, runId: "run-7" },
      }),
    ],
    ["journal", evidence({ isReleasedByJournal: "yes" })],
  ])("is released where the %s says so", (_, given) => {
    expect(mergeShown(given)["state"]).toBe("released");
    expect(mergeShown(evidence())["state"]).toBe("held");
  });

  test("names the main command first, and nobody twice", () => {
    const members = [
      { pid: 5, start_time: 1 },
      { pid: 4712, start_time: 123_460 },
      { pid: 4712, start_time: 999_999 },
    ];
    const children = mergeShown(evidence({ slot: sampleSlot({ body: { members } }) }))["children"];
    expect(children).toEqual([
      { pid: 4712, start_time: 123_460 },
      { pid: 5, start_time: 1 },
      { pid: 4712, start_time: 999_999 },
    ]);
  });

  test.each([[Number.NaN], [8.64e15 + 1], [-Infinity]])("shows no date for %d", (wallMs) => {
    const slot = sampleSlot({ head: { wallMs } });
    expect(mergeShown(evidence({ slot }))["heartbeat_at"]).toBeNull();
  });
});
