/**
 * The lock and the fence of one key in the hands of a repair: while it has them nobody gets the
 * key, and no fenced operation begins. Knows nothing of evidence.
 *
 * Guarantees: what is handed out was the file that the path leads to, and is let go in any case.
 * Non-guarantees: an order among those who wait; a repair asks again and again and never queues.
 * Clock: MONOTONIC. Crash behaviour: the kernel frees both; empty files remain and are nobody's.
 */
import type { NamedProcess } from "../core/run-record.ts";
import { monotonicNow } from "../os/clock.ts";
import { findLockHolders } from "../os/lock-holders.ts";
import { wakeAfter } from "../os/timers.ts";
import { Fences } from "../lease/claim/fences.ts";
import { lockAll, type LockedKey, releaseLocks } from "../lease/claim/key-locks.ts";
import { isThePath } from "../lease/files/lock-file.ts";
import type { LeasePlace } from "../lease/files/places.ts";

/** A reader's momentary LOCK_SH is over by then. */
const SHORT_MS = 200;
const FENCE_MS = 5_000;
const PAUSE_MS = 20;

export interface KeyHold {
  readonly place: LeasePlace;
  /** `device:inode` of the lock file. */
  readonly lockInode: string;
  /** Whether the path still leads to what is locked. */
  isThere(): boolean;
}

export type KeyRefusal =
  | { readonly kind: "lock-busy" }
  | { readonly kind: "lock-unaskable"; readonly reason: string }
  /** Who holds the fence, as far as that can be told. */
  | { readonly kind: "fenced-operation"; readonly fencedBy: readonly NamedProcess[] };

/**
 * Acts while lock and fence are ours.
 *
 * @param waitMs  how long it is asked for the lock
 * @returns what the act returns, or why it could not be had
 * @throws WatchdogError "lease.refused", "lease.unusable"; what the act throws
 */
export async function withKey<T>(
  place: LeasePlace,
  act: (hold: KeyHold) => Promise<T>,
  waitMs: number = SHORT_MS,
): Promise<T | KeyRefusal> {
  const lock = await takeLock(place, waitMs);
  if ("kind" in lock) return lock;
  const fences = new Fences();
  try {
    if (!(await takeFence(fences, place))) {
      return { kind: "fenced-operation", fencedBy: findLockHolders(place.fence) };
    }
    const isThere = (): boolean => isThePath(lock.fd, place.lock);
    return await act({ place, lockInode: lock.inode, isThere });
  } finally {
    fences.release();
    releaseLocks([lock]);
  }
}

async function takeLock(place: LeasePlace, waitMs: number): Promise<LockedKey | KeyRefusal> {
  const until = monotonicNow() + waitMs;
  for (;;) {
    const attempt = lockAll([place], undefined, () => undefined);
    if (attempt.kind === "unaskable") return { kind: "lock-unaskable", reason: attempt.reason };
    const [lock] = attempt.kind === "locked" ? attempt.locks : [];
    if (lock !== undefined) return lock;
    if (monotonicNow() >= until) return { kind: "lock-busy" };
    await pause();
  }
}

async function takeFence(fences: Fences, place: LeasePlace): Promise<boolean> {
  const until = monotonicNow() + FENCE_MS;
  while (fences.take([place]).length > 0) {
    if (monotonicNow() >= until) return false;
    await pause();
  }
  return true;
}

function pause(): Promise<void> {
  return new Promise((resolve) => {
    wakeAfter(PAUSE_MS, resolve);
  });
}
