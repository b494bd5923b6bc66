/**
 * A lease with real files, held as after its grant, and one beat of it at a time: the moment is
 * handed in, so nothing has to be waited for. Everything lies in one directory of the test file's
 * own and is removed at its end.
 */
import { afterAll } from "bun:test";
import { closeSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import type { LeaseRecord } from "../../src/core/lease-record.ts";
import { readStat } from "../../src/os/proc.ts";
import type { BeatEvent, BeatLease } from "../../src/lease/beat/events.ts";
import { beatFiles, type BeatFiles } from "../../src/lease/beat/files.ts";
import type { Progress } from "../../src/core/progress.ts";
import type { BeatFacts } from "../../src/lease/beat/slot.ts";
import { BeatState, type LeaseWords } from "../../src/lease/beat/state.ts";
import { LeaseBeat } from "../../src/lease/beat/beat.ts";
import { openLock, tryLock } from "../../src/lease/files/lock-file.ts";
import { type LeasePlace, makePlace, placeOf, slotPath } from "../../src/lease/files/places.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import type { WholeSlot } from "../../src/lease/files/slot.ts";
import { createSlot, readSlot } from "../../src/lease/files/slot-file.ts";

export const GENERATION = 7;
export const RUN_ID = "01999999-0000-7000-8000-00000000000a";
export const OTHER_RUN_ID = "01999999-0000-7000-8000-00000000000b";

export const PROGRESS: Progress = {
  items: {
    ok: 900,
    failed: 12,
    total: 1800,
    checkpoint: "tables",
    lastMessage: "item 17: no answer",
    ratePerMinute: 45.5,
    reportedMs: 980,
  },
  lastOutputMs: 985,
  filesChangedMs: 975,
  use: {
    measuredMs: 970,
    cpuMs: 420,
    ioBytes: 2 ** 20,
    windowMs: 500,
    windowCpuMs: 60,
    windowIoBytes: 4096,
  },
};

export const FACTS: BeatFacts = {
  owner: { pid: process.pid, start_time: 5, pidfd_inode: 6 },
  sessionId: 4_700,
  mainGroup: { pid: 4711, start_time: 98_765 },
  mainChild: { pid: 4711, start_time: 98_765, pidfd_inode: 12 },
  guard: { pid: 4712, start_time: 98_766 },
  runState: "running",
  mainLoopSequence: 3,
  mainLoopMs: 990,
  members: [{ pid: 4711, start_time: 98_765 }],
  memberCount: 1,
  progress: PROGRESS,
};

export interface HeldKey extends BeatLease {
  readonly place: LeasePlace;
  /** `device:inode` of the lock file of the grant. */
  readonly lockInode: string;
  readonly slotPath: string;
}

export interface OneBeat {
  readonly lease: HeldKey;
  readonly words: LeaseWords;
  readonly state: BeatState;
  readonly events: BeatEvent[];
  readonly beat: LeaseBeat;
  /** Beats at this instant on CLOCK_MONOTONIC. */
  at(monotonicMs: number): void;
}

export interface BeatScene {
  readonly directory: string;
  hold(): HeldKey;
  /** A held lease and its beat; `files` makes parts of it fail. */
  open(files?: Partial<BeatFiles>): OneBeat;
}

export function openBeatScene(): BeatScene {
  const directory = mkdtempSync(`${tmpdir()}/watchdog-beat-`);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  let count = 0;
  const hold = (): HeldKey => {
    count += 1;
    return holdIn(directory, `beats ${count}`);
  };
  return { directory, hold, open: (files = {}) => openBeat(hold(), { ...beatFiles, ...files }) };
}

function openBeat(lease: HeldKey, files: BeatFiles): OneBeat {
  const state = new BeatState(1);
  const words = state.leases[0];
  if (words === undefined) throw new Error("no words of the lease");
  words.lockFd = lease.lockFd;
  words.slotFd = lease.slotFd;
  words.sequence = 1;
  const events: BeatEvent[] = [];
  const mayWrite = () => !state.isStopping;
  const onEvent = (event: BeatEvent) => void events.push(event);
  const beat = new LeaseBeat({ lease, words, files, mayWrite, onEvent });
  const at = (monotonicMs: number): void =>
    beat.beat({ monotonicMs, boottimeMs: monotonicMs + 50, wallMs: 1_700_000_000_000 }, FACTS);
  return { lease, words, state, events, beat, at };
}

/** What steps A1, A2, A7 and A8 leave behind. */
export function holdIn(directory: string, name: string): HeldKey {
  const key = { kind: "job", name };
  const place = placeOf(directory, key);
  makePlace(place);
  const { fd: lockFd, inode: lockInode } = openNew(place.lock);
  if (tryLock(lockFd, "exclusive") !== "locked") throw new Error("the lock is not to be had");
  const slotFd = createSlot(place, GENERATION);
  const record = { ...RECORD, name, lock_inode: lockInode };
  writeRecord(place.record, record);
  const path = slotPath(place, GENERATION);
  return { key, place, generation: GENERATION, record, lockFd, lockInode, slotFd, slotPath: path };
}

function openNew(path: string): { fd: number; inode: string } {
  const opened = openLock(path, "create");
  if (opened.kind !== "open") throw new Error(`${path}: ${opened.kind}`);
  return opened;
}

/** Another open file that tries for the lock of this path, as a newcomer does. */
export function tryAsNewcomer(
  path: string,
  mode: "exclusive" | "shared" = "exclusive",
): { isLocked: boolean; release(): void } {
  const { fd } = openNew(path);
  const isLocked = tryLock(fd, mode) === "locked";
  if (!isLocked) closeSync(fd);
  return { isLocked, release: () => (isLocked ? closeSync(fd) : undefined) };
}

/** Whether a newcomer would get the lock of this path now. */
export function isFree(path: string): boolean {
  const newcomer = tryAsNewcomer(path);
  newcomer.release();
  return newcomer.isLocked;
}

export function readWholeSlot(path: string): WholeSlot {
  const slot = readSlot(path);
  if (typeof slot === "string" || slot.body === undefined) throw new Error(`slot: ${String(slot)}`);
  return { head: slot.head, body: slot.body };
}

export function readJson(path: string): LeaseRecord {
  return JSON.parse(readFileSync(path, "utf8")) as LeaseRecord;
}

/** The record of another owner, under the next number. */
export function otherRecord(lease: HeldKey, generation = GENERATION + 1): LeaseRecord {
  return { ...lease.record, generation, run_id: OTHER_RUN_ID };
}

export function identityOf(pid: number): { pid: number; start_time: number } {
  return { pid, start_time: readStat(pid)?.startTicks ?? 0 };
}

const RECORD: LeaseRecord = {
  format: 1,
  kind: "job",
  name: "",
  generation: GENERATION,
  state: "held",
  run_id: RUN_ID,
  run_path: RUN_ID,
  job: "beats",
  runner: "tester@here",
  host: "here",
  machine_id: null,
  boot_id: "11111111-2222-3333-4444-555555555555",
  pid: process.pid,
  pid_start_time: 5,
  pid_namespace: "4026531836",
  time_namespace: null,
  lock_inode: "",
  uid: process.getuid?.() ?? 0,
  session_started_at: "2030-01-02T03:04:05.000Z",
  acquired_at: "2030-01-02T03:04:05.000Z",
  released_at: null,
  heartbeat_interval_ms: 100,
  stale_after_ms: 400,
  lane: null,
  task_id: null,
  worktree: null,
  branch: null,
  command: "sleep 60",
  cgroup: null,
  adopters: [],
  previous: null,
};
