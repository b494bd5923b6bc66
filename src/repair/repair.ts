/**
 * One repair from its look to its last act. Looks at every lease that is asked for, tells what
 * earlier repairs have left, and carries out what was asked: everything that the verdicts allow, or
 * the one option that a person has approved.
 *
 * Clock and crash behaviour: by the parts.
 */
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import { isFenced, isSuspicious } from "../core/repair-plan.ts";
import type { Repairer } from "../core/evidence.ts";
import { WatchdogError } from "../core/errors.ts";
import { listKeys } from "../lease/list.ts";
import { RepairActs } from "./acts.ts";
import { largestKnown } from "./file-acts.ts";
import { nameOptions, RepairLooker } from "./gather.ts";
import { RepairLedger } from "./ledger.ts";
import { tellFinished } from "./mark.ts";
import type {
  InterruptedAct,
  RepairAct,
  RepairLease,
  RepairReport,
  RepairRequest,
} from "./request.ts";

export type Mode = RepairReport["mode"];

/**
 * @param isLocked  whether the lock of repairs is ours; without it nothing is written
 * @throws WatchdogError "repair.unusable": the audit cannot be written; "state.unusable" …
 */
export async function performRepair(
  request: RepairRequest,
  mode: Mode,
  { isLocked, repairer }: { readonly isLocked: boolean; readonly repairer: Repairer | undefined },
): Promise<RepairReport> {
  const repair = new Repair(request);
  try {
    const interrupted = isLocked ? repair.settleOpen(mode) : repair.listOpen(repairer);
    const leases = await repair.look();
    const { acts, isPlanKnown } = isLocked
      ? await repair.act(mode, leases)
      : { acts: [], isPlanKnown: mode !== "approve" };
    const { stateDirectory } = request;
    const { troubles } = repair;
    const done = { leases, interrupted, acts, isPlanKnown, troubles };
    return { stateDirectory, mode, isBusy: repairer !== undefined, ...done };
  } finally {
    repair.close();
  }
}

interface Acted {
  readonly acts: readonly RepairAct[];
  readonly isPlanKnown: boolean;
}

class Repair {
  readonly #request: RepairRequest;
  readonly #looker: RepairLooker;
  readonly #ledger: RepairLedger;
  readonly #troubles: string[] = [];

  constructor(request: RepairRequest) {
    this.#request = request;
    this.#looker = new RepairLooker(request, (line) => void this.#troubles.push(line));
    this.#ledger = new RepairLedger(this.#looker);
  }

  get troubles(): readonly string[] {
    return [...new Set([...this.#troubles, ...this.#ledger.notes])];
  }

  close(): void {
    this.#ledger.close();
    this.#looker.close();
  }

  /**
   * What a person has approved goes on where the audit cannot be read: whoever holds it may be the
   * one that is to be ended. Without a person nothing is done then.
   */
  settleOpen(mode: Mode): InterruptedAct[] {
    const { build } = this.#request;
    const settle = () => this.#ledger.closeOpen((key) => tellFinished(this.#looker, key, build));
    return mode === "approve" ? this.#orTrouble(settle, []) : orRefuse(settle);
  }

  /** One of them may be that of the repair which is at work at this moment. */
  listOpen(repairer: Repairer | undefined): InterruptedAct[] {
    const { bootId } = this.#looker.machine;
    return this.#orTrouble(() => this.#ledger.listOpen(), []).map((act) => {
      const isOfBoot = repairer !== undefined && act.bootId === bootId;
      const isAtWork = isOfBoot && (repairer.pid === null || repairer.pid === act.pid);
      const askedRun = isAtWork ? undefined : this.#ledger.findAsked(act);
      return { act, settled: isAtWork ? "at-work" : "open", askedRun };
    });
  }

  /** Whoever only looks, or was asked by a person, is told what cannot be read, and goes on. */
  #orTrouble<T>(read: () => T, nothing: T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof WatchdogError) || error.code !== "repair.unusable") throw error;
      this.#troubles.push(error.message);
      return nothing;
    }
  }

  async look(): Promise<RepairLease[]> {
    const { keys } = this.#request.options;
    const all = keys.length > 0 ? keys : listKeys(this.#request.stateDirectory);
    const leases: RepairLease[] = [];
    for (let at = 0; at < all.length; at += AT_ONCE) {
      const some = all.slice(at, at + AT_ONCE).map((key) => this.#lookAt(key));
      leases.push(...(await Promise.all(some)));
    }
    return leases.filter((one) => keys.length > 0 || isSuspicious(one.verdict) || isFenced(one));
  }

  async #lookAt(key: LeaseKey): Promise<RepairLease> {
    const { options } = this.#request;
    const view = await this.#looker.gather(key);
    const named = nameOptions(view, options.setGeneration);
    const allowed = named.find(({ needs }) => needs === "apply");
    const limit =
      allowed === undefined
        ? undefined
        : this.#orTrouble(() => this.#ledger.decideLimit(key, allowed.action, options), GO);
    const isNumberless = hasNoGeneration({ options: named });
    return {
      ...view,
      key,
      options: named,
      limit: limit === undefined || limit.kind === "go" ? undefined : limit,
      leastGeneration: isNumberless
        ? Math.max(1, largestKnown(this.#looker, this.#looker.placeOf(key)))
        : undefined,
    };
  }

  async act(mode: Mode, leases: readonly RepairLease[]): Promise<Acted> {
    const acts = new RepairActs(this.#request, this.#looker, this.#ledger);
    if (mode === "dry-run") return { acts: [], isPlanKnown: true };
    if (mode === "approve") return this.#approve(acts, leases);
    const done: RepairAct[] = [];
    for (const { key, options, limit, verdict } of leases) {
      const allowed = options.find(({ needs }) => needs === "apply");
      if (allowed === undefined || limit !== undefined) continue;
      if (this.#request.isOnlyMarking === true && verdict.name !== "dead") continue;
      done.push(await acts.perform({ key, action: allowed.action, approved: undefined }));
    }
    return { acts: done, isPlanKnown: true };
  }

  async #setGeneration(acts: RepairActs, lease: RepairLease): Promise<RepairAct> {
    const action = "set-generation";
    const { key, verdict } = lease;
    if (hasNoGeneration(lease)) return acts.perform({ key, action, approved: undefined });
    const why = `${verdict.name}, ${verdict.rule} ${verdict.because}`;
    const text = `a generation is set only where nothing tells it; ${renderKey(key)} is ${why}`;
    return { key, action, planId: null, end: "refused", because: "generation-known", text };
  }

  async #approve(acts: RepairActs, leases: readonly RepairLease[]): Promise<Acted> {
    const { approve, setGeneration } = this.#request.options;
    const [first] = leases;
    if (setGeneration !== undefined && first !== undefined) {
      return { acts: [await this.#setGeneration(acts, first)], isPlanKnown: true };
    }
    for (const { key, options } of leases) {
      const option = options.find(({ planId }) => planId !== null && planId === approve);
      if (option === undefined) continue;
      const act = await acts.perform({ key, action: option.action, approved: approve });
      return { acts: [act], isPlanKnown: true };
    }
    if (approve !== undefined) this.#ledger.refuseUnknown(approve, this.#request.options.keys);
    return { acts: [], isPlanKnown: false };
  }
}

/** What was repaired before tells what may be repaired now. */
function orRefuse<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof WatchdogError) || error.code !== "repair.unusable") throw error;
    const text = `${error.message}; without it only what a person approves is done`;
    throw new WatchdogError("repair.unusable", text, { hint: "watchdog repair", cause: error });
  }
}

function hasNoGeneration({ options }: Pick<RepairLease, "options">): boolean {
  return options.some(({ action }) => action === "set-generation");
}

/** Leases that share their looks at the processes of the machine. */
const AT_ONCE = 100;
const GO = { kind: "go" } as const;
