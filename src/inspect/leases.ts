/**
 * The leases of a state directory with their evidence and verdicts, for whoever only wants to know.
 * Decides nothing: evidence is lease/gather.ts, verdicts are core/lease-verdict.ts.
 *
 * Guarantees: read only; a starter is disturbed for the moment of a LOCK_SH and no longer.
 * Non-guarantees: that the facts are of one instant. The processes of dead owners are looked for
 * once, for all keys together, where a newcomer looks three times. Clock: MONOTONIC, by the
 * gathering. Crash behaviour: none, nothing is written.
 */
import type { FoundProcess, LeaseEvidence, TreeFinding } from "../core/evidence.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import { decideVerdict, type Verdict } from "../core/lease-verdict.ts";
import { deadRunOf, type Survivor } from "../core/survivors.ts";
import type { DeadRun, KeptProcesses } from "../core/survivors-view.ts";
import { Journal } from "../journal/journal.ts";
import { lookAtFence } from "../lease/fence-look.ts";
import { placeOf } from "../lease/files/places.ts";
import { gatherEvidence, type Looker } from "../lease/gather.ts";
import { listKeys } from "../lease/list.ts";
import { isAlive, readMachine } from "../os/machine.ts";
import { readCommand } from "../os/proc.ts";
import { judge } from "../tree/kill-pass.ts";
import { scanInWorker } from "../tree/scan-handle.ts";
import type { ScanResult } from "../tree/scan.ts";
import { checkLeasesDirectory, findPlaceRefusal } from "./lease-places.ts";

export interface LeaseView {
  readonly key: LeaseKey;
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
}

/** How the processes of a dead owner are looked for. */
export interface TreeLook {
  /** Of tree/scan-worker.ts, known to the program's front door only. */
  readonly scanUrl: string | URL;
  /** What was registered by `watchdog keep` within a run; that registry is a matter of `run/`. */
  readonly readKept: (runId: string) => KeptProcesses;
}

export interface LeaseQuestion {
  readonly stateDirectory: string;
  /** Undefined: every key that has a lease directory. */
  readonly keys?: readonly LeaseKey[];
  /** Undefined: all of them. */
  readonly isAsked?: (view: LeaseView) => boolean;
}

/**
 * Looks at the processes only where the verdict on some lease depends on them, and then once.
 *
 * @throws WatchdogError "state.unusable", "lease.unusable": /proc or a directory cannot be read
 * @throws WatchdogError "lease.refused": `leases` is a link, a file or somebody else's
 */
export async function readLeases(question: LeaseQuestion, look: TreeLook): Promise<LeaseView[]> {
  const views = gatherLeases(question);
  return views.some(wantsLook) ? lookForTrees(views, look) : views;
}

/** Without a look at the processes: trees of dead owners stay `unread`. @throws as `readLeases` */
export function gatherLeases(question: LeaseQuestion): LeaseView[] {
  const { stateDirectory, isAsked = () => true } = question;
  checkLeasesDirectory(stateDirectory);
  const keys = question.keys ?? listKeys(stateDirectory);
  if (keys.length === 0) return [];
  // What goes wrong with the journal is in the evidence: it is `unread` there.
  const journal = new Journal(stateDirectory, () => undefined);
  const looker: Looker = {
    stateDirectory,
    machine: readMachine(),
    journal: (key) => journal.highestLease(key),
  };
  try {
    return keys
      .map((key) => viewOf(withFence(stateDirectory, gather(looker, key))))
      .filter(isAsked);
  } finally {
    journal.close(0);
  }
}

/** A free lock proves nothing in a place that every newcomer refuses. */
function gather(looker: Looker, key: LeaseKey): LeaseEvidence {
  const evidence = gatherEvidence(looker, key);
  if (evidence.lock.kind !== "free") return evidence;
  const reason = findPlaceRefusal(looker.stateDirectory, key);
  if (reason === undefined) return evidence;
  return gatherEvidence(looker, key, { kind: "unaskable", reason });
}

/** Of a key that its owner has, an operation under its fence is no news. */
function withFence(stateDirectory: string, evidence: LeaseEvidence): LeaseEvidence {
  const { rule } = decideVerdict(evidence);
  if (rule === "R1" || rule === "R2") return evidence;
  return { ...evidence, fence: lookAtFence(placeOf(stateDirectory, evidence.key), evidence.lock) };
}

function viewOf(evidence: LeaseEvidence): LeaseView {
  return { key: evidence.key, evidence, verdict: decideVerdict(evidence) };
}

/** The verdict would be another one if the tree had been looked at. */
function wantsLook({ verdict }: LeaseView): boolean {
  return verdict.because === "tree-unread";
}

async function lookForTrees(views: readonly LeaseView[], look: TreeLook): Promise<LeaseView[]> {
  const processes = await scanInWorker(look.scanUrl);
  return views.map((view) => {
    const run = wantsLook(view) ? deadRunOf(view.evidence) : undefined;
    if (run === undefined) return view;
    return viewOf({ ...view.evidence, tree: findTree(run, processes, look) });
  });
}

function findTree(
  run: DeadRun,
  processes: ScanResult,
  { readKept }: TreeLook,
): TreeFinding | "unread" {
  if (processes === "unread") return "unread";
  const found = judge({ run, processes, readKept: () => readKept(run.runId) });
  const members = found.members.map(nameProcess);
  // One look shows also who is just ending, and cannot be read for that.
  const isThere = (one: FoundProcess): boolean => isAlive(one) !== "no";
  const suspects = found.suspects.map(nameProcess).filter(isThere);
  return found.isBlind ? { members, suspects, isBlind: true } : { members, suspects };
}

function nameProcess(seen: Survivor): FoundProcess {
  return {
    pid: seen.pid,
    start_time: seen.startTicks,
    command: readCommand(seen.pid),
    isSignalable: seen.isSignalable,
    isAncestor: seen.isAncestor,
  };
}
