/**
 * The one reaper of the process: `wait4(-1, WNOHANG | WUNTRACED)` until nothing is left to collect.
 * As a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) watchdog is also the parent of every
 * orphan of its tree.
 *
 * Always true: no other code in the process waits for children (no `Bun.spawn`, no `Bun.$`); a pid
 * cannot be used again for another process before it was collected here. SIGCHLD is at its default
 * before the first spawn (an inherited "ignore" would lose every status), and one collection
 * follows each spawn.
 */
import { libc } from "./libc.ts";
import { SIGCHLD, SIGKILL } from "../core/signals.ts";
import { monotonicNow } from "./clock.ts";
import { readChildren } from "./proc.ts";
import { type Timer, wakeAfter } from "./timers.ts";

/** How a child changed state. */
export type ChildChange =
  | { readonly kind: "exited"; readonly pid: number; readonly code: number; readonly usage: Usage }
  | {
      readonly kind: "signaled";
      readonly pid: number;
      readonly signal: number;
      readonly usage: Usage;
    }
  | { readonly kind: "stopped"; readonly pid: number; readonly signal: number };

/** What a collected child and the children it had waited for have used. */
export interface Usage {
  readonly cpuMs: number;
}

const WNOHANG = 1;
const WUNTRACED = 2;
const PR_SET_CHILD_SUBREAPER = 36;
const RUSAGE_WORDS = 18;
/**
 * More than this in one go is left for the next turn of the loop, so that a fork storm cannot
 * silence it.
 */
const MOST_AT_ONCE = 4096;
/**
 * SIGCHLD may be lost by nobody we know of; this is the belt to those braces. Towards its end a run
 * also waits for what no signal tells, and each wake-up of an idle run costs it CPU time.
 */
const SWEEP_MS = 10_000;
const ENDING_SWEEP_MS = 1_000;

const status = new Int32Array(1);
const usage = new BigInt64Array(RUSAGE_WORDS);
let isMoreToCollect = false;

/** Makes this process the parent of its orphaned descendants, and sure to hear of its children. */
export function becomeReaper(): void {
  libc().signal(SIGCHLD, null);
  libc().prctl(PR_SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n);
}

/**
 * Calls back at SIGCHLD and so long after the last call: ENDING_SWEEP_MS while the run is ending
 * (always, for who does not tell), SWEEP_MS before, at once where a collection has left some. Keeps
 * the process alive.
 */
export function watchChildren(onChange: () => void, isEnding = (): boolean => true): void {
  let sweep: Timer | undefined;
  const arm = (): void => {
    const pauseMs = isEnding() ? ENDING_SWEEP_MS : SWEEP_MS;
    sweep?.cancel();
    sweep = wakeAfter(isMoreToCollect ? 0 : pauseMs, look);
  };
  const look = (): void => {
    try {
      onChange();
    } finally {
      arm();
    }
  };
  process.on("SIGCHLD", look);
  arm();
}

/** Collects what there is to collect now, in the kernel's order. Never blocks. */
export function collectChildren(): ChildChange[] {
  const changes: ChildChange[] = [];
  while (changes.length < MOST_AT_ONCE) {
    const pid = libc().wait4(-1, status, WNOHANG | WUNTRACED, usage);
    // 0: children, but none has changed. -1: ECHILD, no children at all (EINTR cannot be with
    // WNOHANG).
    if (pid <= 0) break;
    changes.push(readChange(pid, status[0] ?? 0));
  }
  isMoreToCollect = changes.length === MOST_AT_ONCE;
  return changes;
}

/**
 * One child alone, while nobody collects all of them: what else has ended waits for the one reaper.
 * Never blocks.
 *
 * @returns "running": it has not changed. "gone": it is no child of ours (any more)
 */
export function collectChild(pid: number): ChildChange | "running" | "gone" {
  const collected = libc().wait4(pid, status, WNOHANG, usage);
  if (collected === 0) return "running";
  return collected < 0 ? "gone" : readChange(collected, status[0] ?? 0);
}

/**
 * The last resort when nothing can watch a command that was started: KILL to every child but the
 * spared ones, collect, and again, until none is left or the time is up. Blocks.
 */
export function killChildren(spared: readonly number[]): void {
  const until = monotonicNow() + LAST_RESORT_MS;
  while (monotonicNow() < until) {
    collectChildren();
    const children = readChildren("self").filter((pid) => !spared.includes(pid));
    if (children.length === 0) return;
    for (const pid of children) libc().kill(pid, SIGKILL);
  }
}

const LAST_RESORT_MS = 5_000;

function readChange(pid: number, word: number): ChildChange {
  if ((word & 0xff) === 0x7f) return { kind: "stopped", pid, signal: (word >> 8) & 0xff };
  const used = { cpuMs: timeMs(0) + timeMs(2) };
  const signal = word & 0x7f;
  return signal === 0
    ? { kind: "exited", pid, code: (word >> 8) & 0xff, usage: used }
    : { kind: "signaled", pid, signal, usage: used };
}

/** A `struct timeval` of the usage, as milliseconds. */
function timeMs(index: number): number {
  return Number(usage[index] ?? 0n) * 1000 + Number(usage[index + 1] ?? 0n) / 1000;
}
