/**
 * One walk over the tree from the root down that stops whoever does not stand still, as soon as it
 * is met, so that a process which lives by fork and exit has no time to go. Parents come before
 * their children, and stand still before a child is stopped: a shell that waits for its jobs must
 * not hear that one of them was stopped (WUNTRACED of wait(2)).
 *
 * Refuses to know how often to come again, and when enough is stopped (freeze.ts). Never throws for
 * trouble with one process: the others are stopped all the same. Clock: MONOTONIC, for the time
 * that a stopped parent is given. State after a crash: who was stopped stays so; the guard knows.
 */
import { GUARD_DESCRIPTOR, GUARD_MEMORY } from "../core/burial.ts";
import type { ProcessIdentity } from "../core/lease-record.ts";
import { SIGSTOP } from "../core/signals.ts";
import {
  decideChild,
  identify,
  isDead,
  type Membership,
  type ProcessRow,
  type TreeView,
} from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { holdsMemoryFileAt } from "../os/proc-look.ts";
import { readChildren, readStat, readThreadStates } from "../os/proc.ts";
import { MOST_PROCESSES } from "./find.ts";
import { protect, signalMember } from "./signal.ts";
import type { Tree } from "./tree.ts";

/** Those that we have stopped, by pid and start. */
export type Stopped = Map<string, ProcessIdentity>;

export interface WalkOrder {
  readonly tree: Tree;
  /** Whoever is stopped is added. */
  readonly stopped: Stopped;
  /** False: nobody is signalled, it is a look and no more. */
  readonly isToStop: boolean;
  /** Whether a parent that does not stand still yet keeps its children from being stopped. */
  readonly isPatient: boolean;
  /**
   * Dead children that were seen already: they are not read again. Right as long as nobody collects
   * them: children of ours and of parents that stand still, within one turn of the main loop.
   */
  readonly dead: Map<number, ProcessRow>;
  readonly onFault: (name: string, error: unknown) => void;
}

export interface WalkSight {
  /** Every member, the dead too. The state is that of the thread that is most awake. */
  readonly rows: readonly ProcessRow[];
  /** Those of them that did not stand still when they were met. */
  readonly moving: readonly ProcessRow[];
  /**
   * Those that were stopped and wait in the kernel: one that forks there may bring forth a child.
   */
  readonly held: readonly ProcessRow[];
  /** How many were stopped that were not before. */
  readonly freshCount: number;
  /** Somebody may have been overlooked: a process was gone between two reads. */
  readonly isTorn: boolean;
}

/** How long one walk stands by parents that are about to stand still. */
const STAND_BY_MS = 10;

export function walkAndStop(order: WalkOrder): WalkSight {
  const walk = new Walk(order);
  walk.perform();
  return walk;
}

interface Parent {
  readonly pid: number | "self";
  readonly membership: Membership | undefined;
  /** Undefined: it stood still when it was met, or will never do so. */
  readonly isAwaited: boolean;
}

class Walk implements WalkSight {
  readonly rows: ProcessRow[] = [];
  readonly moving: ProcessRow[] = [];
  readonly held: ProcessRow[] = [];
  freshCount = 0;
  isTorn = false;
  readonly #order: WalkOrder;
  readonly #seen = new Set<number>([process.pid]);
  readonly #verified = new Set<string>();
  readonly #parents: Parent[] = [{ pid: "self", membership: undefined, isAwaited: false }];
  #standByMs = STAND_BY_MS;

  constructor(order: WalkOrder) {
    this.#order = order;
  }

  perform(): void {
    for (const parent of this.#parents) {
      if (this.#seen.size > MOST_PROCESSES) {
        this.isTorn = true;
        return;
      }
      if (this.#mayDescend(parent)) this.#meetChildren(parent);
    }
    this.#order.tree.noteLook(this.rows);
  }

  /** The youngest come last in the list of the kernel, and may be gone first. */
  #meetChildren(parent: Parent): void {
    const standing: ProcessRow[] = [];
    for (const pid of readChildren(parent.pid).toReversed()) {
      const row = this.#lookAt(pid);
      if (row === undefined) continue;
      if (standsStill(row.state) || this.#isHeldInKernel(row)) standing.push(row);
      else this.#meet(row, parent, this.#order.tree.view([row]));
    }
    if (standing.length === 0) return;
    const view = this.#order.tree.view(standing);
    for (const row of standing) this.#meet(row, parent, view);
  }

  #lookAt(pid: number): ProcessRow | undefined {
    const known = this.#order.dead.get(pid);
    const row = known ?? lookAtThreads(pid);
    // Handed over to another parent while we look: it was, or will be, met there.
    if (row === undefined || this.#seen.has(pid)) this.isTorn = true;
    if (row === undefined || this.#seen.has(pid)) return undefined;
    this.#seen.add(pid);
    return row;
  }

  #meet(row: ProcessRow, parent: Parent, view: TreeView): void {
    const membership = decideChild(view, row, parent.membership);
    if (membership.kind === "spared") return;
    this.rows.push(row);
    if (isDead(row)) return void this.#order.dead.set(row.pid, row);
    if (isGuard(row))
      return void this.#parents.push({ pid: row.pid, membership, isAwaited: false });
    const isHeld = this.#isHeldInKernel(row);
    const isStill = standsStill(row.state) || isHeld;
    if (isHeld) this.held.push(row);
    if (!isStill) this.moving.push(row);
    // Sent again to who waits in the kernel: a CONT meanwhile has taken back the first one.
    const end = standsStill(row.state) ? "still" : this.#stop(row, view);
    if (end === "gone") return;
    this.#parents.push({ pid: row.pid, membership, isAwaited: !isStill && end === "sent" });
  }

  #stop(row: ProcessRow, view: TreeView): "sent" | "gone" | "refused" | "faulty" | "unasked" {
    const { stopped, isToStop, onFault } = this.#order;
    if (!isToStop) return "unasked";
    const name = identify(row);
    try {
      faultPoint("tree.freeze", { pid: row.pid, count: stopped.size });
      const guarded = { ...protect(view), verified: this.#verified };
      const result = signalMember(row, SIGSTOP, guarded);
      if (result === "gone") this.isTorn = true;
      if (result === "sent" && !stopped.has(name)) {
        stopped.set(name, { pid: row.pid, start_time: row.startTicks });
        this.freshCount += 1;
      }
      return result;
    } catch (error) {
      onFault(name, error);
      return "faulty";
    }
  }

  /**
   * In an uninterruptible wait, and stopped by us before: it acts on that before it goes on (a
   * parent inside vfork stands there for as long as its child does, vfork(2)).
   */
  #isHeldInKernel(row: ProcessRow): boolean {
    return row.state === "D" && this.#order.stopped.has(identify(row));
  }

  /** One that cannot be stopped is no reason to let its children go on. */
  #mayDescend({ pid, isAwaited }: Parent): boolean {
    if (!isAwaited || pid === "self") return true;
    const began = monotonicNow();
    let isStill = false;
    do {
      const state = lookAtThreads(pid)?.state ?? "X";
      isStill = standsStill(state) || state === "D";
    } while (!isStill && monotonicNow() - began < this.#standByMs);
    this.#standByMs -= monotonicNow() - began;
    return isStill || !this.#order.isPatient;
  }
}

/** Stopped by a signal, or by a debugger; or dead. */
function standsStill(state: string): boolean {
  return state === "T" || state === "t" || state === "Z" || state === "X";
}

/**
 * That of a nested run: it only waits for the end of its watchdog. If it was stopped when ours is
 * killed, nobody would ever continue it: burials leave guards to themselves (core/survivors.ts).
 */
function isGuard({ pid }: ProcessRow): boolean {
  return holdsMemoryFileAt(pid, GUARD_DESCRIPTOR, GUARD_MEMORY);
}

/** A process stands still when all of its threads do; one of them may outlive the first. */
function lookAtThreads(pid: number): ProcessRow | undefined {
  const stat = readStat(pid);
  if (stat === undefined) return undefined;
  const states = stat.threads > 1 ? [stat.state, ...readThreadStates(pid)] : [stat.state];
  const state =
    states.find((one) => !standsStill(one) && one !== "D") ??
    ["D", "T", "t", "Z"].find((one) => states.includes(one)) ??
    stat.state;
  return { pid, ppid: stat.ppid, startTicks: stat.startTicks, state, isWatchdog: false };
}
