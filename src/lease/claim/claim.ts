/**
 * Acquiring leases, steps A1 to A6: all keys or none, with or without waiting. The kernel's lock
 * decides, the evidence explains.
 *
 * Guarantees: on "claimed" lock and fence of every key are ours, and nobody of an earlier
 * generation is left; on "refused" and on an error nothing is held, and nothing of a key has
 * changed but an empty file that was missing and the note of an `elsewhere`. A wait holds no key
 * but the one that it has just been given. Non-guarantees: the order of waiters beyond that of
 * flock(2), and none where the lock is free and the verdict refuses (then it is polled). Clock:
 * CLOCK_MONOTONIC. Crash behaviour: the kernel frees everything; survivors that were being ended
 * are found again by the next newcomer.
 */
import { closeSync } from "node:fs";
import { assert } from "../../core/errors.ts";
import { renderKey } from "../../core/lease-key.ts";
import { monotonicNow } from "../../os/clock.ts";
import { isAlive } from "../../os/machine.ts";
import { type Assessment, assessTaken } from "./assess.ts";
import type { Claim, ClaimedKey, ClaimRequest, ClaimResult, Refusal } from "./request.ts";
import { pause, settleClaim } from "./settle.ts";
import { asFailure, MOST_REPLACEMENTS, replacedTooOften } from "../files/failure.ts";
import { type Fences, isFenceBusy } from "./fences.ts";
import {
  isStillThere,
  lockAll,
  type LockAttempt,
  type LockedKey,
  openForLock,
  releaseLocks,
} from "./key-locks.ts";
import { askLock } from "../files/lock-file.ts";
import { LockQueue, type WaitEnd, type Waiting } from "./lock-queue.ts";
import { type LeasePlace, placeOf } from "../files/places.ts";
import { describeRefusal, type OtherReason } from "./refusal.ts";

export type {
  AbandonedOwner,
  Claim,
  ClaimedKey,
  ClaimRequest,
  ClaimResult,
  Ending,
  Refusal,
  SecondLooker,
  SurvivorKeeper,
} from "./request.ts";

/** Readers probe with a momentary LOCK_SH: a busy lock is asked again before it counts. */
const LOCK_TRIES = 3;
const LOCK_TRY_PAUSE_MS = 30;
/**
 * A lock that no living owner explains is one that another newcomer has just been given, or that of
 * an owner who was killed between the fork and the exec of a child: the child has the open file
 * too, until its exec(2) closes it, and on a machine under load that takes its time. A key whose
 * owner is dead must be had by the next run, so that this is waited for without `--wait`, too.
 */
const UNEXPLAINED_WAIT_MS = 2_000;
/** Where the kernel has no queue for what is waited for. */
const POLL_MS = 1_000;
/** Survivors that are waited for: the next look at all processes, if none of them ends before. */
const POLLS_OF_SURVIVORS = 10;
/**
 * A repair that settles a key holds it for its looks at all processes, and while it ends members,
 * three times 10 s at most: a run that could be had after that does not fail for it. Who holds it
 * for longer stands still.
 */
const REPAIR_WAIT_MS = 60_000;
const REPAIR_POLL_MS = 100;
/** A fenced operation, where nothing tells how long to wait (design.md, A6). */
const FENCE_WAIT_MS = 30_000;
/** One that goes on is looked at so often, and everything else after POLL_MS. */
const FENCE_POLL_MS = 50;
/** In the queue: the next look at who holds the lock, for the word `stalled`. */
const LOOK_MS = 5_000;

/**
 * @throws WatchdogError "lease.unusable" (EACCES, ENOSPC, EMFILE …: 125), "lease.refused" (a link,
 *   no regular file, another owner's: a person must act, 78); nothing is held then
 */
export async function claimLeases(request: ClaimRequest): Promise<ClaimResult> {
  const claiming = new Claiming(request);
  try {
    return await claiming.perform();
  } catch (error) {
    throw asFailure(error);
  } finally {
    claiming.close();
  }
}

/** Why a round came to nothing, and what could be waited for. */
interface Pending extends OtherReason {
  readonly assessment: Assessment;
  readonly trouble: string | undefined;
  readonly canWait: boolean;
  /** Its lock is held by somebody: the kernel's queue. Undefined: it is free, and polled. */
  readonly queueFor: LeasePlace | undefined;
}

/** What is told about it. */
type Told = Pick<Pending, keyof OtherReason | "assessment" | "trouble">;

type Round =
  | { readonly kind: "had"; readonly keys: readonly ClaimedKey[]; readonly fences: Fences }
  | ({ readonly kind: "pending" } & Pending);

const BY_DECISION = { because: undefined, second: undefined, fencedBy: [], trouble: undefined };

class Claiming {
  readonly #request: ClaimRequest;
  readonly #places: readonly LeasePlace[];
  readonly #queue: LockQueue;
  readonly #newKinds = new Set<string>();
  /** Dead runs whose paused members were let go on. */
  readonly #continued = new Set<string>();
  readonly #startedMs = monotonicNow();
  #told: string | undefined;
  #hasWaited = false;
  /** Since when a repair is in the way, without a break. */
  #repairSinceMs: number | undefined;
  /** The same of a fenced operation. */
  #fencedSinceMs: number | undefined;

  constructor(request: ClaimRequest) {
    assert(request.keys.length > 0, "a claim has a key");
    this.#request = request;
    this.#places = request.keys.map((key) => placeOf(request.stateDirectory, key));
    this.#queue = new LockQueue(request.waitWorkerUrl);
  }

  async perform(): Promise<ClaimResult> {
    let had: LockedKey | undefined;
    for (;;) {
      const round = await this.#ask(had);
      if (round.kind === "had") return { kind: "claimed", claim: this.#claimOf(round) };
      this.#repairSinceMs = isForRepair(round)
        ? (this.#repairSinceMs ?? monotonicNow())
        : undefined;
      this.#fencedSinceMs = isForFence(round) ? (this.#fencedSinceMs ?? monotonicNow()) : undefined;
      if (!round.canWait || this.#remainingMs(round) <= 0) {
        return { kind: "refused", refusal: this.#refusalOf(round) };
      }
      this.#tell(round);
      this.#hasWaited = true;
      had = await this.#wait(round);
    }
  }

  close(): void {
    this.#queue.close();
  }

  /** A1 to A6 once, without waiting for anybody who is known to hold a lock. */
  async #ask(had: LockedKey | undefined): Promise<Round> {
    let first = had;
    for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
      const attempt = await this.#lock(first);
      first = undefined;
      if (attempt.kind !== "locked") return this.#pendingOf(attempt);
      let isKept = false;
      try {
        const settlement = await settleClaim(attempt.locks, this.#request, this.#continued);
        isKept = settlement.kind === "settled";
        if (settlement.kind === "settled") return { ...settlement, kind: "had" };
        if (settlement.kind === "refused") {
          return { ...settlement, kind: "pending", queueFor: undefined };
        }
      } finally {
        if (!isKept) releaseLocks(attempt.locks);
      }
    }
    const [place] = this.#places;
    assert(place !== undefined, "a claim has a key");
    throw replacedTooOften(place);
  }

  /** Between two tries nothing is held, so that two newcomers never keep each other out. */
  async #lock(had: LockedKey | undefined): Promise<LockAttempt> {
    const untilMs = monotonicNow() + UNEXPLAINED_WAIT_MS;
    for (let tried = 1; ; tried += 1) {
      const attempt = lockAll(this.#places, had, this.#onNew);
      if (attempt.kind !== "busy" || had !== undefined) return attempt;
      if (tried >= LOCK_TRIES) {
        const isOver = monotonicNow() >= untilMs || !this.#isUnexplained(attempt.place);
        if (isOver) return attempt;
      }
      await pause(LOCK_TRY_PAUSE_MS);
    }
  }

  /** Whoever has asked to wait stands in the kernel's queue instead. */
  #isUnexplained(place: LeasePlace): boolean {
    if (this.#remainingMs() > 0) return false;
    const { verdict, evidence } = assessTaken(place, { kind: "held" }, this.#request);
    return verdict.because === "being-acquired" && evidence.repairer === undefined;
  }

  readonly #onNew = (place: LeasePlace): void => {
    this.#newKinds.add(place.key.kind);
  };

  #pendingOf(attempt: Exclude<LockAttempt, { kind: "locked" }>): Round {
    const lock =
      attempt.kind === "busy"
        ? { kind: "held" as const }
        : { kind: "unaskable" as const, reason: attempt.reason };
    const taken = assessTaken(attempt.place, lock, this.#request);
    const assessment = this.#findHeldAround(attempt.place) ?? taken;
    const { decision, evidence } = assessment;
    assert(decision.kind === "refuse", "a key whose lock is not had is not acquired");
    const pending = { kind: "pending", assessment, ...BY_DECISION } as const;
    if (evidence.repairer !== undefined) {
      return { ...pending, because: "repair-at-work", canWait: true, queueFor: undefined };
    }
    const queueFor = attempt.kind === "busy" ? attempt.place : undefined;
    return { ...pending, canWait: decision.canWait, queueFor };
  }

  /**
   * One of the other keys that a run around this one holds: whoever waited for the first key would
   * be refused only after it.
   */
  #findHeldAround(busy: LeasePlace): Assessment | undefined {
    if (this.#remainingMs() <= 0 || this.#request.runsAround.length === 0) return undefined;
    for (const place of this.#places) {
      if (place === busy || askLock(place.lock).kind !== "held") continue;
      const assessment = assessTaken(place, { kind: "held" }, this.#request);
      const { decision } = assessment;
      if (decision.kind === "refuse" && !decision.canWait) return assessment;
    }
    return undefined;
  }

  /** @returns the lock that the queue has given us; undefined: ask again for all keys */
  async #wait(pending: Pending): Promise<LockedKey | undefined> {
    if (pending.queueFor !== undefined) return this.#waitInQueue(pending.queueFor);
    await (isForFence(pending) ? this.#pollFence(pending) : this.#poll(pending));
    return undefined;
  }

  /** A look at all processes costs too much to be taken each second of a wait for ever. */
  async #poll(pending: Pending): Promise<void> {
    const { tree } = pending.assessment.evidence;
    const survivors = isForSurvivors(pending) && tree !== "unread" ? tree.members : [];
    const pollMs = isForRepair(pending) ? REPAIR_POLL_MS : POLL_MS;
    for (let polls = 0; polls < POLLS_OF_SURVIVORS; polls += 1) {
      await pause(Math.max(0, Math.min(pollMs, this.#remainingMs(pending))));
      if (survivors.length === 0 || survivors.some((one) => isAlive(one) !== "yes")) return;
      if (this.#remainingMs(pending) <= 0) return;
    }
  }

  /** Nothing is held meanwhile; the fence itself for the moment of the question. */
  async #pollFence(pending: Pending): Promise<void> {
    const { place } = pending.assessment;
    for (let pastMs = 0; pastMs < POLL_MS; pastMs += FENCE_POLL_MS) {
      const remainingMs = this.#remainingMs(pending);
      if (remainingMs <= 0) return;
      await pause(Math.min(FENCE_POLL_MS, remainingMs));
      if (!isFenceBusy(place)) return;
    }
  }

  async #waitInQueue(place: LeasePlace): Promise<LockedKey | undefined> {
    const opened = openForLock(place, this.#onNew);
    if (opened === undefined) return undefined;
    const end = await this.#queueUp(place, opened.fd);
    if (end === "failed") await pause(Math.min(POLL_MS, this.#remainingMs()));
    if (end !== "locked") return undefined;
    let isKept = false;
    try {
      isKept = isStillThere(opened);
      return isKept ? opened : undefined;
    } finally {
      if (!isKept) closeSync(opened.fd);
    }
  }

  /** "locked": the descriptor is ours again. Else it belongs to the queue. */
  async #queueUp(place: LeasePlace, fd: number): Promise<"locked" | "failed" | "over"> {
    const waiting = this.#queue.begin(fd);
    let end: WaitEnd | undefined;
    try {
      end = await this.#watchQueue(place, waiting);
    } catch (error) {
      if (waiting.abandon() === "locked") closeSync(fd);
      throw error;
    }
    if (end?.kind === "locked" || waiting.abandon() === "locked") return "locked";
    return end === undefined ? "over" : "failed";
  }

  /** Looks now and then who holds it. @returns undefined at the deadline */
  async #watchQueue(place: LeasePlace, waiting: Waiting): Promise<WaitEnd | undefined> {
    for (;;) {
      const remainingMs = this.#remainingMs();
      if (remainingMs <= 0) return undefined;
      const end = await waiting.until(Math.min(remainingMs, LOOK_MS));
      if (end !== undefined) return end;
      const assessment = assessTaken(place, { kind: "held" }, this.#request);
      this.#tell({ assessment, ...BY_DECISION });
    }
  }

  /** @param pending  what is waited for; undefined: somebody who holds a lock */
  #remainingMs(pending?: Pending): number {
    const { waitMs = 0, survivorWaitMs = waitMs } = this.#request;
    const isForThem = pending !== undefined && (isForSurvivors(pending) || isForFence(pending));
    const nowMs = monotonicNow();
    const remainingMs = (isForThem ? survivorWaitMs : waitMs) - (nowMs - this.#startedMs);
    if (pending === undefined) return remainingMs;
    return Math.max(remainingMs, this.#unaskedMs(pending, nowMs));
  }

  /** For what ends by itself it is waited without `--wait`, too, up to a limit. */
  #unaskedMs(pending: Pending, nowMs: number): number {
    const { repairWaitMs = REPAIR_WAIT_MS, fenceDeadlineMs = FENCE_WAIT_MS } = this.#request;
    if (isForRepair(pending)) return repairWaitMs - (nowMs - (this.#repairSinceMs ?? nowMs));
    const { waitMs, onSurvivors } = this.#request;
    const isTold = waitMs !== undefined || onSurvivors === "refuse";
    if (!isForFence(pending) || isTold) return 0;
    return fenceDeadlineMs - (nowMs - (this.#fencedSinceMs ?? nowMs));
  }

  /** Told once for each key and reason. */
  #tell(pending: Told): void {
    const refusal = this.#refusalOf(pending);
    const summary = `${renderKey(refusal.key)} ${refusal.because}`;
    if (summary === this.#told) return;
    this.#told = summary;
    this.#request.onWaiting(refusal);
  }

  #refusalOf({ assessment, trouble, ...reason }: Told): Refusal {
    const refusal = describeRefusal(assessment, this.#waitedMs(), reason);
    return trouble === undefined ? refusal : { ...refusal, text: `${refusal.text}; ${trouble}` };
  }

  #waitedMs(): number {
    const isWaiting = this.#hasWaited || (this.#request.waitMs ?? 0) > 0;
    return isWaiting ? Math.round(monotonicNow() - this.#startedMs) : 0;
  }

  #claimOf(had: { keys: readonly ClaimedKey[]; fences: Fences }): Claim {
    let areLocksOurs = true;
    return {
      keys: had.keys,
      looker: this.#request.looker,
      waitedMs: this.#waitedMs(),
      newKinds: [...this.#newKinds],
      releaseFences: () => had.fences.release(),
      handOver: () => {
        areLocksOurs = false;
      },
      release: () => {
        had.fences.release();
        if (areLocksOurs) for (const { lockFd } of had.keys) closeSync(lockFd);
        areLocksOurs = false;
      },
    };
  }
}

/** It ends by itself, and before it ended nobody could know whether the key is to be had. */
function isForRepair({ because, second }: Told): boolean {
  return because === "repair-at-work" || second?.because === "repair-at-work";
}

function isForFence({ because }: Told): boolean {
  return because === "fenced-operation";
}

/** Living survivors that nobody is to end: waited for with a limit of their own. */
function isForSurvivors({ assessment, because, second }: Told): boolean {
  const { decision } = assessment;
  const isDecided = because === undefined && second === undefined && decision.kind === "refuse";
  return isDecided && decision.because === "survivors-alive";
}
