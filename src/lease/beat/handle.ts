/**
 * The heartbeat, seen from main: one thread that beats for all leases of a run, whatever main does.
 *
 * Guarantees: a blocked or busy main loop delays no beat and is seen in the slot, because its
 * counter stands still there; nothing here keeps the process alive or waits for a disk, apart from
 * the first beat. After `stop` has answered "stopped" the thread touches no file, and no event
 * comes. Non-guarantees: that a lease is free when beats stop; only the kernel's lock tells.
 * Clock: MONOTONIC. Crash behaviour: the slot stays as the last beat has left it.
 */
import type { ProcessIdentity, SlotOwner, SlotRunState } from "../../core/lease-record.ts";
import { countPeriodMs } from "../../core/main-loop-count.ts";
import type { Progress } from "../../core/progress.ts";
import { monotonicNow } from "../../os/clock.ts";
import { faultPoint } from "../../os/faults.ts";
import { readPidfdInode } from "../../os/pidfd-inode.ts";
import { readStat } from "../../os/proc.ts";
import { tickEvery } from "../../os/timers.ts";
import type { BeatEvent, BeatLease } from "./events.ts";
import { beatFiles } from "./files.ts";
import { BeatLoop, type BeatTask } from "./loop.ts";
import { BeatState } from "./state.ts";
import { BeatThread, type StopResult } from "./thread.ts";

export type { BeatEvent, BeatLease, FoundOwner } from "./events.ts";

/** A process as the slot shows it; without the inode of its pidfd it is looked up. */
export type ShownProcess = ProcessIdentity & Partial<Pick<SlotOwner, "pidfd_inode">>;

export interface BeatPlan {
  /** At least one; all of one run. */
  readonly leases: readonly BeatLease[];
  readonly workerUrl: string | URL;
  /** Milliseconds, 100 to one day. */
  readonly intervalMs: number;
  /** The sequence of the first beat, which the grant has written; ours go on from there. */
  readonly firstSequence?: number;
  /** Written into the slots at once, before the thread is started. */
  readonly mainChild?: ShownProcess;
  readonly guard?: ProcessIdentity;
  readonly runState?: SlotRunState;
  /** Children of ours from before the run: never written down as members. */
  readonly inborn?: readonly number[];
  /** Never called from within `startBeat`. */
  onEvent(event: BeatEvent): void;
}

export interface BeatHandle {
  /** Of the last beat written, for the lease that has the fewest. */
  readonly sequence: number;
  /** The main loop lives. Called by a timer of the handle's own (core/main-loop-count.ts). */
  countMainLoop(): void;
  /** The next beat says so. */
  setRunState(state: SlotRunState): void;
  /** Undefined: it has ended. A beat follows at once. */
  setMainChild(child: ShownProcess | undefined): void;
  setGuard(guard: ProcessIdentity | undefined): void;
  /** The next beat shows it, or the slot as it is: at once. */
  showProgress(progress: Progress, isAtOnce: boolean): void;
  /**
   * R0. "stopped": the thread has said so, and touches no file any more; "abandoned": it did not
   * answer within two seconds (a disk that hangs), and what it says later is dropped. Safe to
   * repeat.
   */
  stop(): Promise<StopResult>;
}

/**
 * Writes a beat with what is known now, and starts the thread. A beat or a thread that fails is an
 * event, never an error: the run goes on, held by the kernel's lock.
 */
export function startBeat(plan: BeatPlan): BeatHandle {
  const state = shareState(plan);
  const task = describeTask(plan, state);
  const onEvent = (event: BeatEvent): void => queueMicrotask(() => plan.onEvent(event));
  const thread = new BeatThread(plan.workerUrl, task, onEvent);
  new BeatLoop(task, beatFiles, onEvent).writeSlots();
  thread.start();
  const count = (): void => {
    faultPoint("main.count", { sequence: state.mainLoopSequence });
    state.countMainLoop(monotonicNow());
  };
  const counting = tickEvery(countPeriodMs(plan.intervalMs), count);
  return {
    get sequence() {
      return Math.min(...state.leases.map((words) => words.sequence));
    },
    countMainLoop: count,
    setRunState(runState) {
      const wasPaused = state.runState === "paused";
      state.runState = runState;
      // Whoever finds the run dead must know whether its tree was made to stand still.
      if (wasPaused !== (runState === "paused")) thread.beatNow();
    },
    setMainChild(child) {
      showMainChild(state, child);
      thread.beatNow();
    },
    setGuard(guard) {
      state.showGuard(guard ?? null);
      thread.beatNow();
    },
    showProgress(progress, isAtOnce) {
      state.progress.show(progress);
      if (isAtOnce) thread.showNow();
    },
    stop() {
      counting.cancel();
      state.stop();
      return thread.stop();
    },
  };
}

function shareState(plan: BeatPlan): BeatState {
  const state = new BeatState(plan.leases.length);
  state.leases.forEach((words, index) => {
    const lease = plan.leases[index];
    words.sequence = plan.firstSequence ?? 0;
    words.lockFd = lease?.lockFd ?? -1;
    words.slotFd = lease?.slotFd ?? -1;
  });
  state.runState = plan.runState ?? "starting";
  showMainChild(state, plan.mainChild);
  state.showGuard(plan.guard ?? null);
  state.countMainLoop(monotonicNow());
  return state;
}

/** Whether it leads a group is the kernel's to tell: at a terminal it shares that of the caller. */
function showMainChild(state: BeatState, shown: ShownProcess | undefined): void {
  if (shown === undefined) return state.showMainChild(null);
  const { pid, start_time } = shown;
  const isLeader = readStat(pid)?.groupId === pid;
  state.showMainChild(completeProcess(shown), isLeader ? { pid, start_time } : null);
}

function describeTask(plan: BeatPlan, state: BeatState): BeatTask {
  return {
    kind: "start",
    memory: state.memory,
    leases: plan.leases,
    intervalMs: plan.intervalMs,
    owner: completeProcess({ pid: process.pid, start_time: readStart(process.pid) }),
    sessionId: readStat(process.pid)?.sessionId ?? 0,
    inborn: (plan.inborn ?? []).map((pid) => ({ pid, start_time: readStart(pid) })),
  };
}

function completeProcess(shown: ShownProcess): SlotOwner {
  const { pid, start_time } = shown;
  return { pid, start_time, pidfd_inode: shown.pidfd_inode ?? readPidfdInode(pid) };
}

/** 0 where it is gone. */
function readStart(pid: number): number {
  return readStat(pid)?.startTicks ?? 0;
}
