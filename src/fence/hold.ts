/**
 * Holding the fence of leases, steps F1 to F3: while it is held nobody is granted a larger
 * generation of these keys, and it is had only by who still is, or is inside, their owner.
 *
 * Guarantees: on "held" the shared lock of every key's `fence` is ours, the file is the one at the
 * path, the record names a run around us with its number, and the lease's own lock was taken, all
 * looked at after the fence was had; on "refused" and on an error nothing is held. A wait holds
 * nothing: a grant of several keys and a fence of several keys never wait for each other.
 * Non-guarantees: that the owner lives on (then nobody is granted anything until the fence is let
 * go); anything about a key whose files the same user edits meanwhile. Clock: CLOCK_MONOTONIC.
 * Crash behaviour: the kernel frees the fence when the last process that has its descriptor is
 * gone; nothing of a key was changed.
 */
import { closeSync } from "node:fs";
import { valueOf } from "../core/environment-entries.ts";
import { WatchdogError } from "../core/errors.ts";
import {
  decideClaims,
  decideFenceLock,
  decideFenceRecord,
  type FenceClaim,
  type FenceEnvironment,
} from "../core/fence.ts";
import type { Fact } from "../core/evidence.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { LeaseRecord } from "../core/lease-record.ts";
import { askLock, inodeAt, isThePath, openLock, tryLock } from "../lease/files/lock-file.ts";
import { MOST_REPLACEMENTS, replacedTooOften, troubleWith } from "../lease/files/failure.ts";
import { type LeasePlace, placeOf } from "../lease/files/places.ts";
import { readRecord } from "../lease/files/record-file.ts";
import { isOwnerAlive } from "../lease/recorded-owner.ts";
import { monotonicNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { moveHigh, NONE } from "../os/high-descriptors.ts";
import { readMachine } from "../os/machine.ts";
import { findStateDirectory } from "../os/state-dir.ts";
import { refuseNewerFormat } from "../os/state-format.ts";
import { nameErrno } from "../os/sys.ts";
import { wakeAfter } from "../os/timers.ts";
import { type FenceRefusal, refuseFence } from "./refusal.ts";

export type { FenceRefusal } from "./refusal.ts";

/** A fence that a grant holds is tried for again after so long. */
const TRY_MS = 20;

export interface HoldRequest {
  /** Absolute; it is looked at, and nothing is made in it. */
  readonly stateDirectory: string;
  /** Of the process that asks, as bytes: its run path, keys and numbers. */
  readonly environment: readonly Uint8Array[];
  /** `--key`, looked for through the whole run path; empty: all leases of the innermost run. */
  readonly keys: readonly LeaseKey[];
  /** Milliseconds that a grant in progress is waited for; 0: not at all. */
  readonly waitMs: number;
}

/** One key whose fence is held, and what it is fenced for. */
export interface FencedKey {
  readonly key: LeaseKey;
  readonly generation: number;
  /** Of the run that has the lease: ours, or one around it. */
  readonly runId: string;
  readonly record: LeaseRecord;
}

export interface HeldFences {
  readonly kind: "held";
  /** In the order of keys. */
  readonly keys: readonly FencedKey[];
  /**
   * Of the fences, close-on-exec: to be inherited by the operation too, so that the fence outlives
   * us with it.
   */
  readonly descriptors: readonly number[];
  /** F2 and F3 once more, for whoever does several things under one fence. */
  check(): FenceRefusal | undefined;
  /** Lets go of our descriptors. Safe to repeat. What an operation has inherited stays held. */
  release(): void;
}

/**
 * F1 to F3 for all keys, in their one order: all or none.
 *
 * @returns "held", or "refused": 76 where the keys are not of a run around us, 75 where a fence
 *   could not be had in time
 * @throws WatchdogError "state.refused", "lease.refused" (78): something of the wrong kind or of
 *   another owner in the place of a file
 * @throws WatchdogError "state.unusable", "lease.unusable", "fence.unusable", "os.no-ffi" (125)
 * Clock: CLOCK_MONOTONIC. Waits on the main loop.
 */
export async function holdFences(request: HoldRequest): Promise<HeldFences | FenceRefusal> {
  const decided = decideClaims(readEnvironment(request.environment), request.keys);
  if (decided.kind === "refuse") return refuseFence(decided.because);
  const holding = new Holding(request, decided.claims);
  let held: HeldFences | FenceRefusal | undefined;
  try {
    held = (await holding.lock()) ?? holding.look();
    return held;
  } finally {
    if (held?.kind !== "held") holding.release();
  }
}

export function readEnvironment(entries: readonly Uint8Array[]): FenceEnvironment {
  return {
    runPath: valueOf(entries, "WATCHDOG_RUN_PATH"),
    leases: valueOf(entries, "WATCHDOG_LEASE"),
    generations: valueOf(entries, "WATCHDOG_GENERATION"),
  };
}

interface ClaimedPlace {
  readonly claim: FenceClaim;
  readonly place: LeasePlace;
}

class Holding {
  readonly #request: HoldRequest;
  readonly #claimed: readonly ClaimedPlace[];
  readonly #fds: number[] = [];

  constructor(request: HoldRequest, claims: readonly FenceClaim[]) {
    this.#request = request;
    this.#claimed = claims.map((claim) => ({
      claim,
      place: placeOf(request.stateDirectory, claim.key),
    }));
  }

  /** F1. Undefined: all are held. */
  async lock(): Promise<FenceRefusal | undefined> {
    const { stateDirectory, waitMs } = this.#request;
    if (findStateDirectory(stateDirectory)) refuseNewerFormat(stateDirectory);
    const until = monotonicNow() + waitMs;
    for (;;) {
      const refusal = this.#lockAll();
      if (refusal?.because !== "fence-busy") return refusal;
      const leftMs = until - monotonicNow();
      if (leftMs <= 0) return refusal;
      await pause(Math.min(TRY_MS, leftMs));
    }
  }

  /** All or none, without waiting. */
  #lockAll(): FenceRefusal | undefined {
    for (const { claim, place } of this.#claimed) {
      const fd = lockFence(claim, place);
      if (typeof fd === "number") {
        this.#fds.push(fd);
        continue;
      }
      this.release();
      const { waitMs } = this.#request;
      return fd.kind === "busy"
        ? refuseFence("fence-busy", { claim, waitMs })
        : refuseFence("fence-missing", { claim, reason: `${place.fence} is missing` });
    }
    return undefined;
  }

  /** F2 and F3. */
  look(): HeldFences | FenceRefusal {
    const keys: FencedKey[] = [];
    for (const one of this.#claimed) {
      const found = lookAtKey(one);
      if ("because" in found) return found;
      keys.push(found);
    }
    return {
      kind: "held",
      keys,
      descriptors: [...this.#fds],
      check: () => this.#check(),
      release: () => this.release(),
    };
  }

  #check(): FenceRefusal | undefined {
    for (const one of this.#claimed) {
      const found = lookAtKey(one);
      if ("because" in found) return found;
    }
    return undefined;
  }

  /** By closing alone: LOCK_UN would take the lock from the operation that shares it, too. */
  release(): void {
    for (const fd of this.#fds.splice(0)) closeSync(fd);
  }
}

function stateOf({ key, generation }: FenceClaim): { key: string; generation: number | null } {
  return { key: renderKey(key), generation: generation ?? null };
}

type NoFence = { readonly kind: "busy" | "missing" };

/** One try for one fence. @returns its descriptor, under a number that scripts do not use */
function lockFence(claim: FenceClaim, place: LeasePlace): number | NoFence {
  for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
    const opened = openLock(place.fence, "existing");
    if (opened.kind === "missing") return { kind: "missing" };
    if (opened.kind !== "open") throw troubleWith(place.fence, opened);
    const fd = moveHigh(opened.fd);
    if (fd === NONE) throw unusable(place, "no descriptor is left (EMFILE)");
    const answer = lockShared(fd, claim, place);
    if (answer === "locked") return fd;
    if (answer === "busy") return { kind: "busy" };
  }
  throw replacedTooOften(place);
}

/** Closes what it has not locked. */
function lockShared(
  fd: number,
  claim: FenceClaim,
  place: LeasePlace,
): "locked" | "busy" | "replaced" {
  let isKept = false;
  try {
    faultPoint("fence.F1", { ...stateOf(claim), isFenced: false });
    const answer = tryLock(fd, "shared");
    if (answer === "busy") return "busy";
    if (answer !== "locked") throw unusable(place, nameErrno(answer.errno));
    isKept = isThePath(fd, place.fence);
    return isKept ? "locked" : "replaced";
  } finally {
    if (!isKept) closeSync(fd);
  }
}

function unusable(place: LeasePlace, reason: string): WatchdogError {
  return new WatchdogError("fence.unusable", `${place.fence} cannot be locked: ${reason}`, {
    hint: `ls -l ${place.fence}`,
  });
}

/** F2 and F3 of one key, whose fence is held. */
function lookAtKey({ claim, place }: ClaimedPlace): FencedKey | FenceRefusal {
  faultPoint("fence.F2", { ...stateOf(claim), isFenced: true });
  const found = readRecord(place.record);
  const owner = decideFenceRecord(claim, found);
  if (owner.kind === "refuse") return refuseFence(owner.because, { claim, found });
  const { generation, runId } = owner;
  faultPoint("fence.F3", { key: renderKey(claim.key), generation, runId, isFenced: true });
  const lock = askLock(place.lock);
  const decided = decideFenceLock(lock, {
    isRecorded: isRecordedLock(place, owner.record),
    ownerAlive: isOwnerAlive(owner.record, readMachine()),
  });
  if (decided.kind === "refuse") {
    const reason = lock.kind === "unaskable" ? { reason: lock.reason } : {};
    return refuseFence(decided.because, { claim, found, ...reason });
  }
  return { key: claim.key, generation, runId, record: owner.record };
}

function isRecordedLock(place: LeasePlace, record: LeaseRecord): Fact {
  const inode = inodeAt(place.lock);
  if (inode === "unread") return "unread";
  return inode === record.lock_inode ? "yes" : "no";
}

function pause(pauseMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  wakeAfter(pauseMs, resolve);
  return promise;
}
