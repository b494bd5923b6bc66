/**
 * The recorded owner of a lease, held against this machine: each comparison a fact, or `unread`
 * where one of its two sides is not known. Knows nothing of locks and verdicts.
 *
 * Guarantees: a pid is looked up only where boot, pid namespace and time namespace are ours,
 * because a pid counts within its namespace and start times shift between time namespaces
 * (pid_namespaces(7), time_namespaces(7)). Clock: MONOTONIC, compared with the beat's only within
 * one boot and time namespace. Crash behaviour: none, nothing is written.
 */
import type { Fact, LeaseEvidence } from "../core/evidence.ts";
import type { LeaseRecord, ProcessIdentity, Slot } from "../core/lease-record.ts";
import { isAlive, type Machine } from "../os/machine.ts";
import type { LastGeneration } from "./last-generation.ts";

/** What is recorded; undefined: this source does not tell. */
export interface RecordedOwner {
  readonly identity: ProcessIdentity;
  readonly bootId: string;
  readonly machineId: string | null | undefined;
  readonly host: string | undefined;
  readonly pidNamespace: string;
  readonly timeNamespace: string | null;
  readonly lockInode: string;
}

export interface OwnerFindings {
  readonly ownerAlive: Fact;
  readonly sameBoot: Fact;
  readonly sameMachine: Fact;
  readonly namespaceContained: Fact;
  readonly recordedPids: LeaseEvidence["recordedPids"];
  readonly sameLockInode: Fact;
  readonly beatAgeMs: number | undefined;
}

/** What is there now. */
export interface OwnerSight {
  readonly machine: Machine;
  /** Of the path of the lock; undefined: there is no file. */
  readonly lockInode: string | undefined | "unread";
  /** CLOCK_MONOTONIC. */
  readonly nowMs: number;
  readonly isAlive: (identity: ProcessIdentity) => Fact;
}

export function findRecordedOwner(last: LastGeneration): RecordedOwner | undefined {
  if (last.record !== undefined) return ownerOfRecord(last.record);
  return last.slot === undefined ? undefined : ownerOfSlot(last.slot);
}

function ownerOfRecord(record: LeaseRecord): RecordedOwner {
  return {
    identity: { pid: record.pid, start_time: record.pid_start_time },
    bootId: record.boot_id,
    machineId: record.machine_id,
    host: record.host,
    pidNamespace: record.pid_namespace,
    timeNamespace: record.time_namespace,
    lockInode: record.lock_inode,
  };
}

function ownerOfSlot({ head, body }: Slot): RecordedOwner | undefined {
  if (body === undefined) return undefined;
  return {
    identity: { pid: body.owner.pid, start_time: body.owner.start_time },
    bootId: head.bootId,
    machineId: undefined,
    host: undefined,
    pidNamespace: body.pidNamespace,
    timeNamespace: body.timeNamespace,
    lockInode: body.lockInode,
  };
}

const NOTHING_RECORDED: OwnerFindings = {
  ownerAlive: "unread",
  sameBoot: "unread",
  sameMachine: "unread",
  namespaceContained: "unread",
  recordedPids: "incomparable",
  sameLockInode: "unread",
  beatAgeMs: undefined,
};

export function compareOwner(
  recorded: RecordedOwner | undefined,
  slot: Slot | undefined,
  sight: OwnerSight,
): OwnerFindings {
  if (recorded === undefined) return NOTHING_RECORDED;
  const { machine } = sight;
  const sameBoot = compare(recorded.bootId, machine.bootId);
  const sameTime = compare(recorded.timeNamespace, machine.timeNamespace);
  const namespaceContained = compareNamespaces(recorded.pidNamespace, machine);
  const recordedPids =
    sameBoot === "yes" && sameTime === "yes" && namespaceContained === "yes"
      ? countedIn(recorded.pidNamespace, machine)
      : "incomparable";
  return {
    sameBoot,
    sameMachine: both(
      compare(recorded.machineId, machine.machineId),
      compare(recorded.host, machine.host),
    ),
    namespaceContained,
    recordedPids,
    sameLockInode: sight.lockInode === "unread" ? "unread" : yesIf(recorded, sight.lockInode),
    ownerAlive: recordedPids === "ours" ? sight.isAlive(recorded.identity) : "unread",
    beatAgeMs: sameTime === "yes" ? ageOf(slot, sight) : undefined,
  };
}

/** Whether the owner that a record names lives, as far as it can be looked up from here. */
export function isOwnerAlive(record: LeaseRecord, machine: Machine): Fact {
  const sight = { machine, lockInode: "unread", nowMs: 0, isAlive } as const;
  return compareOwner(ownerOfRecord(record), undefined, sight).ownerAlive;
}

function yesIf(recorded: RecordedOwner, lockInode: string | undefined): Fact {
  return recorded.lockInode === lockInode ? "yes" : "no";
}

/** What is empty or not told cannot be compared; null is an answer like any other. */
function compare(one: string | null | undefined, other: string | null | undefined): Fact {
  if (one === undefined || other === undefined || one === "" || other === "") return "unread";
  return one === other ? "yes" : "no";
}

function both(one: Fact, other: Fact): Fact {
  if (one === "no" || other === "no") return "no";
  return one === "yes" && other === "yes" ? "yes" : "unread";
}

/**
 * Whether every process of that namespace can be seen from ours. Two that differ, ours not the
 * initial one: it may lie below ours, but nothing proves that once all its processes are gone.
 */
function compareNamespaces(recorded: string, machine: Machine): Fact {
  if (!machine.seesOwnProc) return "unread";
  return machine.isInitialPidNamespace ? "yes" : compare(recorded, machine.pidNamespace);
}

/** @param pidNamespace  one that is ours or below ours */
function countedIn(pidNamespace: string, machine: Machine): LeaseEvidence["recordedPids"] {
  const isOurs = compare(pidNamespace, machine.pidNamespace);
  if (isOurs === "unread") return "incomparable";
  return isOurs === "yes" ? "ours" : "below-ours";
}

function ageOf(slot: Slot | undefined, { machine, nowMs }: OwnerSight): number | undefined {
  if (slot === undefined || slot.head.bootId !== machine.bootId) return undefined;
  const ageMs = nowMs - slot.head.monotonicMs;
  return Number.isFinite(ageMs) ? ageMs : undefined;
}
