/**
 * What the processes of a tree have used: CPU time and I/O, as sums that only grow. Reads only;
 * signals nobody.
 *
 * CPU of processes that ended is counted where the kernel adds it to the parent that waited, or
 * where we collected them; a process whose parent ignores SIGCHLD takes its last sample's worth
 * with it, so a sum that falls counts as 0. I/O of a process that has ended is what it had done
 * when it was last looked at. Clock: MONOTONIC, handed in.
 */
import type { TreeUse } from "../core/progress.ts";
import type { MonotonicAt } from "../core/time.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { readIoBytes, readStat, TICK_MS } from "../os/proc.ts";

export interface UsedTree {
  members(): readonly ProcessRow[];
  /** CPU of children that were collected so far. */
  collectedCpuMs(): number;
}

export interface RawUse {
  readonly cpuMs: number;
  readonly ioBytes: number;
}

/** As of now: what the living have used, and what is known of the others. */
export function measureTree(tree: UsedTree): RawUse {
  let cpuMs = tree.collectedCpuMs();
  let ioBytes = 0;
  for (const row of tree.members()) {
    const stat = readStat(row.pid);
    // A nested watchdog's own beats are no work; what its children used and it collected is.
    const own = row.isWatchdog ? 0 : (stat?.ownTicks ?? 0);
    cpuMs += (own + (stat?.waitedTicks ?? 0)) * TICK_MS;
    // EACCES: a process of other rights; its CPU time still shows whether it works.
    ioBytes += row.isWatchdog ? 0 : (readIoBytes(row.pid) ?? 0);
  }
  return { cpuMs, ioBytes };
}

/** What came to a sum between two looks. */
export function usedBetween(before: RawUse, now: RawUse): RawUse {
  return {
    cpuMs: Math.max(0, now.cpuMs - before.cpuMs),
    ioBytes: Math.max(0, now.ioBytes - before.ioBytes),
  };
}

/** Measures a tree again and again, and remembers the last time. */
export class TreeMeter {
  readonly #tree: UsedTree;
  #raw: RawUse = { cpuMs: 0, ioBytes: 0 };
  #last: TreeUse;

  /** @param startedAt  when it had used nothing */
  constructor(tree: UsedTree, startedAt: MonotonicAt) {
    this.#tree = tree;
    const nothing = { cpuMs: 0, ioBytes: 0, windowMs: 0, windowCpuMs: 0, windowIoBytes: 0 };
    this.#last = { measuredMs: startedAt, ...nothing };
  }

  measure(now: MonotonicAt): TreeUse {
    const raw = measureTree(this.#tree);
    const { cpuMs, ioBytes } = usedBetween(this.#raw, raw);
    this.#raw = raw;
    this.#last = {
      measuredMs: now,
      cpuMs: this.#last.cpuMs + cpuMs,
      ioBytes: this.#last.ioBytes + ioBytes,
      windowMs: now - this.#last.measuredMs,
      windowCpuMs: cpuMs,
      windowIoBytes: ioBytes,
    };
    return this.#last;
  }
}
