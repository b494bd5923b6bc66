/**
 * Processes that a check-up starts: few, short, and its own. Knows nothing of what they prove.
 *
 * Always: they get no variable and no descriptor of the caller's; each has a limit, and is ended
 * and collected before the check-up goes on. Clock: MONOTONIC. State after a crash: the child finds
 * its standard input closed, and ends.
 */
import { closeSync, constants, openSync } from "node:fs";
import { SIGKILL } from "../core/signals.ts";
import { spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { close, moveHigh, NONE } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { becomeReaper, type ChildChange, collectChildren } from "../os/reaper.ts";
import { type Redirection, spawnProcess, type SpawnResult } from "../os/spawn.ts";
import { nameErrno, POLLIN, sys } from "../os/sys.ts";
import { pauseThread } from "../os/timers.ts";

/** For a loaded machine. */
export const CHILD_LIMIT_MS = 15_000;
const LOOK_MS = 2;

/** A program that needs this to find its libraries needs it here, too (ld.so(8)). */
const NEEDED = /^LD_LIBRARY_PATH=/;

export interface ChildRequest {
  readonly argv: readonly string[];
  /** Of 0, 1 and more; those of 0 to 2 that are missing lead nowhere. */
  readonly redirections: readonly Redirection[];
}

export function startChild(request: ChildRequest, inherited: Inheritance): SpawnResult {
  becomeReaper();
  const nowhere = openSync("/dev/null", constants.O_RDWR);
  try {
    const given = new Set(request.redirections.map(({ target }) => target));
    const missing = [0, 1, 2].filter((target) => !given.has(target));
    const encoder = new TextEncoder();
    const environment = inherited.environment.filter((entry) =>
      NEEDED.test(new TextDecoder().decode(entry)),
    );
    return spawnProcess(
      {
        argv: request.argv.map((word) => encoder.encode(word)),
        environment,
        group: "own-session",
        redirections: [
          ...missing.map((target) => ({ target, source: nowhere })),
          ...request.redirections,
        ],
      },
      { ...inherited, descriptors: [] },
    );
  } finally {
    closeSync(nowhere);
  }
}

/** @returns "late": it had to be killed */
export function awaitChild(pid: number, limitMs = CHILD_LIMIT_MS): ChildChange | "late" {
  return waitFor(pid, limitMs) ?? killChild(pid) ?? "late";
}

/** Kills a child of ours that was not collected yet, so that the pid is still its own. */
export function killChild(pid: number): ChildChange | undefined {
  sys.kill(pid, SIGKILL);
  const ended = waitFor(pid, CHILD_LIMIT_MS);
  return ended?.kind === "signaled" && ended.signal === SIGKILL ? undefined : ended;
}

function waitFor(pid: number, limitMs: number): ChildChange | undefined {
  const began = monotonicNow();
  while (spanMs(began, monotonicNow()) < limitMs) {
    const change = collectChildren().find((one) => one.pid === pid && one.kind !== "stopped");
    if (change !== undefined) return change;
    pauseThread(LOOK_MS);
  }
  return undefined;
}

/** Under numbers that no redirection overwrites. @throws where there is no room for descriptors */
export function makePipe(): { readEnd: number; writeEnd: number } {
  const ends = sys.pipe();
  if (typeof ends === "number") throw new Error(`no pipe can be made: ${nameErrno(ends)}`);
  const moved = { readEnd: moveHigh(ends.readEnd), writeEnd: moveHigh(ends.writeEnd) };
  if (moved.readEnd !== NONE && moved.writeEnd !== NONE) return moved;
  close(moved.readEnd);
  close(moved.writeEnd);
  throw new Error("no pipe can be made: no descriptors are left");
}

/** The first bytes that a child says, so many at most; empty: nothing within the limit. */
export function hearChild(fd: number, mostBytes: number): string {
  if (sys.poll([[fd, POLLIN]], CHILD_LIMIT_MS, []) <= 0) return "";
  const bytes = new Uint8Array(mostBytes);
  const count = sys.read(fd, bytes, mostBytes);
  return count <= 0 ? "" : new TextDecoder().decode(bytes.subarray(0, count));
}
