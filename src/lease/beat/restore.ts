/**
 * Getting the lock back after its file was removed or replaced (design, "Beat"): one attempt. Knows
 * no time; when to try again is the caller's matter.
 *
 * Guarantees: a lock is kept only if the path leads to it and nobody else was granted the key in
 * the meantime, as far as record and slots tell; every other descriptor is closed again, so that a
 * newcomer is not in our way nor we in its. The old lock is never given up. Non-guarantees: what
 * happened before the loss was noticed; between two beats a newcomer may have had the new file.
 * Clock: none. Crash behaviour: an empty lock file, or an empty directory, remains.
 */
import type { BeatLease, FoundOwner } from "./events.ts";
import type { BeatFiles } from "./files.ts";
import { decideStanding } from "./standing.ts";
import { nameErrno } from "../../os/sys.ts";
import { slotPath } from "../files/places.ts";

export type Restoring =
  | { readonly kind: "restored"; readonly fd: number; readonly inode: string }
  | { readonly kind: "lost"; readonly found: FoundOwner }
  /** Somebody holds the new file: a reader for a moment, or a newcomer that will be refused. */
  | { readonly kind: "busy" }
  | { readonly kind: "failed"; readonly reason: string };

/** @throws WatchdogError of the place, and errors of the system: this attempt has failed */
export function tryRestore(lease: BeatLease, files: BeatFiles): Restoring {
  files.makePlace(lease.place);
  const opened = files.openLock(lease.place.lock, "create");
  if (opened.kind === "missing") return { kind: "busy" }; // removed again at this moment
  if (opened.kind !== "open") return { kind: "failed", reason: `lock file: ${opened.reason}` };
  let answer: Restoring | undefined;
  try {
    answer = askNewLock(lease, opened, files);
    return answer;
  } finally {
    if (answer?.kind !== "restored") files.close(opened.fd);
  }
}

function askNewLock(
  lease: BeatLease,
  opened: { readonly fd: number; readonly inode: string },
  files: BeatFiles,
): Restoring {
  const locked = files.tryLock(opened.fd, "exclusive");
  if (locked === "busy") return findLoss(lease, opened.inode, files) ?? { kind: "busy" };
  if (locked !== "locked") return { kind: "failed", reason: nameErrno(locked.errno) };
  if (!files.isThePath(opened.fd, lease.place.lock)) return { kind: "busy" };
  const loss = findLoss(lease, opened.inode, files);
  return loss ?? { kind: "restored", fd: opened.fd, inode: opened.inode };
}

/** Whether somebody else was granted the key under the new file. */
function findLoss(lease: BeatLease, inode: string, files: BeatFiles): Restoring | undefined {
  const { place, generation, record } = lease;
  const own = { generation, run_id: record.run_id, lock_inode: inode };
  const standing = decideStanding(files.readRecord(place.record), own);
  if (standing.kind === "lost") return { kind: "lost", found: standing.found };
  // Under a lock that was not ours the newer version had the right to write it.
  if (standing.kind === "unknown") {
    return { kind: "lost", found: { generation: null, run_id: null } };
  }
  const isReadable = standing.kind === "ours" || standing.because === "other-lock";
  return isReadable ? undefined : findLossInSlots(lease, files);
}

/** Where the record tells nothing: a larger number alone is no grant, a beat under it is one. */
function findLossInSlots(lease: BeatLease, files: BeatFiles): Restoring | undefined {
  const newest = files.listSlots(lease.place)[0] ?? 0;
  if (newest <= lease.generation) return undefined;
  const slot = files.readSlot(slotPath(lease.place, newest));
  const runId = typeof slot === "string" ? undefined : slot.body?.runId;
  if (runId === undefined || runId === lease.record.run_id) return undefined;
  return { kind: "lost", found: { generation: newest, run_id: runId } };
}
