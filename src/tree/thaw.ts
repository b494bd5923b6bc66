/**
 * Continues those that a freeze has stopped. Refuses to know when.
 *
 * Always: nobody else is continued; each is known by pid and start and proven once more on its open
 * pidfd (signal.ts); trouble with one costs nobody else the signal. Clock: none. State after a
 * crash: some go on, and the guard was told of all of them.
 */
import type { ProcessIdentity } from "../core/lease-record.ts";
import { SIGCONT } from "../core/signals.ts";
import { faultPoint } from "../os/faults.ts";
import { readStat } from "../os/proc.ts";
import type { Stopped } from "./freeze-walk.ts";
import { protect, type Protected, signalMember } from "./signal.ts";
import type { Tree } from "./tree.ts";

/** One that was stopped, and its name in the list. */
export type NamedStop = readonly [string, ProcessIdentity];

/** @returns the names of those that go on, or are gone; the others are worth another try */
export function continueStopped(
  tree: Tree,
  those: readonly NamedStop[],
  onFault: (name: string, error: unknown) => void,
): string[] {
  // Who was kept since we have stopped it is nobody's to continue but ours.
  const guarded = protect({ ...tree.view([]), kept: new Set() });
  const done: string[] = [];
  those.forEach(([name, identity], index) => {
    try {
      faultPoint("tree.thaw", { pid: identity.pid, count: those.length - index });
      if (isContinued(identity, guarded)) done.push(name);
    } catch (error) {
      onFault(name, error);
    }
  });
  return done;
}

function isContinued(
  { pid, start_time: startTicks }: ProcessIdentity,
  guarded: Protected,
): boolean {
  const row = { pid, ppid: 0, startTicks, state: "T", isWatchdog: false };
  const result = signalMember(row, SIGCONT, guarded);
  if (result !== "gone") return result === "sent";
  // No descriptor for it (EMFILE) looks like that, too.
  return readStat(pid)?.startTicks !== startTicks;
}

/** A parent that goes on first would hear that its child is stopped (wait(2)). */
export function leavesFirst(stopped: Stopped): readonly NamedStop[] {
  const depths = new Map<number, number>();
  return [...stopped]
    .map((one) => ({ one, depth: depthOf(one[1].pid, depths) }))
    .toSorted((some, other) => other.depth - some.depth)
    .map(({ one }) => one);
}

/** Steps up to process 1, or to where nothing is to be read any more. */
function depthOf(pid: number, depths: Map<number, number>): number {
  const chain: number[] = [];
  const passed = new Set<number>();
  let above = pid;
  while (above > 1 && !depths.has(above) && !passed.has(above)) {
    chain.push(above);
    passed.add(above);
    above = readStat(above)?.ppid ?? 0;
  }
  let depth = depths.get(above) ?? 0;
  for (const one of chain.toReversed()) depths.set(one, (depth += 1));
  return depth;
}
