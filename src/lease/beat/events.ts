/**
 * What the heartbeat tells main, and the leases that it is given: plain data that goes from thread
 * to thread. Knows no file and no clock.
 */
import type { LeaseKey } from "../../core/lease-key.ts";
import type { LeaseRecord } from "../../core/lease-record.ts";
import type { LeasePlace } from "../files/places.ts";

/** One granted lease, as the grant has made it. */
export interface BeatLease {
  readonly key: LeaseKey;
  readonly place: LeasePlace;
  readonly generation: number;
  /** As written at the grant: what a record that went missing is written again from. */
  readonly record: LeaseRecord;
  /** The locked descriptor of the lock file. Never closed and never unlocked by the heartbeat. */
  readonly lockFd: number;
  readonly slotFd: number;
}

/** Who stands in a record that is not ours any more; null where it could not be read. */
export interface FoundOwner {
  readonly generation: number | null;
  readonly run_id: string | null;
}

export type BeatEvent =
  /** Another generation or run id stands in the record. Told once per key; no more beats for it. */
  | { readonly kind: "lost"; readonly key: LeaseKey; readonly found: FoundOwner }
  /** The lock file was gone or replaced; this descriptor holds the new one, and must stay open. */
  | { readonly kind: "lock-restored"; readonly key: LeaseKey; readonly fd: number }
  /** The record or the slot was gone or unreadable under our own lock, and was written again. */
  | { readonly kind: "rewritten"; readonly key: LeaseKey; readonly what: "record" | "slot" }
  /** The first beat of this lease that failed: a warning, once per lease and run. */
  | { readonly kind: "beat-missed"; readonly key: LeaseKey; readonly reason: string }
  /** The third failure in a row, once until it recovers. */
  | { readonly kind: "beat-failing"; readonly key: LeaseKey; readonly reason: string }
  /** The first good beat after `beat-failing`. */
  | { readonly kind: "recovered"; readonly key: LeaseKey }
  /** The thread died and is started again, at most MOST_RESTARTS times in a run. */
  | { readonly kind: "thread-restarted"; readonly attempt: number; readonly reason: string }
  /** No more beats: the lease stays ours by the kernel's lock, but will look `stalled`. */
  | { readonly kind: "thread-gone"; readonly reason: string };
