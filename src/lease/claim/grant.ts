/**
 * Granting claimed leases, steps A7 to A9: a number, a record and a first beat for each key, and
 * then the fences go. Synchronous: nothing of ours comes in between.
 *
 * Guarantees: a number is never granted twice, and is on the disk before a record names it; on an
 * error nothing is held and nothing remains but numbers that were taken and, where the old record
 * could not be put back, a record of ours that says released. Non-guarantees: that old slots are
 * removed at once (the next grant does it). Clock: MONOTONIC and BOOTTIME for the first beat, the
 * wall clock for people. Crash behaviour: in A7 an empty slot, a number that nobody had; in A8 the
 * old record or the new one, and whoever comes next finds the lock free and the tree empty.
 */
import { readdirSync, renameSync, unlinkSync } from "node:fs";
import { decideGeneration } from "../../core/generation.ts";
import { renderKey } from "../../core/lease-key.ts";
import type { LeaseRecord } from "../../core/lease-record.ts";
import { NO_PROGRESS } from "../../core/progress.ts";
import { monotonicNow, suspendedMs, wallNow } from "../../os/clock.ts";
import { faultPoint } from "../../os/faults.ts";
import { readPidfdInode } from "../../os/pidfd-inode.ts";
import { readStat } from "../../os/proc.ts";
import type { Claim, ClaimedKey } from "./request.ts";
import { asFailure } from "../files/failure.ts";
import { readFloor } from "../files/floors.ts";
import type { Looker } from "../gather.ts";
import { composeSlot } from "../beat/slot.ts";
import { closeQuietly, type HeldLease, HeldLeases } from "../held.ts";
import { listSlots, type LeasePlace, slotPath } from "../files/places.ts";
import { readRecord, writeRecord } from "../files/record-file.ts";
import { ENDING_NAME } from "../files/owner-ending.ts";
import { removeNote } from "../files/seen-note.ts";
import { createSlot, writeSlot } from "../files/slot-file.ts";

/** What is the same in the records of all keys of a run. */
export type OwnerFacts = Omit<
  LeaseRecord,
  | "format"
  | "kind"
  | "name"
  | "generation"
  | "state"
  | "lock_inode"
  | "acquired_at"
  | "released_at"
  | "previous"
  | "repair"
>;

/** The sequence of the beat that a grant writes itself. */
const FIRST_BEAT = 1;

/**
 * Takes over the locks of the claim, whatever comes of it: they are held by the result, or closed.
 *
 * @throws WatchdogError "lease.unusable" (ENOSPC, EIO …), "lease.refused" (the numbers are used up,
 *   or the floors cannot be read)
 * Blocks: three fsyncs for each key, and the journal's answer (200 ms at most).
 */
export function grantLeases(claim: Claim, owner: OwnerFacts): HeldLeases {
  const granting = new Granting(claim, owner);
  try {
    const leases = granting.perform();
    claim.handOver();
    return new HeldLeases(leases, FIRST_BEAT);
  } catch (error) {
    granting.undo();
    claim.release();
    throw asFailure(error);
  }
}

interface TakenNumber {
  readonly claimed: ClaimedKey;
  readonly generation: number;
  readonly slotFd: number;
}

class Granting {
  readonly #claim: Claim;
  readonly #owner: OwnerFacts;
  /** Numbers that were taken, in the order of the keys. */
  readonly #taken: TakenNumber[] = [];
  /** Keys whose record may be ours already. */
  readonly #recorded: { claimed: ClaimedKey; record: LeaseRecord }[] = [];

  constructor(claim: Claim, owner: OwnerFacts) {
    this.#claim = claim;
    this.#owner = owner;
  }

  /** Each step for all keys before the next one: an error finds as little done as can be. */
  perform(): HeldLease[] {
    for (const claimed of this.#claim.keys) this.#takeNumber(claimed);
    const leases = this.#taken.map((taken) => this.#record(taken));
    for (const lease of leases) {
      const { generation } = lease;
      faultPoint("acquire.A9", { key: renderKey(lease.key), generation, isRecorded: true });
    }
    this.#claim.releaseFences();
    for (const lease of leases) tidy(lease);
    return leases;
  }

  /** A7 */
  #takeNumber(claimed: ClaimedKey): void {
    const { key, place, evidence } = claimed;
    const generation = decideGeneration({
      record: evidence.record?.generation,
      slots: listSlots(place),
      floor: readFloor(place),
      journal: askJournal(this.#claim.looker, claimed),
    });
    faultPoint("acquire.A7", { key: renderKey(key), generation, isTaken: false });
    this.#taken.push({ claimed, generation, slotFd: createSlot(place, generation) });
  }

  /** A8: the record, and then the first beat, so that a slot with a beat has had its record. */
  #record({ claimed, generation, slotFd }: TakenNumber): HeldLease {
    const { key, place, lockFd, lockInode, previous } = claimed;
    const record: LeaseRecord = {
      ...this.#owner,
      format: 1,
      kind: key.kind,
      name: key.name,
      generation,
      state: "held",
      lock_inode: lockInode,
      acquired_at: new Date(wallNow()).toISOString(),
      released_at: null,
      previous,
    };
    const run = this.#owner.run_id;
    faultPoint("acquire.A8", { key: renderKey(key), generation, run, isTaken: true });
    this.#recorded.push({ claimed, record });
    const setAside = setBrokenAside(place, generation);
    writeRecord(place.record, record);
    const lease = { key, generation, place, record, lockFd, slotFd, setAside };
    writeSlot(slotFd, this.#firstBeat(lease));
    return lease;
  }

  #firstBeat(lease: HeldLease): Parameters<typeof writeSlot>[1] {
    const { pid, pid_start_time: start_time } = this.#owner;
    const monotonicMs = monotonicNow();
    return composeSlot({
      lease,
      lockInode: lease.record.lock_inode,
      sequence: FIRST_BEAT,
      moment: { monotonicMs, boottimeMs: monotonicMs + suspendedMs(), wallMs: wallNow() },
      facts: {
        owner: { pid, start_time, pidfd_inode: readPidfdInode(pid) },
        sessionId: readStat(pid)?.sessionId ?? 0,
        mainGroup: null,
        mainChild: null,
        guard: null,
        runState: "starting",
        mainLoopSequence: 0,
        mainLoopMs: monotonicMs,
        members: [],
        memberCount: 0,
        progress: NO_PROGRESS,
      },
    });
  }

  /**
   * Puts the old records back: what they say of a dead owner is known to nobody else yet. Where
   * there was none, ours says that it is over.
   */
  undo(): void {
    for (const { claimed, record } of this.#recorded) {
      const released_at = new Date(wallNow()).toISOString();
      const before = claimed.evidence.record ?? { ...record, state: "released", released_at };
      try {
        writeRecord(claimed.place.record, before);
      } catch {
        // The disk that has failed A8 fails here too. Our record then names an owner whose lock is
        // free and whose tree is empty, or was never there: the next newcomer finds it `dead`.
      }
    }
    for (const taken of this.#taken) giveBack(taken);
  }
}

/** Nothing is deleted: what could not be read is kept under the number that came after it. */
function setBrokenAside(place: LeasePlace, generation: number): string | undefined {
  if (readRecord(place.record).kind !== "unreadable") return undefined;
  const path = `${place.record}.broken-${generation}`;
  renameSync(place.record, path);
  return path;
}

/**
 * A number that no record names was granted to nobody, and the lock is still ours: its slot may go,
 * so that failed starts on a full disk do not pile up.
 */
function giveBack({ claimed, generation, slotFd }: TakenNumber): void {
  closeQuietly(slotFd);
  const reading = readRecord(claimed.place.record);
  if (reading.kind === "read" && reading.record.generation === generation) return;
  try {
    unlinkSync(slotPath(claimed.place, generation));
  } catch {
    // EIO, EROFS: the number stays taken, and the next grant removes its slot.
  }
}

function askJournal(looker: Looker, { key }: ClaimedKey): number | undefined {
  const known = looker.journal(key);
  return known === "unread" ? undefined : known?.generation;
}

/** Old slots and the note of an `elsewhere` have served; after A9, because an undo needs them. */
function tidy(lease: HeldLease): void {
  const { place, generation } = lease;
  try {
    removeNote(place);
    for (const old of olderSlots(place, generation)) unlinkSync(slotPath(place, old));
    // Nobody else writes a record here while the lock is ours: who left it has died.
    const isLeft = (name: string): boolean => LEFT_BESIDE.test(name) || isOld(name, generation);
    for (const name of readdirSync(place.directory).filter(isLeft)) {
      unlinkSync(`${place.directory}/${name}`);
    }
  } catch {
    // EIO, EACCES: what remains is smaller than our number and of another generation: harmless, and
    // the next grant tries again.
  }
}

/** A record that was being written when its writer died (os/files.ts). */
const LEFT_BESIDE = /^\.lease\.json\.[^/]+\.tmp$/;

/** What a repair has said of an earlier grant: `previous` tells it from now on. */
function isOld(name: string, generation: number): boolean {
  const of = Number(ENDING_NAME.exec(name)?.[1] ?? generation);
  return of < generation;
}

function olderSlots(place: LeasePlace, generation: number): number[] {
  return listSlots(place).filter((slot) => slot < generation);
}
