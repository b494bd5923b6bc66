/**
 * What a repair has to know of a lease beside its evidence: which files stand in its places, and
 * whether its owner can be signalled. Gathers; decides nothing (core/repair-plan.ts).
 *
 * Guarantees: read only, no link is followed, nobody is signalled. Non-guarantees: that it stays
 * so. Clock: none. Crash behaviour: none.
 */
import { lstatSync } from "node:fs";
import type { LeaseEvidence } from "../core/evidence.ts";
import type { FileKind, OwnerSight, RepairFacts } from "../core/repair-plan.ts";
import type { Machine } from "../os/machine.ts";
import { readStat } from "../os/proc.ts";
import { inodeAt } from "./files/lock-file.ts";
import { codeOf } from "./files/own-file.ts";
import type { LeasePlace } from "./files/places.ts";
import { readRecord } from "./files/record-file.ts";

/** Of tree/, which is no room of ours: whom nobody may signal, and whom we have no right to. */
export interface SignalSight {
  readonly protectionOf: (pid: number) => "process-one" | "self" | "ancestor" | undefined;
  readonly maySignal: (pid: number) => boolean;
}

export function readRepairFacts(
  place: LeasePlace,
  evidence: LeaseEvidence,
  { machine, sight }: { readonly machine: Machine; readonly sight: SignalSight },
): RepairFacts {
  const inode = inodeAt(place.lock);
  return {
    bootId: machine.bootId,
    lockFile: kindAt(place.lock),
    lockInode: inode === undefined || inode === "unread" ? null : inode,
    fenceFile: kindAt(place.fence),
    recordFile: readRecord(place.record).kind,
    owner: lookAtOwner(evidence, sight),
  };
}

/** What stands there, without opening it. */
export function kindAt(path: string): FileKind {
  let found: ReturnType<typeof lstatSync>;
  try {
    found = lstatSync(path);
  } catch (cause) {
    return codeOf(cause) === "ENOENT" ? "missing" : "unread"; // EACCES, ENOTDIR: told by the lock
  }
  if (found === undefined) return "missing";
  if (found.isSymbolicLink()) return "link";
  if (found.isDirectory()) return "directory";
  if (found.isFIFO()) return "fifo";
  return found.isFile() ? "regular" : "special";
}

/** Pids are looked up only where they are counted as ours. */
function lookAtOwner(evidence: LeaseEvidence, sight: SignalSight): OwnerSight {
  const { record, slot, recordedPids } = evidence;
  const body = slot?.body?.owner;
  const owner =
    record === undefined ? body : { pid: record.pid, start_time: record.pid_start_time };
  if (owner === undefined || recordedPids !== "ours") return { state: "unread", signal: "unread" };
  const stat = readStat(owner.pid);
  if (evidence.ownerAlive === "no") return { state: "gone", signal: "unread" };
  if (stat === undefined || stat.startTicks !== owner.start_time) {
    return { state: evidence.ownerAlive === "yes" ? "gone" : "unread", signal: "unread" };
  }
  const signal =
    sight.protectionOf(owner.pid) ?? (sight.maySignal(owner.pid) ? "allowed" : "another-user");
  return { state: stat.state === "T" ? "stopped" : "running", signal };
}
