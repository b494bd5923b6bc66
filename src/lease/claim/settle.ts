/**
 * Steps A4 to A6, with the locks of all keys in hand: decides for all of them together, with a
 * second look where none refuses, ends what dead owners have left, and gets hold of the fences.
 *
 * Guarantees: nothing is ended while one of the keys refuses, for whichever reason; nothing is
 * handed out but keys whose verdict was `free`, `dead`, or `elsewhere` with an old note, and that
 * were clear at the second look, both after the last ending, and with the lock still at its path.
 * Non-guarantees: the locks themselves, which the caller holds and lets go. Clock: CLOCK_MONOTONIC.
 * Crash behaviour: survivors may have been ended; of the key nothing has changed but an empty fence
 * file or a note.
 */
import { assert } from "../../core/errors.ts";
import type { FoundProcess } from "../../core/evidence.ts";
import { renderKey } from "../../core/lease-key.ts";
import type { Verdict } from "../../core/lease-verdict.ts";
import { deadRunOf, wasPaused } from "../../core/dead-run.ts";
import { monotonicNow } from "../../os/clock.ts";
import { faultPoint } from "../../os/faults.ts";
import { findHolderAround, findLockHolders } from "../../os/lock-holders.ts";
import { wakeAfter } from "../../os/timers.ts";
import { type Assessment, assessKeys, pickRefusal } from "./assess.ts";
import type { ClaimedKey, ClaimRequest } from "./request.ts";
import { claimedKeyOf } from "./claimed-key.ts";
import { Fences } from "./fences.ts";
import type { LockedKey } from "./key-locks.ts";
import { isThePath } from "../files/lock-file.ts";
import { textOf } from "../files/own-file.ts";
import type { LeasePlace } from "../files/places.ts";
import type { OtherReason } from "./refusal.ts";
import { writeNote } from "../files/seen-note.ts";
import { lookAgain } from "./second-look.ts";

/**
 * Most operations are short. One that goes on is waited for without the locks (claim.ts), so that
 * nobody takes the keys for being acquired meanwhile.
 */
const FENCE_HOLD_MS = 200;
const FENCE_TRY_MS = 20;
/** Members that outlive so many rounds of ending, each of up to 10 s, do not end now. */
export const MOST_ENDINGS = 3;

export type Settlement =
  | { readonly kind: "settled"; readonly keys: readonly ClaimedKey[]; readonly fences: Fences }
  | SettledRefusal
  /** A lock file is not at its path any more: begin again at A1. */
  | { readonly kind: "replaced" };

export interface SettledRefusal extends OtherReason {
  readonly kind: "refused";
  readonly assessment: Assessment;
  readonly canWait: boolean;
  /** What went wrong beside it, for the sentence. */
  readonly trouble: string | undefined;
}

/** What was ended for a key, and the verdict that it was ended on. */
export interface Ended {
  readonly verdict: Verdict;
  readonly members: readonly FoundProcess[];
}

/**
 * @param continued  ids of dead runs whose paused members were continued already, and are by this
 * @throws WatchdogError "lease.refused", "lease.unusable" (the fence); errors of the keeper
 */
export async function settleClaim(
  locks: readonly LockedKey[],
  request: ClaimRequest,
  continued: Set<string> = new Set(),
): Promise<Settlement> {
  const settling = new Settling(locks, request, continued);
  let settlement: Settlement | undefined;
  try {
    while (settlement === undefined) settlement = await settling.round();
    return settlement;
  } finally {
    if (settlement?.kind !== "settled") settling.fences.release();
  }
}

class Settling {
  readonly fences = new Fences();
  readonly #locks: readonly LockedKey[];
  readonly #places: readonly LeasePlace[];
  readonly #request: ClaimRequest;
  readonly #ended = new Map<LeasePlace, Ended>();
  readonly #continued: Set<string>;
  #endings = 0;
  #fencedUntil: number | undefined;

  constructor(locks: readonly LockedKey[], request: ClaimRequest, continued: Set<string>) {
    this.#continued = continued;
    this.#locks = locks;
    this.#places = locks.map(({ place }) => place);
    this.#request = request;
  }

  /** One look and one act; undefined: look again. */
  async round(): Promise<Settlement | undefined> {
    if (!this.#areThere()) return { kind: "replaced" };
    const assessments = await assessKeys(this.#places, this.#request);
    const refusing = pickRefusal(assessments);
    if (refusing !== undefined) {
      for (const one of assessments) await this.#continueFrozen(one);
      return refuse(refusing, { trouble: this.#leaveNotes(assessments) });
    }
    const again = await lookAgain(assessments, this.#request);
    if (again !== undefined) return refuse(again.assessment, { second: again.refusal });
    const ending = assessments.filter(({ decision }) => decision.kind === "end-survivors");
    if (ending.length === 0) this.#reachA6();
    const busy = this.fences.take(this.#places);
    const fenced = assessments.find((one) => busy.includes(one.place) && !ending.includes(one));
    // An operation that nobody of a dead tree carries out ends by itself or not at all: until that
    // is known nobody is ended for another key.
    if (fenced !== undefined) return this.#awaitFences(busy, fenced);
    if (ending.length > 0) return this.#end(ending);
    // Nothing was awaited between the looks and here but the looks themselves.
    return this.#areThere() ? this.#settle(assessments) : { kind: "replaced" };
  }

  #areThere(): boolean {
    return this.#locks.every(({ fd, place }) => isThePath(fd, place.lock));
  }

  #reachA6(): void {
    for (const { key } of this.#places) {
      faultPoint("acquire.A6", { key: renderKey(key), isLocked: true, endings: this.#endings });
    }
  }

  #settle(assessments: readonly Assessment[]): Settlement {
    const keys = assessments.map((one, index) => {
      const lock = this.#locks[index];
      assert(lock?.place === one.place, "assessments come in the order of the locks");
      return claimedKeyOf(lock, one, this.#ended.get(one.place));
    });
    return { kind: "settled", keys, fences: this.fences };
  }

  /** A5. The guard of the dead run is waited for by the keeper. */
  async #end(ending: readonly Assessment[]): Promise<Settlement | undefined> {
    const [first] = ending;
    if (first !== undefined && this.#endings >= MOST_ENDINGS) {
      return refuse(first, { because: "survivors-remain" });
    }
    this.#endings += 1;
    const runs = new Set<string>();
    for (const { place, evidence, verdict, decision } of ending) {
      const run = deadRunOf(evidence);
      assert(run !== undefined && decision.kind === "end-survivors", "members belong to a run");
      const { members } = decision;
      const before = this.#ended.get(place);
      this.#ended.set(place, { verdict, members: mergeMembers(before?.members ?? [], members) });
      if (runs.has(run.runId)) continue;
      runs.add(run.runId);
      const key = renderKey(place.key);
      faultPoint("acquire.A5", { key, isLocked: true, pids: members.map(({ pid }) => pid) });
      this.#request.onEnding({ key: place.key, run, members });
      await this.#request.survivors.end(run);
    }
    return undefined;
  }

  /**
   * Survivors that are waited for, and that their dead watchdog had made to stand still: nobody is
   * left who would let them go on, so that they would never end, and the wait neither. They are
   * continued, once, and not ended: that is what `--on-survivors wait` asks for. A newcomer that
   * refuses signals nobody.
   */
  async #continueFrozen({ place, evidence, decision }: Assessment): Promise<void> {
    const { onSurvivors, survivors, onContinued, waitMs = 0, survivorWaitMs } = this.#request;
    if (onSurvivors !== "wait" || (survivorWaitMs ?? waitMs) <= 0) return;
    const run = deadRunOf(evidence);
    if (run === undefined || !wasPaused(run, evidence)) return;
    if (decision.kind !== "refuse" || decision.because !== "survivors-alive") return;
    if (this.#continued.has(run.runId)) return;
    const count = await survivors.continueFrozen(run);
    if (typeof count === "string") return;
    this.#continued.add(run.runId);
    onContinued?.({ key: place.key, run, count });
  }

  async #awaitFences(
    busy: readonly LeasePlace[],
    fenced: Assessment,
  ): Promise<Settlement | undefined> {
    const around = findHolderAround(fenced.place.fence);
    if (around !== undefined) {
      return refuse(fenced, { because: "fenced-around", fencedBy: [around], canWait: false });
    }
    this.#fencedUntil ??= monotonicNow() + FENCE_HOLD_MS;
    const until = this.#fencedUntil;
    if (monotonicNow() >= until) {
      const fencedBy = findLockHolders(fenced.place.fence);
      return refuse(fenced, { because: "fenced-operation", fencedBy });
    }
    while (monotonicNow() < until && this.fences.take(busy).length > 0) await pause(FENCE_TRY_MS);
    return undefined;
  }

  /** The first refused newcomer of an `elsewhere` notes the time; what fails is told. */
  #leaveNotes(assessments: readonly Assessment[]): string | undefined {
    const { bootId, timeNamespace } = this.#request.looker.machine;
    const troubles = assessments.flatMap(({ place, evidence, decision }) => {
      const { source } = evidence;
      const isNoted = decision.kind === "refuse" && decision.leavesNote && source.kind === "read";
      if (!isNoted) return [];
      const { generation } = source;
      try {
        writeNote(place, { generation, bootId, timeNamespace, monotonicMs: monotonicNow() });
        return [];
      } catch (error) {
        return [`${place.note} could not be written: ${textOf(error)}`];
      }
    });
    return troubles[0];
  }
}

function refuse(
  assessment: Assessment,
  more: Partial<OtherReason & Pick<SettledRefusal, "trouble" | "canWait">>,
): SettledRefusal {
  const { decision } = assessment;
  const canWait = decision.kind !== "refuse" || decision.canWait;
  const nothing = { because: undefined, second: undefined, fencedBy: [], trouble: undefined };
  return { kind: "refused", assessment, ...nothing, canWait, ...more };
}

function mergeMembers(
  some: readonly FoundProcess[],
  more: readonly FoundProcess[],
): FoundProcess[] {
  const byIdentity = new Map<string, FoundProcess>();
  for (const one of [...some, ...more]) byIdentity.set(`${one.pid} ${one.start_time}`, one);
  return [...byIdentity.values()];
}

/** A pause of the main loop's: everything else goes on meanwhile. */
export function pause(pauseMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  wakeAfter(pauseMs, resolve);
  return promise;
}
