/** Views as a repair decides on them, made of a sample lease and changed where a test says so. */
import type { FoundProcess, LeaseEvidence } from "../../src/core/evidence.ts";
import { decideVerdict } from "../../src/core/lease-verdict.ts";
import type { OwnerSight, RepairFacts, RepairView } from "../../src/core/repair-plan.ts";
import { BOOT } from "./lease-samples.ts";
import { deadView, sampleView } from "./lease-views.ts";

export const ALLOWED: OwnerSight = { state: "running", signal: "allowed" };
export const STOPPED: OwnerSight = { state: "stopped", signal: "allowed" };

export function sampleFacts(changes: Partial<RepairFacts> = {}): RepairFacts {
  return {
    bootId: BOOT,
    lockFile: "regular",
    lockInode: "1:2",
    fenceFile: "regular",
    recordFile: "read",
    owner: ALLOWED,
    ...changes,
  };
}

export function viewOf(evidence: LeaseEvidence, facts: Partial<RepairFacts> = {}): RepairView {
  return { evidence, verdict: decideVerdict(evidence), facts: sampleFacts(facts) };
}

export function stalled(
  facts: Partial<RepairFacts> = {},
  changes: Partial<LeaseEvidence> = {},
): RepairView {
  return viewOf(sampleView({ beatAgeMs: 90_000, ...changes }).evidence, facts);
}

export function deserted(
  tree: LeaseEvidence["tree"],
  facts: Partial<RepairFacts> = {},
): RepairView {
  return viewOf(deadView(tree).evidence, facts);
}

export function found(pid: number, changes: Partial<FoundProcess> = {}): FoundProcess {
  const command = `work ${pid}`;
  return { pid, start_time: pid, command, isSignalable: true, isAncestor: false, ...changes };
}
