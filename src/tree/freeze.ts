/**
 * Makes a tree stand still, keeps it so, and lets it go on again. Refuses to know why.
 *
 * Guarantees: nobody is stopped but members (never helpers, inborn children, what was kept, and
 * what is below those), and of these not the guards of nested runs, which only wait; nobody is
 * continued but whom this has stopped, so that a process which was stopped before stays so. "All
 * stand still" rests on a walk in which every member stood still, none of them was new, none had
 * died since the walk before, and none was gone between two reads: whoever ran meanwhile would have
 * left one of these traces. Nothing here throws, and trouble with one process costs nobody else the
 * signal.
 *
 * Non-guarantees: a process in an uninterruptible wait counts as standing still after HELD_MS,
 * because it cannot run a program before it acts on the STOP; one that waits longer than that
 * inside fork(2) may still bring forth a child, and a CONT from outside lets one go on: both are
 * found within a second and stopped.
 *
 * Walks come in short bursts without a pause, because a process that lives by fork and exit must be
 * met between the two; between the bursts the main loop handles signals. Clock: MONOTONIC. State
 * after a crash of watchdog: who was stopped stays so, and the guard was told who that is.
 */
import type { ProcessIdentity } from "../core/lease-record.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { identify, isDead, type ProcessRow } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { type Stopped, walkAndStop, type WalkSight } from "./freeze-walk.ts";
import { continueStopped, leavesFirst, type NamedStop } from "./thaw.ts";
import type { Tree } from "./tree.ts";

/** One burst of walks, and the pause after it, which grows as long as nothing changes. */
const BURST_MS = 20;
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;
/**
 * Who waits in the kernel for so long is not about to come out of a fork(2), which nothing but a
 * lock or memory holds up there. A parent inside vfork(2) waits until its child goes on.
 */
const HELD_MS = 250;
/** A parent that does not stand still by then keeps its children from being stopped no longer. */
const PATIENT_MS = 500;
/** Who does not stand still by then is named; it goes on all the same. */
export const INCOMPLETE_AFTER_MS = 5_000;
/** So often a tree that stands still is looked at again, and one that does not after that. */
export const LOOK_AGAIN_MS = 1_000;
/** Who could not be continued, through trouble of our own, is tried again. */
const CONTINUE_AGAIN_MS = 100;

export interface FreezeHooks {
  /**
   * `frozen` names others than before. Told before the first signal, too, with those that are about
   * to be stopped: whoever notes it for the guard never knows less than is true.
   */
  onListed?(): void;
  /** All stand still, anew; how many there are that live. */
  onFrozen(count: number): void;
  /** Once until all stand still: who has not for INCOMPLETE_AFTER_MS (EPERM, R). */
  onIncomplete(rows: readonly ProcessRow[]): void;
  onBug(error: unknown): void;
}

export class TreeFreeze {
  readonly #tree: Tree;
  readonly #hooks: FreezeHooks;
  readonly #stopped: Stopped = new Map();
  #intended: Stopped = new Map();
  /** Of the last walk: who was there, and whether it was dead. */
  #known: ReadonlyMap<string, boolean> = new Map();
  /** With whom trouble was told already. */
  readonly #faulty = new Set<string>();
  /** Who waits in the kernel, and since when as far as was seen. */
  #heldSince: ReadonlyMap<string, MonotonicAt> = new Map();
  #toldList = "";
  #isActive = false;
  #isOver = false;
  #isStill = false;
  #isNamed = false;
  #movingSince = 0 as MonotonicAt;
  #pauseMs = FIRST_PAUSE_MS;
  #timer: Timer | undefined;

  constructor(tree: Tree, hooks: FreezeHooks) {
    this.#tree = tree;
    this.#hooks = hooks;
  }

  /** From `freeze` to `thaw` or `end`. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /** Whom we have stopped, or are about to, and not continued. */
  get frozen(): readonly ProcessIdentity[] {
    return [...new Map([...this.#intended, ...this.#stopped]).values()];
  }

  /** Begins at once, with one burst; safe to repeat. */
  freeze(): void {
    if (this.#isActive || this.#isOver) return;
    this.#timer?.cancel();
    this.#isActive = true;
    this.#known = new Map();
    this.#heldSince = new Map();
    this.#faulty.clear();
    this.#beginMoving();
    this.#attempt(() => this.#announce());
    this.#burst();
  }

  /** Continues whom we have stopped, leaves before their parents; safe to repeat. */
  thaw(): void {
    this.#stopWalks();
    this.#continueAll();
  }

  /** Timers off; nobody is continued, and nobody stopped any more. */
  end(): void {
    this.#isOver = true;
    this.#stopWalks();
  }

  #stopWalks(): void {
    this.#isActive = false;
    this.#intended = new Map();
    this.#timer?.cancel();
  }

  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#hooks.onBug(error);
    }
  }

  /** If we die between the signals, the guard knows of all that were there at the beginning. */
  #announce(): void {
    for (const { pid, startTicks } of this.#walk(new Map(), false).moving) {
      this.#intended.set(identify({ pid, startTicks }), { pid, start_time: startTicks });
    }
    this.#tellList();
  }

  #tellList(): void {
    const list = this.frozen.map(({ pid, start_time }) => `${pid}@${start_time}`).join(" ");
    if (list === this.#toldList) return;
    this.#toldList = list;
    this.#attempt(() => this.#hooks.onListed?.());
  }

  #beginMoving(): void {
    this.#isStill = false;
    this.#isNamed = false;
    this.#movingSince = monotonicNow();
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  #burst(): void {
    const until = monotonicNow() + BURST_MS;
    const dead = new Map<number, ProcessRow>();
    let isWorthwhile = true;
    this.#attempt(() => {
      while (isWorthwhile && monotonicNow() < until) {
        isWorthwhile = this.#round(this.#walk(dead, true));
      }
    });
    this.#tellList();
    if (!this.#isActive) return;
    this.#timer = wakeAfter(this.#nextPauseMs(), () => this.#burst());
  }

  #nextPauseMs(): number {
    if (this.#isStill || this.#isNamed) return LOOK_AGAIN_MS;
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    return this.#pauseMs / 2;
  }

  #walk(dead: Map<number, ProcessRow>, isToStop: boolean): WalkSight {
    return walkAndStop({
      tree: this.#tree,
      stopped: this.#stopped,
      isToStop,
      isPatient: this.#isStill || this.#movingMs() < PATIENT_MS,
      dead,
      onFault: this.#onFault,
    });
  }

  /** Told once of each: it is tried again and again. */
  readonly #onFault = (name: string, error: unknown): void => {
    if (!this.#faulty.has(name)) this.#hooks.onBug(error);
    this.#faulty.add(name);
  };

  #movingMs(): number {
    return spanMs(this.#movingSince, monotonicNow());
  }

  /** @returns whether another walk right away makes sense: something has changed */
  #round(sight: WalkSight): boolean {
    const isFamiliar = sight.rows.every((row) => {
      const wasDead = this.#known.get(identify(row));
      return isDead(row) ? wasDead === true : wasDead !== undefined;
    });
    this.#known = new Map(sight.rows.map((row) => [identify(row), isDead(row)]));
    const isHeldForLong = this.#noteHeld(sight);
    if (sight.moving.length === 0 && isFamiliar && !sight.isTorn && isHeldForLong) {
      this.#reach(sight);
      return false;
    }
    if (sight.moving.length > 0 && this.#isStill) this.#beginMoving();
    if (sight.freshCount > 0) this.#pauseMs = FIRST_PAUSE_MS;
    if (!this.#isStill && !this.#isNamed && this.#movingMs() >= INCOMPLETE_AFTER_MS) {
      this.#isNamed = true;
      this.#hooks.onIncomplete(sight.moving);
    }
    return this.#isActive && (sight.freshCount > 0 || sight.isTorn || !isFamiliar);
  }

  /** @returns whether none of them came there just now */
  #noteHeld({ held }: WalkSight): boolean {
    const now = monotonicNow();
    const before = this.#heldSince;
    this.#heldSince = new Map(held.map(identify).map((name) => [name, before.get(name) ?? now]));
    return [...this.#heldSince.values()].every((since) => spanMs(since, now) >= HELD_MS);
  }

  #reach({ rows }: WalkSight): void {
    this.#intended = new Map();
    this.#forgetOthers();
    if (this.#isStill) return;
    this.#isStill = true;
    this.#hooks.onFrozen(rows.filter((row) => !isDead(row)).length);
  }

  /** The dead; and who was taken for a member, because it could not be read in its exec. */
  #forgetOthers(): void {
    for (const [name, isGone] of this.#known) if (isGone) this.#stopped.delete(name);
    const others = [...this.#stopped].filter(([name]) => !this.#known.has(name));
    if (others.length > 0) this.#continue(others);
  }

  #continueAll(): void {
    this.#attempt(() => this.#continue(leavesFirst(this.#stopped)));
    this.#tellList();
    if (this.#stopped.size === 0 || this.#isOver) return;
    this.#timer = wakeAfter(CONTINUE_AGAIN_MS, () => this.#continueAll());
  }

  #continue(those: readonly NamedStop[]): void {
    for (const name of continueStopped(this.#tree, those, this.#onFault)) {
      this.#stopped.delete(name);
    }
  }
}
