/**
 * The evidence about the leases that a repair is about, with all that a plan depends on. The same
 * gathering and the same decisions as those of a newcomer; decides nothing itself.
 *
 * Guarantees: read only; the processes of a dead owner are looked for three times, as a newcomer
 * does, because the plan rests on it. Non-guarantees: that the facts are of one instant; who acts
 * on them gathers again under the lock. Clock: MONOTONIC, by the gathering. Crash behaviour: none.
 */
import type { LeaseEvidence, LockAnswer } from "../core/evidence.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import { decideVerdict } from "../core/lease-verdict.ts";
import { planIdOf } from "../core/plan-id.ts";
import {
  decideRepair,
  isOfWrongKind,
  type RepairAction,
  type RepairView,
} from "../core/repair-plan.ts";
import { deadRunOf } from "../core/survivors.ts";
import type { KeptProcesses } from "../core/survivors-view.ts";
import { Journal } from "../journal/journal.ts";
import { lookAtFence } from "../lease/fence-look.ts";
import { type LeasePlace, placeOf } from "../lease/files/places.ts";
import { gatherEvidence, type Looker } from "../lease/gather.ts";
import { kindAt, readRepairFacts } from "../lease/repair-facts.ts";
import { faultPoint } from "../os/faults.ts";
import { type Machine, readMachine } from "../os/machine.ts";
import { scanInWorker } from "../tree/scan-handle.ts";
import type { ScanResult } from "../tree/scan.ts";
import { maySignal } from "../tree/signal.ts";
import { protectionOf } from "../tree/signal-supervisor.ts";
import { lookForSurvivors, type Scan } from "../tree/survivors.ts";
import type { NamedOption, RepairRequest } from "./request.ts";

/** Time for what the journal could not take at once. */
const JOURNAL_MS = 5_000;

export class RepairLooker {
  readonly machine: Machine;
  readonly journal: Journal;
  readonly stateDirectory: string;
  readonly #request: RepairRequest;
  #scanning: Promise<ScanResult> | undefined;

  /** @param onTrouble  one line for people about the journal */
  constructor(request: RepairRequest, onTrouble: (line: string) => void) {
    this.#request = request;
    this.stateDirectory = request.stateDirectory;
    this.machine = readMachine();
    this.journal = new Journal(request.stateDirectory, onTrouble);
  }

  close(): void {
    this.journal.close(JOURNAL_MS);
  }

  /** Looks that are wanted at one time are one look. */
  get scan(): Scan {
    return () => {
      this.#scanning ??= scanInWorker(this.#request.scanUrl).finally(() => {
        this.#scanning = undefined;
      });
      return this.#scanning;
    };
  }

  get looker(): Looker {
    const journal = (key: LeaseKey) => this.journal.highestLease(key);
    const { stateDirectory, machine } = this;
    return { stateDirectory, machine, journal, isRepair: true };
  }

  placeOf(key: LeaseKey): LeasePlace {
    return placeOf(this.stateDirectory, key);
  }

  keptOf(runId: string): () => KeptProcesses {
    return () => this.#request.readKept(runId);
  }

  /** @param lock  the kernel's answer, if the lock is ours: `free` */
  async gather(key: LeaseKey, lock?: LockAnswer): Promise<RepairView> {
    const isLocked = lock !== undefined;
    faultPoint("repair.gather", { key: renderKey(key), isLocked });
    const gathered = this.#gatherFiles(key, lock);
    const fence = isLocked ? undefined : lookAtFence(this.placeOf(key), gathered.lock);
    const evidence = await this.#lookForTree({ ...gathered, fence });
    const sight = { protectionOf, maySignal };
    const facts = readRepairFacts(this.placeOf(key), evidence, { machine: this.machine, sight });
    return { evidence, verdict: decideVerdict(evidence), facts };
  }

  /** A free lock proves nothing in a place that every newcomer refuses. */
  #gatherFiles(key: LeaseKey, lock: LockAnswer | undefined): LeaseEvidence {
    const evidence = gatherEvidence(this.looker, key, lock);
    if (evidence.lock.kind !== "free") return evidence;
    const reason = refusalOf(this.placeOf(key));
    if (reason === undefined) return evidence;
    return gatherEvidence(this.looker, key, { kind: "unaskable", reason });
  }

  async #lookForTree(evidence: LeaseEvidence): Promise<LeaseEvidence> {
    const isWanted = decideVerdict(evidence).because === "tree-unread";
    const run = isWanted ? deadRunOf(evidence) : undefined;
    if (run === undefined) return evidence;
    const tree = await lookForSurvivors(run, this.keptOf(run.runId), this.scan);
    return { ...evidence, tree };
  }
}

function refusalOf(place: LeasePlace): string | undefined {
  for (const path of [place.kindDirectory, place.directory]) {
    const kind = kindAt(path);
    if (kind !== "directory" && kind !== "missing") return `${path}: it is not a directory`;
  }
  const wrong = [place.lock, place.fence].find((path) => isOfWrongKind(kindAt(path)));
  return wrong === undefined ? undefined : `${wrong}: it is not a regular file`;
}

/** The plan, each option with its name. @param generation  of `--set-generation` */
export function nameOptions(view: RepairView, generation: number | undefined): NamedOption[] {
  return decideRepair(view).options.map((option) => ({
    ...option,
    planId: nameOption(view, option.action, generation),
  }));
}

function nameOption(
  view: RepairView,
  action: RepairAction,
  generation: number | undefined,
): string | null {
  if (action === "none") return null;
  if (action !== "set-generation") return planIdOf(view, action);
  return generation === undefined ? null : planIdOf(view, action, generation);
}
