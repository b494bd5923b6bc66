/**
 * What a view of a lease tells beyond its record: who holds it, how its watchdog is, and the whole
 * of it under the names of `--json`. Pure; asks nobody.
 *
 * Always: under R3 somebody holds the key who has written nothing yet, so that the record is that
 * of an earlier run and names nobody.
 */
import type { FoundProcess } from "../core/evidence.ts";
import { renderKey } from "../core/lease-key.ts";
import type { LeaseRecord, ProcessIdentity } from "../core/lease-record.ts";
import { blockedAfterMs } from "../core/main-loop-count.ts";
import { mergeShown } from "../lease/gather.ts";
import type { LeaseView } from "./leases.ts";

/** Whether somebody runs under the key, as far as the kernel's lock tells. */
export function isTaken({ evidence }: LeaseView): boolean {
  return evidence.lock.kind === "held";
}

/**
 * Whether somebody may run under the key without our knowing: the lock cannot be asked, or it was
 * replaced, so that the one which is free proves nothing about its owner.
 */
export function mayBeTaken({ evidence, verdict }: LeaseView): boolean {
  if (evidence.lock.kind === "unaskable") return true;
  return verdict.because === "lock-replaced" || verdict.because === "owner-unread";
}

/** The run that the record names, where that is the one which holds the key, or has left it. */
export function runIdOf({ evidence, verdict }: LeaseView): string | undefined {
  if (verdict.rule === "R3") return undefined;
  return evidence.source.kind === "read" ? evidence.source.runId : undefined;
}

export function jobOf({ key, evidence, verdict }: LeaseView): string | undefined {
  if (verdict.rule !== "R3" && evidence.record !== undefined) return evidence.record.job;
  return key.kind === "job" ? key.name : undefined;
}

/** Pid and start time of the owner, from the record or else from its slot. */
export function ownerOf({ evidence, verdict }: LeaseView): ProcessIdentity | undefined {
  const { record, slot } = evidence;
  if (verdict.rule === "R3" || (record !== undefined && isOfNobody(record))) return undefined;
  if (record !== undefined) return { pid: record.pid, start_time: record.pid_start_time };
  const owner = slot?.body?.owner;
  return owner === undefined ? undefined : { pid: owner.pid, start_time: owner.start_time };
}

/** A record that a repair has composed, of a generation whose owner is not known. */
function isOfNobody({ pid, pid_start_time, state }: LeaseRecord): boolean {
  return state === "released" && pid === 1 && pid_start_time === 0;
}

/** How long the main loop had not counted as of the last beat; undefined where nothing tells. */
export function mainLoopAgeMs({ evidence }: LeaseView): number | undefined {
  const head = evidence.slot?.head;
  if (head === undefined) return undefined;
  const ageMs = head.monotonicMs - head.mainLoopMs;
  return Number.isFinite(ageMs) ? Math.max(0, ageMs) : undefined;
}

/** The beats go on and the main loop does not; undefined: this cannot be told of a silent owner. */
export function isMainLoopBlocked(view: LeaseView): boolean | undefined {
  const ageMs = mainLoopAgeMs(view);
  if (view.verdict.because !== "beat-fresh" || ageMs === undefined) return undefined;
  // Where no record tells the interval, the most that a loop may be silent.
  return ageMs > blockedAfterMs(view.evidence.record?.heartbeat_interval_ms ?? Infinity);
}

/** Why the lock cannot be asked or the record not be read; undefined: both are fine. */
export function troubleOf({ evidence }: LeaseView): string | undefined {
  const { lock, source } = evidence;
  if (lock.kind === "unaskable") return `the lock cannot be asked: ${lock.reason}`;
  if (source.kind === "unreadable") return `the record cannot be read: ${source.reason}`;
  return undefined;
}

/** A lease as `--json` shows it. A contract; ignore unknown fields. */
export function showLease(view: LeaseView): Record<string, unknown> {
  const { key, evidence, verdict } = view;
  const { tree, beatAgeMs } = evidence;
  const loopAgeMs = mainLoopAgeMs(view);
  return {
    key: renderKey(key),
    verdict: verdict.name,
    rule: verdict.rule,
    because: verdict.because,
    lock: evidence.lock.kind,
    trouble: troubleOf(view) ?? null,
    ...mergeShown(evidence),
    heartbeat_age_ms: beatAgeMs === undefined ? null : Math.round(beatAgeMs),
    main_loop_age_ms: loopAgeMs === undefined ? null : Math.round(loopAgeMs),
    is_main_loop_blocked: isMainLoopBlocked(view) ?? null,
    is_repair_at_work: evidence.repairer !== undefined,
    repairer_pid: evidence.repairer?.pid ?? null,
    waiting_start_pid: evidence.waitingStart?.pid ?? null,
    fence_taken: evidence.fence?.isTaken ?? null,
    fenced_by: (evidence.fence?.by ?? []).map(({ pid, command }) => ({ pid, command })),
    survivors: tree === "unread" ? null : tree.members.map(showProcess),
    suspects: tree === "unread" ? null : tree.suspects.map(showProcess),
  };
}

function showProcess({ pid, start_time, command, isSignalable }: FoundProcess): object {
  return { pid, start_time, command, is_signalable: isSignalable };
}
