/**
 * The leases of a run, from their grant (A9) to their release (R2, R5): the open descriptors that
 * the kernel's locks hang on, and the records that say whose they are.
 *
 * Guarantees: no record is written that names another run or generation, or that lies beside a lock
 * file which is not ours; after `close` nothing here touches a file of the keys. Non-guarantees:
 * that R2 gets through (the journal's word counts as much, and a lock that is free beside an empty
 * tree is `dead`). Clock: the wall clock, for people. Crash behaviour: the kernel frees the locks;
 * before R2 the records name a dead owner, after it the leases are free.
 */
import { closeSync } from "node:fs";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { LeaseRecord } from "../core/lease-record.ts";
import { wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import type { FoundOwner } from "./beat/events.ts";
import { decideStanding, type Standing } from "./beat/standing.ts";
import { isThePath } from "./files/lock-file.ts";
import { textOf } from "./files/own-file.ts";
import type { LeasePlace } from "./files/places.ts";
import { readRecord, writeRecord } from "./files/record-file.ts";

/** One granted lease; fits `BeatLease`. */
export interface HeldLease {
  readonly key: LeaseKey;
  readonly generation: number;
  readonly place: LeasePlace;
  /** As written in A8. */
  readonly record: LeaseRecord;
  readonly lockFd: number;
  readonly slotFd: number;
  /** Where the record before was put that could not be read; undefined: there was none. */
  readonly setAside?: string | undefined;
}

export type HeldCheck =
  | { readonly kind: "ours" }
  | { readonly kind: "lost"; readonly key: LeaseKey; readonly found: FoundOwner };

/** What R2 could not write down. */
export interface UnreleasedKey {
  readonly key: LeaseKey;
  /** The record is that of another run: there is nothing of ours to release. */
  readonly isLost: boolean;
  readonly reason: string;
}

export class HeldLeases {
  readonly leases: readonly HeldLease[];
  /** The sequence of the first beat, which A8 has written: `firstSequence` of `startBeat`. */
  readonly firstBeat: number;
  readonly #kept: number[] = [];
  #isOpen = true;

  constructor(leases: readonly HeldLease[], firstBeat: number) {
    this.leases = leases;
    this.firstBeat = firstBeat;
  }

  /**
   * The first lease whose record names another run or generation, if any. A record that is missing
   * or damaged under our own lock is no loss: the heartbeat writes it again.
   */
  check(): HeldCheck {
    for (const lease of this.leases) {
      const standing = standingOf(lease);
      if (standing.kind === "lost") return { kind: "lost", key: lease.key, found: standing.found };
    }
    return { kind: "ours" };
  }

  /**
   * R2: writes that each lease is released, same generation. One that is lost, or whose lock file
   * is not ours any more, is skipped: the next owner's record must not be touched.
   *
   * @returns what was skipped or could not be written; never throws
   * Blocks: two fsyncs for each lease. Safe to repeat: yes.
   */
  markReleased(): UnreleasedKey[] {
    return this.leases.flatMap((lease) => {
      try {
        const unreleased = this.#release(lease);
        return unreleased === undefined ? [] : [{ key: lease.key, ...unreleased }];
      } catch (error) {
        return [{ key: lease.key, isLost: false, reason: textOf(error) }];
      }
    });
  }

  #release(lease: HeldLease): Omit<UnreleasedKey, "key"> | undefined {
    const { place, generation } = lease;
    faultPoint("release.R2", { key: renderKey(lease.key), generation, isReleased: false });
    const reading = readRecord(place.record);
    const standing = standingOf(lease, reading);
    if (standing.kind === "lost") {
      return { isLost: true, reason: `lease.json is of another run (${standing.because})` };
    }
    if (standing.kind === "unknown") {
      return { isLost: false, reason: "lease.json is of a newer version" };
    }
    const descriptors = [lease.lockFd, ...this.#kept];
    if (!descriptors.some((fd) => isThePath(fd, place.lock))) {
      return { isLost: false, reason: "the lock file is missing or was replaced" };
    }
    // The heartbeat may have written it again since, with another lock inode.
    const record = reading.kind === "read" ? reading.record : lease.record;
    const released_at = new Date(wallNow()).toISOString();
    writeRecord(place.record, { ...record, state: "released", released_at });
    return undefined;
  }

  /**
   * R5: closes the slots and then the locks, which frees the leases. Safe to repeat.
   *
   * @param beat  how R0 ended. A heartbeat that did not answer may still write to its slots: they
   *   stay open until the process ends, because another file would get their numbers
   * @throws the error of an injected fault, with everything closed
   */
  close(beat: "stopped" | "abandoned" = "stopped"): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      for (const { key, generation } of this.leases) {
        faultPoint("release.R5", { key: renderKey(key), generation, isLocked: true });
      }
    } finally {
      const slots = beat === "stopped" ? this.leases.map(({ slotFd }) => slotFd) : [];
      const locks = this.leases.map(({ lockFd }) => lockFd);
      for (const fd of [...slots, ...locks, ...this.#kept]) closeQuietly(fd);
    }
  }

  /** A descriptor that must stay open as long as the leases: a lock that was got back. */
  keepDescriptor(fd: number): void {
    this.#kept.push(fd);
  }
}

function standingOf(lease: HeldLease, reading = readRecord(lease.place.record)): Standing {
  return decideStanding(reading, lease.record);
}

/** For descriptors whose close cannot fail in a way that matters. */
export function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // EIO: close(2) gives the descriptor and its lock up all the same. EBADF: it is closed already.
  }
}
