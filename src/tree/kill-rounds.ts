/**
 * Rounds of KILL until the tree is proven empty, or proven stuck: members of other rights (EPERM)
 * or in an uninterruptible wait (state D) can outlive KILL, and nobody waits for them for ever.
 *
 * Rounds come in short bursts without a pause, because a process that lives by fork and exit must
 * be met between the two; between the bursts the main loop handles signals.
 */
import { identify, type ProcessRow } from "../core/tree-members.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import type { SignalTally, Tree } from "./tree.ts";

/** One burst of rounds, and the pause after it. */
const BURST_MS = 20;
const PAUSE_MS = 2;
/** Members that survive KILL for this long are named and left (design: 10 s). */
export const STUCK_AFTER_MS = 10_000;
/** Where every one of them refused the signal, more time changes nothing. */
export const REFUSED_AFTER_MS = 1_000;

export interface KillRoundsHooks {
  collect(): void;
  /** How many processes were hit so far. */
  onHit(count: number): void;
  onEmpty(): void;
  onBug(error: unknown): void;
  onStuck(rows: readonly ProcessRow[]): void;
}

export class KillRounds {
  readonly #tree: Tree;
  readonly #hooks: KillRoundsHooks;
  readonly #hit = new Set<string>();
  #beganAt: MonotonicAt | undefined;
  #movedAt: MonotonicAt | undefined;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(tree: Tree, hooks: KillRoundsHooks) {
    this.#tree = tree;
    this.#hooks = hooks;
  }

  begin(): void {
    if (this.#beganAt !== undefined) return;
    this.#beganAt = monotonicNow();
    // One look at the whole tree: who is below the command now stays a member when its parents die.
    this.#tree.members();
    this.#burst();
  }

  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  /** A round that fails is no reason to stop killing: the next burst comes in any case. */
  #burst(): void {
    try {
      this.#burstOnce();
    } catch (error) {
      this.#hooks.onBug(error);
      this.#timer = wakeAfter(PAUSE_MS, () => this.#burst());
    }
  }

  #burstOnce(): void {
    const until = (monotonicNow() + BURST_MS) as MonotonicAt;
    let isMoving = true;
    while (!this.#isOver && isMoving && monotonicNow() < until) isMoving = this.#round();
    if (this.#isOver) return;
    if (!this.#isStuck()) this.#timer = wakeAfter(PAUSE_MS, () => this.#burst());
  }

  /** @returns whether another round right away makes sense: somebody new was hit */
  #round(): boolean {
    const tally = this.#kill();
    const fresh = tally.sent.filter((row) => !this.#hit.has(identify(row)));
    for (const row of fresh) this.#hit.add(identify(row));
    this.#hooks.onHit(this.#hit.size);
    this.#hooks.collect();
    if (this.#isOver) return false;
    if (this.#tree.isEmpty()) {
      this.#hooks.onEmpty();
      return false;
    }
    // A deep tree comes up level by level: only who was hit and does not die is stuck.
    if (fresh.length > 0) this.#movedAt = monotonicNow();
    return fresh.length > 0 || tally.sent.length + countLeft(tally) === 0;
  }

  /** Trouble with one of them is told, and is no reason to stop killing the others. */
  #kill(): SignalTally {
    const tally = this.#tree.killRound();
    for (const { error } of tally.faults) this.#hooks.onBug(error);
    return tally;
  }

  #isStuck(): boolean {
    const spentMs = spanMs(this.#movedAt ?? this.#beganAt ?? monotonicNow(), monotonicNow());
    if (spentMs < REFUSED_AFTER_MS) return false;
    const left = this.#tree.members();
    const tally = this.#kill();
    const isRefused = tally.sent.length === 0 && countLeft(tally) > 0;
    if (spentMs < STUCK_AFTER_MS && !isRefused) return false;
    this.#hooks.onStuck(left);
    return true;
  }
}

/** Those that the round could not hit. */
function countLeft({ refused, faults }: SignalTally): number {
  return refused.length + faults.length;
}
