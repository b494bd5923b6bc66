/**
 * The beats of all leases of a run in time: when the next one is due, what they say alike, and the
 * end. Runs in the heartbeat's thread; refuses to know how a beat is made.
 *
 * Guarantees: beats are due on a grid of whole intervals since the start, so a slow one does not
 * shift those after it, and one that was missed is left out. Non-guarantees: beats on a machine
 * that gives this thread no time. Clock: MONOTONIC (it stands still in a suspend, for writer and
 * reader alike). Crash behaviour: another loop on the same memory goes on with the same numbers.
 */
import type { ProcessIdentity, SlotOwner } from "../../core/lease-record.ts";
import { monotonicNow, suspendedMs, wallNow } from "../../os/clock.ts";
import { type Timer, wakeAfter } from "../../os/timers.ts";
import type { BeatEvent, BeatLease } from "./events.ts";
import type { BeatFiles } from "./files.ts";
import { type MemberList, MemberWatch } from "./members.ts";
import type { BeatFacts, BeatMoment } from "./slot.ts";
import { BeatState } from "./state.ts";
import { LeaseBeat } from "./beat.ts";

/** What a thread is told once, at its start. */
export interface BeatTask {
  readonly kind: "start";
  readonly memory: SharedArrayBuffer;
  readonly leases: readonly BeatLease[];
  readonly intervalMs: number;
  readonly owner: SlotOwner;
  readonly sessionId: number;
  readonly inborn: readonly ProcessIdentity[];
}

export class BeatLoop {
  readonly #task: BeatTask;
  readonly #state: BeatState;
  readonly #beats: readonly LeaseBeat[];
  readonly #watch: MemberWatch;
  #members: MemberList = { members: [], memberCount: 0 };
  #nextAt = 0;
  #timer: Timer | undefined;

  constructor(task: BeatTask, files: BeatFiles, onEvent: (event: BeatEvent) => void) {
    this.#task = task;
    this.#state = new BeatState(task.memory);
    this.#watch = new MemberWatch(task.inborn, task.sessionId);
    this.#beats = this.#state.leases.flatMap((words, index) => {
      const lease = task.leases[index];
      const mayWrite = () => !this.#state.isStopping;
      return lease === undefined ? [] : [new LeaseBeat({ lease, words, files, mayWrite, onEvent })];
    });
  }

  /** Beats at once, and from then on until `stop`. */
  start(): void {
    this.#nextAt = monotonicNow();
    this.#wake();
  }

  /** One more beat of each lease; the grid stays where it is. */
  beatNow(): void {
    this.#beatAll();
    this.#arm();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** What main has shown, in slots that say no other beat than before. */
  showNow(): void {
    const facts = this.#facts();
    for (const beat of this.#beats) beat.showAgain(facts);
  }

  /** The slots alone and at once, for a caller without a loop: the first beat of a run. */
  writeSlots(): void {
    const { mainChild } = this.#state.readProcesses();
    const members = mainChild === null ? [] : [mainChild];
    this.#members = { members, memberCount: members.length };
    const facts = this.#facts();
    for (const beat of this.#beats) beat.writeSlot(readMoment(), facts);
  }

  #wake(): void {
    const now = monotonicNow();
    if (now >= this.#nextAt) {
      this.#beatAll();
      this.#nextAt = nextOnGrid(this.#nextAt, now, this.#task.intervalMs);
    } else {
      this.#retry(now);
    }
    this.#arm();
  }

  /** A timer may come early, and waits no longer than LONGEST_WAIT_MS: the clock decides. */
  #arm(): void {
    this.#timer?.cancel();
    if (this.#state.isStopping) return;
    const retries = this.#beats.flatMap((beat) => beat.retryAt ?? []);
    const due = Math.min(this.#nextAt, ...retries);
    this.#timer = wakeAfter(due - monotonicNow(), () => this.#wake());
  }

  #beatAll(): void {
    this.#members = this.#watch.look(this.#state.readProcesses());
    const facts = this.#facts();
    for (const beat of this.#beats) beat.beat(readMoment(), facts);
  }

  #retry(now: number): void {
    const due = this.#beats.filter((beat) => beat.retryAt !== undefined && beat.retryAt <= now);
    for (const beat of due) beat.beat(readMoment(), this.#facts());
  }

  #facts(): BeatFacts {
    const state = this.#state;
    return {
      owner: this.#task.owner,
      sessionId: this.#task.sessionId,
      ...state.readProcesses(),
      runState: state.runState,
      mainLoopSequence: state.mainLoopSequence,
      mainLoopMs: state.mainLoopAt,
      ...this.#members,
      progress: state.progress.read(),
    };
  }
}

function readMoment(): BeatMoment {
  const monotonicMs = monotonicNow();
  return { monotonicMs, boottimeMs: monotonicMs + suspendedMs(), wallMs: wallNow() };
}

/** The first instant of the grid that is not over yet. */
export function nextOnGrid(last: number, now: number, intervalMs: number): number {
  return last + (Math.floor(Math.max(0, now - last) / intervalMs) + 1) * intervalMs;
}
