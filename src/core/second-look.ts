/**
 * The second look of a newcomer, at a key that it could have: whether others work in the checkout
 * that the key stands for, and whether a person has only just ended a living owner of it. Pure;
 * refuses to know how processes are found and how waiting is done.
 *
 * Always: it only ever makes a newcomer refuse or wait; nobody is signalled because of it.
 */
import type { OwnerEnding } from "./evidence.ts";
import type { RepairMark } from "./lease-record.ts";
import type { WorktreeUser } from "./worktree-users.ts";

/** The clock of a repair's mark, as it stands here and now. */
export interface SecondLookClock {
  readonly bootId: string;
  readonly timeNamespace: string | null;
  /** CLOCK_MONOTONIC. */
  readonly monotonicMs: number;
}

export interface SecondLookFacts {
  /** Of whichever generation that was in this boot. */
  readonly repair: RepairMark | undefined;
  /** Of the last generation too: a repair that is at work on it may not have settled it yet. */
  readonly ownerEnding?: OwnerEnding | undefined;
  readonly cooldownMs: number;
  readonly now: SecondLookClock;
  /**
   * Who else works in the checkout. Undefined: the key stands for none, or it was not looked yet.
   * `unread`: the look failed, or took too long.
   */
  readonly users: readonly WorktreeUser[] | "unread" | undefined;
}

export type SecondLookRefusal =
  | {
      readonly kind: "refuse";
      readonly because: "worktree-in-use";
      readonly users: readonly WorktreeUser[];
    }
  | { readonly kind: "refuse"; readonly because: "worktree-unread" }
  | {
      readonly kind: "refuse";
      readonly because: "repair-cooldown";
      readonly remainingMs: number;
      readonly repair: RepairMark;
    }
  | {
      readonly kind: "refuse";
      readonly because: "repair-at-work";
      readonly pid: number;
    };

export type SecondLook = { readonly kind: "clear" } | SecondLookRefusal;

export type SecondLookReason = SecondLookRefusal["because"];

/** Decides for one key. Each refusal can end by itself: it makes sense to wait. */
export function decideSecondLook(facts: SecondLookFacts): SecondLook {
  const { repair, ownerEnding, cooldownMs, now, users } = facts;
  const remainingMs = remainingCooldown(repair, cooldownMs, now);
  if (repair !== undefined && remainingMs > 0) {
    return { kind: "refuse", because: "repair-cooldown", remainingMs, repair };
  }
  const pid = ownerEnding?.repairer;
  if (pid !== undefined) return { kind: "refuse", because: "repair-at-work", pid };
  if (users === "unread") return { kind: "refuse", because: "worktree-unread" };
  if (users === undefined || users.length === 0) return { kind: "clear" };
  return { kind: "refuse", because: "worktree-in-use", users };
}

/**
 * Milliseconds that a key is not granted for after a living owner was ended; 0: none, or they are
 * over. A mark of another boot or time namespace is over, and so is one of the future: its clock is
 * not ours.
 */
export function remainingCooldown(
  repair: RepairMark | undefined,
  cooldownMs: number,
  now: SecondLookClock,
): number {
  if (repair?.action !== "ended-owner") return 0;
  const isOurClock = repair.boot_id === now.bootId && repair.time_namespace === now.timeNamespace;
  const ageMs = now.monotonicMs - repair.monotonic_ms;
  if (!isOurClock || !(ageMs >= 0)) return 0;
  return Math.max(0, cooldownMs - ageMs);
}
