/**
 * Carries out one option of a plan: gathers the evidence again where nobody can change it, compares
 * it with what was approved, writes the intention down, acts, and writes the end down.
 *
 * Guarantees: with other evidence nothing is begun and nothing is changed; without an approval
 * nothing is done but what the verdict of now allows. Clock: MONOTONIC, by the parts. Crash
 * behaviour: an intention without an end, which the next repair tells and finishes or gives up.
 */
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import { isSuspicious, type RepairAction, type RepairView } from "../core/repair-plan.ts";
import { nameAfterColon } from "../lease/claim/refusal.ts";
import { hasRoomToKeep } from "../lease/files/kept-record.ts";
import { textOf } from "../lease/files/own-file.ts";
import { WatchdogError } from "../core/errors.ts";
import { codeOf } from "../lease/files/own-file.ts";
import type { OpenSupervisor } from "../tree/signal-supervisor.ts";
import { continueOwner, endOwner, openOwner, OWNER_GRACE_MS, ownerOf } from "./end-owner.ts";
import { nameOptions, type RepairLooker } from "./gather.ts";
import { type KeyHold, type KeyRefusal, withKey } from "./key-lock.ts";
import type { Intention, RepairLedger } from "./ledger.ts";
import { noteTime, setAsideLock, setGeneration } from "./file-acts.ts";
import type { ActReason, NamedOption, RepairAct, RepairRequest } from "./request.ts";
import { makeMark } from "./mark.ts";
import { type ActEnd, describeNoRoom, settleGeneration } from "./settle.ts";
import { endApprovedSuspects } from "./suspects.ts";
import { faultPoint } from "../os/faults.ts";

/** What is to be done, as the evidence was when it was asked for. */
export interface Asked {
  readonly key: LeaseKey;
  readonly action: RepairAction;
  /** Undefined: by `--apply`, whatever the verdict of now allows. */
  readonly approved: string | undefined;
}

type Confirmed = NamedOption & { readonly planId: string };

export class RepairActs {
  readonly #request: RepairRequest;
  readonly #looker: RepairLooker;
  readonly #ledger: RepairLedger;

  constructor(request: RepairRequest, looker: RepairLooker, ledger: RepairLedger) {
    this.#request = request;
    this.#looker = looker;
    this.#ledger = ledger;
  }

  /** @throws WatchdogError "repair.unusable": the audit takes nothing */
  async perform(asked: Asked): Promise<RepairAct> {
    try {
      const place = this.#looker.placeOf(asked.key);
      if (asked.action === "set-aside-lock") return await this.#withoutLock(asked);
      if (asked.action === "continue-owner" || asked.action === "end-owner") {
        return await this.#onOwner(asked);
      }
      const done = await withKey(place, (hold) => this.#underLock(asked, hold));
      return "kind" in done ? refuseKey(asked, done) : done;
    } catch (error) {
      return failed(asked, error);
    }
  }

  /** Nobody has the lock, or another file than the one at its path. */
  async #underLock(asked: Asked, hold: KeyHold): Promise<RepairAct> {
    const view = await this.#looker.gather(asked.key, { kind: "free" });
    const option = hold.isThere() ? this.#confirm(asked, view) : undefined;
    if (option === undefined) return this.#refuse(asked, view);
    return this.#carryOut(view, option, () => this.#actUnder(hold, view, option));
  }

  #actUnder(hold: KeyHold, view: RepairView, option: Confirmed): Promise<ActEnd> | ActEnd {
    const { action, planId } = option;
    const { build, options } = this.#request;
    const looker = this.#looker;
    const key = renderKey(view.evidence.key);
    faultPoint("repair.act", { key, action });
    const mark = makeMark(looker.machine, planId, "marked");
    const mayEnd = this.#request.isOnlyMarking !== true;
    const settling = { looker, hold, view, mark, build, mayEnd };
    switch (action) {
      case "note":
        return noteTime(looker, view);
      case "set-generation":
        return setGeneration({ looker, view, planId, generation: options.setGeneration ?? 0 });
      case "end-suspects":
        return endApprovedSuspects(settling);
      default:
        return settleGeneration(settling);
    }
  }

  async #withoutLock(asked: Asked): Promise<RepairAct> {
    const view = await this.#looker.gather(asked.key);
    const option = this.#confirm(asked, view);
    if (option === undefined) return this.#refuse(asked, view);
    return this.#carryOut(view, option, () => setAsideLock(this.#looker, view));
  }

  async #onOwner(asked: Asked): Promise<RepairAct> {
    const { key } = asked;
    const view = await this.#looker.gather(key);
    if (this.#confirm(asked, view) === undefined) return this.#refuse(asked, view);
    if (view.evidence.lock.kind === "held") return this.#withOwner(asked, view, undefined);
    const place = this.#looker.placeOf(key);
    const done = await withKey(place, (hold) => this.#withOwner(asked, view, hold));
    return "kind" in done ? refuseKey(asked, done) : done;
  }

  /** The pidfd first, and then everything once more. */
  async #withOwner(
    asked: Asked,
    before: RepairView,
    hold: KeyHold | undefined,
  ): Promise<RepairAct> {
    const identity = ownerOf(before);
    const owner = identity === undefined ? "gone" : openOwner(identity);
    if (typeof owner === "string") return this.#refuse(asked, before);
    try {
      const view = await this.#looker.gather(asked.key, hold && { kind: "free" });
      const isSame = ownerOf(view)?.pid === identity?.pid && (hold?.isThere() ?? true);
      const option = isSame ? this.#confirm(asked, view) : undefined;
      if (option === undefined) return this.#refuse(asked, view);
      return await this.#carryOut(view, option, () => this.#actOn(owner, view, { option, hold }));
    } finally {
      owner.close();
    }
  }

  #actOn(
    owner: OpenSupervisor,
    view: RepairView,
    { option, hold }: { readonly option: Confirmed; readonly hold: KeyHold | undefined },
  ): Promise<ActEnd> | ActEnd {
    const { planId } = option;
    const planned = { looker: this.#looker, view, planId, hold };
    if (option.action === "continue-owner") return continueOwner(planned, owner);
    const { build, onStep, ownerGraceMs: graceMs = OWNER_GRACE_MS } = this.#request;
    return endOwner({ ...planned, owner, build, graceMs, onStep });
  }

  /** The option of now that was asked for; undefined: the evidence has changed. */
  #confirm({ action, approved }: Asked, view: RepairView): Confirmed | undefined {
    if (this.#request.isOnlyMarking === true && view.verdict.name !== "dead") return undefined;
    const options = nameOptions(view, this.#request.options.setGeneration);
    const found = options.find((option) => {
      if (approved !== undefined) return option.action === action && option.planId === approved;
      // The number that a person has given is the approval.
      return action === "set-generation" ? option.action === action : option.needs === "apply";
    });
    return found === undefined || found.planId === null
      ? undefined
      : { ...found, planId: found.planId };
  }

  #refuse({ key, action, approved }: Asked, view: RepairView): RepairAct {
    const act = { key, action, planId: approved ?? null };
    if (approved === undefined && !isSuspicious(view.verdict)) {
      const text = `${renderKey(key)} is ${view.verdict.name} by now: nothing is left to be done`;
      return { ...act, end: "done", because: "settled-meanwhile", text };
    }
    const because: ActReason = "evidence-changed";
    if (approved !== undefined) this.#ledger.refuse(view, { action, planId: approved, because });
    const text = `the evidence about ${renderKey(key)} has changed: nothing was done`;
    return { ...act, end: "refused", because, text };
  }

  async #carryOut(
    view: RepairView,
    option: Confirmed,
    act: () => Promise<ActEnd> | ActEnd,
  ): Promise<RepairAct> {
    const noRoom = this.#findNoRoom(view, option);
    if (noRoom !== undefined) return noRoom;
    const intention = this.#ledger.intend(view, option);
    const { key, action, planId } = intention;
    const end = await this.#try(intention, act);
    this.#ledger.end(intention, end.end, end.because);
    return { key, action, planId, ...end };
  }

  /** Whoever is ended for a key that cannot be marked then was ended for nothing. */
  #findNoRoom(view: RepairView, { action, planId }: Confirmed): RepairAct | undefined {
    const { key } = view.evidence;
    const { record } = this.#looker.placeOf(key);
    if (!SETTLING.has(action) || hasRoomToKeep(record)) return undefined;
    const text = describeNoRoom(key);
    return { key, action, planId, end: "refused", because: "too-many-kept", text };
  }

  async #try(intention: Intention, act: () => Promise<ActEnd> | ActEnd): Promise<ActEnd> {
    try {
      return await act();
    } catch (error) {
      const { text } = failed({ ...intention, approved: undefined }, error);
      return { end: "failed", because: "system-error", text };
    }
  }
}

/** Acts that end in a new record, with the old one kept beside it. */
const SETTLING: ReadonlySet<RepairAction> = new Set([
  "end-owner",
  "end-survivors",
  "end-suspects",
  "mark",
  "set-generation",
]);

/** An error of a system call is a failure of the machine; anything else is a bug of ours. */
function failed({ key, action, approved }: Asked, error: unknown): RepairAct {
  const isOurs = error instanceof WatchdogError;
  if (!isOurs && codeOf(error) === "unknown") throw error;
  if (isOurs && error.code === "repair.unusable") throw error;
  const text = `${renderKey(key)} could not be repaired: ${textOf(error)}`;
  return { key, action, planId: approved ?? null, end: "failed", because: "system-error", text };
}

function refuseKey({ key, action, approved }: Asked, refusal: KeyRefusal): RepairAct {
  const act = {
    key,
    action,
    planId: approved ?? null,
    end: "refused",
    because: refusal.kind,
  } as const;
  const name = renderKey(key);
  switch (refusal.kind) {
    case "lock-busy":
      return { ...act, text: `the lock of ${name} is taken by now: nothing was done` };
    case "lock-unaskable":
      return { ...act, text: `the lock of ${name} cannot be asked: ${refusal.reason}` };
    case "fenced-operation": {
      const by = nameAfterColon(refusal.fencedBy);
      return { ...act, text: `an operation under the fence of ${name} is in progress${by}` };
    }
  }
}
