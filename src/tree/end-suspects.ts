/**
 * Ends processes that only carry the id of a dead run, or may be its command: because a person has
 * named and approved each of them, and for no other reason.
 *
 * Guarantees: nobody is signalled but who was approved by pid and start time, is a suspect of that
 * run in a look of now, and is still the same on its open pidfd; never this process, its ancestors,
 * process 1, or what was kept. Non-guarantees: what a suspect has started meanwhile; it is found by
 * the next look. Clock: MONOTONIC. State after a crash: some may have been asked to end.
 */
import type { ProcessIdentity } from "../core/lease-record.ts";
import { SIGCONT, SIGKILL, SIGTERM } from "../core/signals.ts";
import type { Survivor } from "../core/survivors.ts";
import type { DeadRun } from "../core/survivors-view.ts";
import { spanMs } from "../core/time.ts";
import { identify } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { isAlive } from "../os/machine.ts";
import { wakeAfter } from "../os/timers.ts";
import { findAncestors } from "./find.ts";
import { judge, type ReadKept } from "./kill-pass.ts";
import { seeProcess } from "./scan.ts";
import { type OpenSurvivor, openSurvivor } from "./signal.ts";
import type { Scan } from "./survivors.ts";

/** After TERM; they may be innocent, and shall end well. */
export const SUSPECT_GRACE_MS = 10_000;
const AFTER_KILL_MS = 2_000;
const LOOK_MS = 20;

export interface Approved {
  readonly run: DeadRun;
  readonly readKept: ReadKept;
  readonly scan: Scan;
  readonly identities: readonly ProcessIdentity[];
  /** Milliseconds between TERM and KILL; undefined: SUSPECT_GRACE_MS. */
  readonly graceMs?: number | undefined;
}

/** @returns how many were signalled; `unread`: the processes could not be seen, so nobody was */
export async function endSuspects(approved: Approved): Promise<number | "unread"> {
  const { run, readKept, scan } = approved;
  const processes = await scan();
  if (processes === "unread") return "unread";
  const names = new Set(approved.identities.map((one) => `${one.pid}@${one.start_time}`));
  const suspects = judge({ run, processes, readKept }).suspects.filter(
    (one) => names.has(identify(one)) && one.isSignalable && !one.isAncestor,
  );
  const opened = suspects.flatMap((one) => open(one, run.runId));
  try {
    for (const { survivor } of opened) survivor.send(SIGTERM);
    for (const { survivor } of opened) survivor.send(SIGCONT);
    const left = await awaitEnd(opened, approved.graceMs ?? SUSPECT_GRACE_MS);
    for (const { survivor } of left) survivor.send(SIGKILL);
    await awaitEnd(left, AFTER_KILL_MS);
    return opened.length;
  } finally {
    for (const { survivor } of opened) survivor.close();
  }
}

interface Opened {
  readonly identity: ProcessIdentity;
  readonly survivor: OpenSurvivor;
}

function open(suspect: Survivor, runId: string): Opened[] {
  const guarded = { self: process.pid, pids: findAncestors() };
  if (guarded.pids.has(suspect.pid)) return []; // adopted by one of us since the look
  const wasBearer = carries(suspect.runPath, runId);
  const isStillProven = (): boolean => {
    const now = seeProcess(suspect.pid);
    const isSame = now !== undefined && identify(now) === identify(suspect);
    return isSame && (!wasBearer || now.runPath === "unread" || carries(now.runPath, runId));
  };
  const { pid, startTicks } = suspect;
  const survivor = openSurvivor({ pid, startTicks, isStillProven }, guarded);
  if (typeof survivor === "string") return [];
  return [{ identity: { pid, start_time: startTicks }, survivor }];
}

function carries(runPath: readonly string[] | "unread", runId: string): boolean {
  return runPath !== "unread" && runPath.includes(runId);
}

async function awaitEnd(opened: readonly Opened[], limitMs: number): Promise<readonly Opened[]> {
  const began = monotonicNow();
  let left = opened;
  for (;;) {
    left = left.filter(({ identity }) => isAlive(identity) !== "no");
    if (left.length === 0 || spanMs(began, monotonicNow()) >= limitMs) return left;
    await new Promise<void>((resolve) => {
      wakeAfter(LOOK_MS, resolve);
    });
  }
}
