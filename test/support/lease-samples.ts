/** A machine, a record and a slot that fit each other, for tests of leases; each can be changed. */
import type { LeaseRecord, SlotBody, SlotHead } from "../../src/core/lease-record.ts";
import type { WholeSlot } from "../../src/lease/files/slot.ts";
import type { Machine } from "../../src/os/machine.ts";

export const BOOT = "11111111-2222-3333-4444-555555555555";
export const OTHER_BOOT = "99999999-2222-3333-4444-555555555555";

export function sampleMachine(changes: Partial<Machine> = {}): Machine {
  return {
    bootId: BOOT,
    machineId: "0123456789abcdef0123456789abcdef",
    host: "nightly",
    pidNamespace: "4026531836",
    timeNamespace: "4026531834",
    isInitialPidNamespace: true,
    seesOwnProc: true,
    uid: 1000,
    user: "ops",
    cgroup: "/user.slice",
    ...changes,
  };
}

export function sampleRecord(changes: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    format: 1,
    kind: "job",
    name: "backup",
    generation: 7,
    state: "held",
    run_id: "run-7",
    run_path: "run-1/run-7",
    job: "backup",
    runner: "ops@nightly",
    host: "nightly",
    machine_id: "0123456789abcdef0123456789abcdef",
    boot_id: BOOT,
    pid: 4711,
    pid_start_time: 123_456,
    pid_namespace: "4026531836",
    time_namespace: "4026531834",
    lock_inode: "1:2",
    uid: 1000,
    session_started_at: "2026-01-01T00:00:00.000Z",
    acquired_at: "2026-01-01T00:00:01.000Z",
    released_at: null,
    heartbeat_interval_ms: 10_000,
    stale_after_ms: 40_000,
    lane: null,
    task_id: null,
    worktree: null,
    branch: null,
    command: "./backup.sh --all",
    cgroup: "/user.slice",
    adopters: [{ pid: 900, start_time: 12 }],
    previous: {
      generation: 6,
      run_id: "run-6",
      how_it_ended: "released",
      evidence: "R4 released",
    },
    ...changes,
  };
}

export interface SlotChanges {
  readonly head?: Partial<SlotHead>;
  readonly body?: Partial<SlotBody>;
}

export function sampleSlot(changes: SlotChanges = {}): WholeSlot {
  return {
    head: {
      generation: 7,
      sequence: 3,
      mainLoopSequence: 29,
      bootId: BOOT,
      monotonicMs: 1_000_000.25,
      boottimeMs: 1_500_000.5,
      wallMs: 1_767_225_600_000,
      mainLoopMs: 999_999.75,
      staleAfterMs: 40_000,
      runState: "running",
      counts: { ok: 900, failed: 12, total: 1800 },
      ...changes.head,
    },
    body: {
      runId: "run-7",
      lockInode: "1:2",
      pidNamespace: "4026531836",
      timeNamespace: "4026531834",
      sessionId: 4700,
      mainGroup: { pid: 4712, start_time: 123_460 },
      owner: { pid: 4711, start_time: 123_456, pidfd_inode: 77 },
      mainChild: { pid: 4712, start_time: 123_460, pidfd_inode: 0 },
      guard: { pid: 4713, start_time: 123_461 },
      members: [
        { pid: 4712, start_time: 123_460 },
        { pid: 4720, start_time: 123_999 },
      ],
      memberCount: 2,
      work: {
        lastOutputMs: 999_000,
        filesChangedMs: 997_500.5,
        use: {
          measuredMs: 998_000.5,
          cpuMs: 420,
          ioBytes: 2 ** 30,
          windowMs: 10_000.25,
          windowCpuMs: 1_200,
          windowIoBytes: 3 * 2 ** 20,
        },
        told: {
          checkpoint: "tables",
          lastMessage: "item 17: no answer",
          ratePerMinute: 45.5,
          reportedMs: 997_000,
        },
      },
      ...changes.body,
    },
  };
}
