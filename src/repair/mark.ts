/**
 * Writing down that a generation is over whose owner could not say so: the record says `released`
 * with the mark of the repair, the old one is kept beside it, and the journal has the run as
 * abandoned. Decides nothing; whoever calls holds the key's lock and fence, and has just looked.
 *
 * Guarantees: nothing is deleted; the number stays, so that the next grant gets a larger one; a
 * reader finds the old record or the new one. Non-guarantees: that the journal takes its line at
 * once (it waits in the spool then). Clock: MONOTONIC in the mark, the wall clock for people. Crash
 * behaviour: a kept copy, and the old record or the new one.
 */
import { recordOfLost } from "../core/burial.ts";
import { repairMarkOf } from "../core/evidence.ts";
import { renderKey, type LeaseKey } from "../core/lease-key.ts";
import type { LeaseRecord, RepairMark } from "../core/lease-record.ts";
import type { RepairView } from "../core/repair-plan.ts";
import type { RunRecord } from "../core/run-record.ts";
import { keepAside, keepCopy, type Kept } from "../lease/files/kept-record.ts";
import { removeEnding } from "../lease/files/owner-ending.ts";
import type { LeasePlace } from "../lease/files/places.ts";
import { LONGEST_RECORD_BYTES, readRecord, writeRecord } from "../lease/files/record-file.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import type { Machine } from "../os/machine.ts";
import type { RepairLooker } from "./gather.ts";

/** A released generation names no process that could be looked up. */
const NOBODY_PID = 1;
/** The command of a record that no run has written. */
const COMPOSED = "(written by watchdog repair)";

export function makeMark(
  machine: Machine,
  planId: string,
  action: RepairMark["action"],
): RepairMark {
  return {
    plan_id: planId,
    action,
    at: new Date(wallNow()).toISOString(),
    boot_id: machine.bootId,
    time_namespace: machine.timeNamespace,
    monotonic_ms: monotonicNow(),
    by: `${machine.user}@${machine.host}`,
  };
}

export interface Marking {
  readonly looker: RepairLooker;
  readonly view: RepairView;
  readonly mark: RepairMark;
  readonly build: RunRecord["watchdog"];
}

/**
 * A generation that its owner has given back is not kept twice: nothing of it is lost.
 *
 * @returns "too-many-kept": nothing was written, because there is no name left for the old record
 * @throws the error of the system call; the old record is whole then
 */
export function markReleased({ looker, view, mark, build }: Marking): "marked" | "too-many-kept" {
  const { evidence } = view;
  const { key, source } = evidence;
  if (source.kind !== "read") throw new Error("a generation that is marked is known");
  const place = looker.placeOf(key);
  const old = evidence.record?.run_id === source.runId ? evidence.record : undefined;
  const isGivenBack = source.isReleased && old !== undefined;
  if (!isGivenBack && keepOld(place, view).kind === "too-many") return "too-many-kept";
  const { generation, runId } = source;
  const before = repairMarkOf(evidence);
  const base = old ?? composeRecord(looker.machine, key, { generation, runId });
  const record: LeaseRecord = {
    ...base,
    state: "released",
    released_at: base.released_at ?? new Date(wallNow()).toISOString(),
    repair: before?.action === "ended-owner" ? before : mark,
  };
  faultPoint("repair.mark", { key: renderKey(key), generation, isLocked: true });
  writeRecord(place.record, record);
  removeEnding(place, generation);
  if (!source.isReleased) tellJournal(looker, view, build);
  return "marked";
}

/** What cannot be read is moved as it is: a copy of it might not be one. */
function keepOld(place: LeasePlace, { facts }: RepairView): Kept {
  return facts.recordFile === "read"
    ? keepCopy(place.record, LONGEST_RECORD_BYTES)
    : keepAside(place.record);
}

/** Safe to repeat: a run that has ended already stays as it is. */
export function tellJournal(
  looker: RepairLooker,
  { evidence, verdict }: RepairView,
  build: RunRecord["watchdog"],
): void {
  const { key, source, record } = evidence;
  if (source.kind !== "read") return;
  looker.journal.put({
    kind: "run-abandoned",
    at: wallNow(),
    runId: source.runId,
    by: "repair",
    run: record?.run_id === source.runId ? recordOfLost(record, build) : null,
    leases: [{ ...key, generation: source.generation }],
    because: `${verdict.rule} ${verdict.because}`,
  });
}

/** For an act whose last line was not written: the record is marked, the journal may not know. */
export function tellFinished(
  looker: RepairLooker,
  key: LeaseKey,
  build: RunRecord["watchdog"],
): void {
  const reading = readRecord(looker.placeOf(key).record);
  if (reading.kind !== "read") return;
  const { record } = reading;
  looker.journal.put({
    kind: "run-abandoned",
    at: wallNow(),
    runId: record.run_id,
    by: "repair",
    run: record.command === COMPOSED ? null : recordOfLost(record, build),
    leases: [{ ...key, generation: record.generation }],
    because: "finished-later",
  });
}

/**
 * A record for a generation of which nothing can be read but its number, if that: it says released,
 * so that the fields about its owner are never asked.
 */
export function composeRecord(
  machine: Machine,
  key: LeaseKey,
  known: { readonly generation: number; readonly runId?: string },
): LeaseRecord {
  const now = new Date(wallNow()).toISOString();
  const runId = known.runId ?? Bun.randomUUIDv7();
  return {
    format: 1,
    kind: key.kind,
    name: key.name,
    generation: known.generation,
    state: "released",
    run_id: runId,
    run_path: runId,
    job: key.name,
    runner: `${machine.user}@${machine.host}`,
    host: machine.host,
    machine_id: machine.machineId,
    boot_id: machine.bootId,
    pid: NOBODY_PID,
    pid_start_time: 0,
    pid_namespace: machine.pidNamespace,
    time_namespace: machine.timeNamespace,
    lock_inode: "0:0",
    uid: machine.uid,
    session_started_at: now,
    acquired_at: now,
    released_at: now,
    heartbeat_interval_ms: 10_000,
    stale_after_ms: 40_000,
    lane: null,
    task_id: null,
    worktree: null,
    branch: null,
    command: COMPOSED,
    cgroup: null,
    adopters: [],
    previous: null,
  };
}
