/**
 * The kill seam for `watchdog stop`: signals the watchdog of a run, and nobody else. Refuses to
 * know which run is meant and what a signal does to it.
 *
 * Always: never this process, its ancestors or process 1, whatever anybody decided; the pidfd is
 * opened first and the proof asked again after it, so that the process which was judged is the one
 * that is hit (pidfd_open(2)). Clock: MONOTONIC, for the wait. State after a crash: none.
 */
import { assert } from "../core/errors.ts";
import { spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { isAlive } from "../os/machine.ts";
import { readStat } from "../os/proc.ts";
import { EINVAL, ENOSYS, EPERM, ESRCH, POLLIN, sys } from "../os/sys.ts";
import { pauseThread } from "../os/timers.ts";
import { findAncestors } from "./find.ts";
import type { SignalResult } from "./signal.ts";

export interface SupervisorTarget {
  readonly pid: number;
  readonly startTicks: number;
  /** Asked with the pidfd open: whether it still is the watchdog of the run. */
  readonly isStillProven: () => boolean;
}

/** A watchdog that was proven on its open pidfd: what is sent hits this process or nobody. */
export interface OpenSupervisor {
  /** `refused`: not ours to signal (EPERM). */
  send(signal: number): SignalResult;
  /** Whether it is stopped (by a signal, or by a debugger) at this moment. */
  isStopped(): boolean;
  /** Waits for its end, at most so long, while this thread stands still. */
  awaitEnd(limitMs: number): boolean;
  close(): void;
}

/** Whom nobody may ask to be signalled; undefined: it may be. */
export function protectionOf(pid: number): "process-one" | "self" | "ancestor" | undefined {
  if (pid <= 1) return "process-one";
  if (pid === process.pid) return "self";
  return findAncestors().has(pid) ? "ancestor" : undefined;
}

/**
 * @returns `gone`: ended, or not what it was any more. `unopened`: no descriptor for it (EMFILE)
 */
export function openSupervisor(target: SupervisorTarget): OpenSupervisor | "gone" | "unopened" {
  const protection = protectionOf(target.pid);
  assert(protection === undefined, `signal to process ${target.pid}, which is ${protection}`);
  const pidfd = sys.pidfdOpen(target.pid);
  if (pidfd === -ENOSYS) return openWithoutPidfd(target);
  if (pidfd === -ESRCH || pidfd === -EINVAL) return "gone"; // EINVAL: the id of a thread by now
  if (pidfd < 0) return "unopened";
  if (!isProven(target)) {
    sys.close(pidfd);
    return "gone";
  }
  return {
    send: (signal) => readResult(sys.pidfdSendSignal(pidfd, signal)),
    isStopped: () => isStopped(target),
    awaitEnd: (limitMs) => awaitReadable(pidfd, limitMs),
    close: () => void sys.close(pidfd),
  };
}

/** Kernels before 5.3: the check and the call are two steps there, so each call has its own. */
function openWithoutPidfd(target: SupervisorTarget): OpenSupervisor | "gone" {
  if (!isProven(target)) return "gone";
  return {
    send: (signal) => (isProven(target) ? readResult(sys.kill(target.pid, signal)) : "gone"),
    isStopped: () => isStopped(target),
    awaitEnd: (limitMs) => awaitDeath(target, limitMs),
    close: () => undefined,
  };
}

function isProven(target: SupervisorTarget): boolean {
  return !isDead(target) && target.isStillProven();
}

function isDead({ pid, startTicks }: SupervisorTarget): boolean {
  return isAlive({ pid, start_time: startTicks }) === "no";
}

function isStopped({ pid, startTicks }: SupervisorTarget): boolean {
  const stat = readStat(pid);
  return stat?.startTicks === startTicks && (stat.state === "T" || stat.state === "t");
}

function readResult(result: number): SignalResult {
  if (result >= 0) return "sent";
  return result === -EPERM ? "refused" : "gone";
}

/** A pidfd can be read when its process has ended, collected or not. */
function awaitReadable(pidfd: number, limitMs: number): boolean {
  const began = monotonicNow();
  for (;;) {
    const leftMs = Math.ceil(limitMs - spanMs(began, monotonicNow()));
    // 0: the time is up. Below: EINTR, and the wait goes on.
    const ready = sys.poll([[pidfd, POLLIN]], Math.max(0, Math.min(leftMs, LONGEST_POLL_MS)), []);
    if (ready > 0) return true;
    if (leftMs <= 0) return false;
  }
}

/** poll(2) takes an int. */
const LONGEST_POLL_MS = 60_000;
const LOOK_MS = 20;

function awaitDeath(target: SupervisorTarget, limitMs: number): boolean {
  const began = monotonicNow();
  while (!isDead(target)) {
    if (spanMs(began, monotonicNow()) >= limitMs) return false;
    pauseThread(LOOK_MS);
  }
  return true;
}
