/**
 * Who was born below processes that are being stopped, since the look at all of them.
 *
 * A fork(2) that has begun before the STOP goes on to its end (since Linux 4.20; before that it was
 * begun again after the STOP), so the children of a parent are all of them only once it stands
 * still. Clock: MONOTONIC. Blocks its thread, for as long as its caller says.
 */
import type { SeenProcess } from "../core/survivors-view.ts";
import type { MonotonicAt } from "../core/time.ts";
import { identify } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { readChildren, readThreadStates } from "../os/proc.ts";
import { pauseThread } from "../os/timers.ts";
import { seeProcess } from "./scan.ts";

const LOOK_MS = 1;

export interface Birth {
  readonly processes: readonly SeenProcess[];
  /** Whose children are looked for. */
  readonly parents: readonly SeenProcess[];
  /** Who was stopped and may still be inside fork(2). */
  readonly moving: readonly SeenProcess[];
  readonly until: MonotonicAt;
}

/** Until somebody was born, or all stand still, or the time is up: then none counts as moving. */
export function findBorn({
  processes,
  parents,
  moving,
  until,
}: Birth): Pick<Birth, "processes" | "moving"> {
  let [left, below] = [moving, parents];
  for (;;) {
    // Before their children are read: whoever stands still by then has no more of them.
    left = left.filter(isMoving);
    const now = withChildrenOf(below, processes);
    if (monotonicNow() >= until) return { processes: now, moving: [] };
    if (left.length === 0 || now !== processes) return { processes: now, moving: left };
    below = left;
    pauseThread(LOOK_MS);
  }
}

/** Whether one of its threads neither stands still nor has ended. */
function isMoving({ pid }: SeenProcess): boolean {
  return readThreadStates(pid).some((state) => !/[TtZXx]/.test(state));
}

/** With what was born since the look, below these; the same list where nothing was. */
function withChildrenOf(
  parents: readonly SeenProcess[],
  processes: readonly SeenProcess[],
): readonly SeenProcess[] {
  const byPid = new Map(processes.map((seen) => [seen.pid, seen]));
  let isNew = false;
  for (const parent of parents) {
    for (const pid of readChildren(parent.pid)) {
      const child = seeQuietly(pid);
      if (child === undefined || isSame(byPid.get(pid), child)) continue;
      byPid.set(pid, child);
      isNew = true;
    }
  }
  return isNew ? [...byPid.values()] : processes;
}

function isSame(one: SeenProcess | undefined, other: SeenProcess): boolean {
  return one !== undefined && identify(one) === identify(other);
}

export function seeQuietly(pid: number): SeenProcess | undefined {
  return lookQuietly(() => seeProcess(pid));
}

export function lookQuietly<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined; // EMFILE, ENFILE: not proven now; the next pass asks again
  }
}
