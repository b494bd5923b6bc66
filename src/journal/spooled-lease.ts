/**
 * What the spool knows of a key: the end of a run may wait there when its successor asks.
 *
 * Always: the answer is that of the journal after the spool has been read in, as far as the files
 * can be read; nothing is written.
 */
import type { JournalLease } from "../core/evidence.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { NamedEntry } from "./apply.ts";
import type { JournalPlace } from "./places.ts";
import { listSpool, readSpooled } from "./spool.ts";

/** @throws the error of the system call */
export function readSpooledLease(
  place: JournalPlace,
  key: LeaseKey,
  known: JournalLease | undefined,
): JournalLease | undefined {
  let lease = known;
  for (const name of listSpool(place)) {
    const found = readSpooled(place, name);
    if (found.kind !== "entries") continue;
    for (const { entry } of found.entries) lease = followEntry(lease, key, entry);
  }
  return lease;
}

/** The same rules as in apply.ts: a number never falls, and only its own run releases it. Pure. */
export function followEntry(
  known: JournalLease | undefined,
  key: LeaseKey,
  entry: NamedEntry["entry"],
): JournalLease | undefined {
  if (!("leases" in entry)) return known;
  const lease = entry.leases.find((one) => renderKey(one) === renderKey(key));
  if (lease === undefined) return known;
  const runId = entry.kind === "run-abandoned" ? entry.runId : entry.run.run_id;
  const { generation } = lease;
  const isReleased = entry.kind === "run-ended" && entry.isReleased;
  if (known === undefined || generation > known.generation) {
    return { generation, runId, isReleased };
  }
  const isSame = generation === known.generation && runId === known.runId;
  return isSame && isReleased ? { ...known, isReleased } : known;
}
