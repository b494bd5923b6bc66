/**
 * The words that main and the thread of the heartbeat share. Only layout and access: knows no
 * file, no clock, no policy.
 *
 * Always: each word has one writer at a time, and neither thread ever waits for the other here. All
 * words are 64-bit integers under `Atomics`, so that no reader sees half of a number; a process,
 * which is more than one number, is guarded by a version that is odd while it is being written (a
 * seqlock). What the thread has changed (its descriptors, its counts) stands here and not in its
 * own memory, so that a thread that takes over from a dead one goes on where that one was.
 */
import {
  type ProcessIdentity,
  SLOT_RUN_STATES,
  type SlotOwner,
  type SlotRunState,
} from "../../core/lease-record.ts";
import type { MonotonicAt } from "../../core/time.ts";
import { PROGRESS_WORDS, ProgressWords } from "./shown-progress.ts";

const WORD = {
  isStopping: 0,
  mainLoopSequence: 1,
  /** Microseconds. */
  mainLoopAt: 2,
  runState: 3,
  version: 4,
  /** pid, start, inode; a pid of 0 is nobody. Its group behind it: written in one go. */
  mainChild: 5,
  /** pid, start of its leader. */
  mainGroup: 8,
  /** pid, start. */
  guard: 10,
  /** Of shown-progress.ts. */
  progress: 16,
  count: 16 + PROGRESS_WORDS,
} as const;

const LEASE_WORD = {
  sequence: 0,
  lockFd: 1,
  slotFd: 2,
  failures: 3,
  isMissTold: 4,
  isLost: 5,
  count: 8,
} as const;

const WORD_BYTES = 8;
/** A reader that met a writer so often takes what it has read last. */
const MOST_READS = 1000;

/** What main knows of the processes that a slot names. */
export interface ShownProcesses {
  readonly mainChild: SlotOwner | null;
  readonly mainGroup: ProcessIdentity | null;
  readonly guard: ProcessIdentity | null;
}

/** Where one lease stands. Written by the thread that beats. */
export class LeaseWords {
  readonly #words: BigInt64Array;

  constructor(words: BigInt64Array) {
    this.#words = words;
  }

  /** Of the last beat that was written. */
  get sequence(): number {
    return load(this.#words, LEASE_WORD.sequence);
  }

  set sequence(value: number) {
    store(this.#words, LEASE_WORD.sequence, value);
  }

  /** The descriptor that holds the lock of the path; the newest one. */
  get lockFd(): number {
    return load(this.#words, LEASE_WORD.lockFd);
  }

  set lockFd(value: number) {
    store(this.#words, LEASE_WORD.lockFd, value);
  }

  get slotFd(): number {
    return load(this.#words, LEASE_WORD.slotFd);
  }

  set slotFd(value: number) {
    store(this.#words, LEASE_WORD.slotFd, value);
  }

  /** Beats that failed since the last good one. */
  get failures(): number {
    return load(this.#words, LEASE_WORD.failures);
  }

  set failures(value: number) {
    store(this.#words, LEASE_WORD.failures, value);
  }

  get isMissTold(): boolean {
    return load(this.#words, LEASE_WORD.isMissTold) === 1;
  }

  tellMiss(): void {
    store(this.#words, LEASE_WORD.isMissTold, 1);
  }

  get isLost(): boolean {
    return load(this.#words, LEASE_WORD.isLost) === 1;
  }

  lose(): void {
    store(this.#words, LEASE_WORD.isLost, 1);
  }
}

export class BeatState {
  readonly memory: SharedArrayBuffer;
  readonly leases: readonly LeaseWords[];
  /** Written by main. */
  readonly progress: ProgressWords;
  readonly #words: BigInt64Array;
  #lastRead: ShownProcesses = { mainChild: null, mainGroup: null, guard: null };

  /** @param source  how many leases there are, or the memory that another thread has made */
  constructor(source: number | SharedArrayBuffer) {
    this.memory =
      typeof source === "number"
        ? new SharedArrayBuffer((WORD.count + source * LEASE_WORD.count) * WORD_BYTES)
        : source;
    this.#words = new BigInt64Array(this.memory, 0, WORD.count);
    this.progress = new ProgressWords(this.#words.subarray(WORD.progress));
    const count = (this.memory.byteLength / WORD_BYTES - WORD.count) / LEASE_WORD.count;
    this.leases = Array.from({ length: count }, (_, index) => new LeaseWords(this.#section(index)));
  }

  #section(index: number): BigInt64Array {
    const at = WORD.count + index * LEASE_WORD.count;
    return new BigInt64Array(this.memory, at * WORD_BYTES, LEASE_WORD.count);
  }

  /** Once true, the thread changes no file any more, whatever it was about to do. */
  get isStopping(): boolean {
    return load(this.#words, WORD.isStopping) === 1;
  }

  /** Main only; there is no way back. */
  stop(): void {
    store(this.#words, WORD.isStopping, 1);
  }

  get mainLoopSequence(): number {
    return load(this.#words, WORD.mainLoopSequence);
  }

  get mainLoopAt(): MonotonicAt {
    return (load(this.#words, WORD.mainLoopAt) / 1000) as MonotonicAt;
  }

  /** Main only. */
  countMainLoop(at: MonotonicAt): void {
    store(this.#words, WORD.mainLoopAt, at * 1000);
    store(this.#words, WORD.mainLoopSequence, this.mainLoopSequence + 1);
  }

  get runState(): SlotRunState {
    return SLOT_RUN_STATES[load(this.#words, WORD.runState)] ?? "starting";
  }

  /** Main only. */
  set runState(state: SlotRunState) {
    store(this.#words, WORD.runState, SLOT_RUN_STATES.indexOf(state));
  }

  /**
   * Main only.
   *
   * @param group  of the new child, where it leads one; a child that has ended leaves its own
   */
  showMainChild(child: SlotOwner | null, group: ProcessIdentity | null = null): void {
    const { pid, start_time, pidfd_inode } = child ?? NOBODY;
    const { pid: groupId, start_time: start } = group ?? NOBODY;
    const behind = child === null ? [] : [groupId, start];
    this.#write(WORD.mainChild, [pid, start_time, pidfd_inode, ...behind]);
  }

  /** Main only. */
  showGuard(guard: ProcessIdentity | null): void {
    const { pid, start_time } = guard ?? NOBODY;
    this.#write(WORD.guard, [pid, start_time]);
  }

  #write(at: number, values: readonly number[]): void {
    Atomics.add(this.#words, WORD.version, 1n);
    values.forEach((value, index) => store(this.#words, at + index, value));
    Atomics.add(this.#words, WORD.version, 1n);
  }

  /** Each process whole: never the pid of one and the start of another. */
  readProcesses(): ShownProcesses {
    for (let attempt = 0; attempt < MOST_READS; attempt += 1) {
      const before = load(this.#words, WORD.version);
      const read = this.#readOnce();
      if (before % 2 === 0 && load(this.#words, WORD.version) === before) {
        this.#lastRead = read;
        return read;
      }
    }
    return this.#lastRead;
  }

  #readOnce(): ShownProcesses {
    const word = (at: number): number => load(this.#words, at);
    const child = { pid: word(WORD.mainChild), start_time: word(WORD.mainChild + 1) };
    const guard = { pid: word(WORD.guard), start_time: word(WORD.guard + 1) };
    const group = { pid: word(WORD.mainGroup), start_time: word(WORD.mainGroup + 1) };
    return {
      mainGroup: group.pid === 0 ? null : group,
      mainChild: child.pid === 0 ? null : { ...child, pidfd_inode: word(WORD.mainChild + 2) },
      guard: guard.pid === 0 ? null : guard,
    };
  }
}

const NOBODY: SlotOwner = { pid: 0, start_time: 0, pidfd_inode: 0 };

function load(words: BigInt64Array, at: number): number {
  return Number(Atomics.load(words, at));
}

/** Fractions are cut off: the words are whole numbers. */
function store(words: BigInt64Array, at: number, value: number): void {
  Atomics.store(words, at, BigInt(Math.trunc(value)));
}
