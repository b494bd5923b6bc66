/**
 * The lock of all repairs, `repair.lock` in the state directory, as others see it: whether a repair
 * is at work, and whether it is one that has the lock of a key. Decides nothing.
 *
 * Guarantees: makes no file, keeps nobody out for longer than a moment. Non-guarantees: the pid,
 * which cannot be told from another pid namespace (os/lock-holders.ts). Clock and crash behaviour:
 * none.
 */
import { closeSync } from "node:fs";
import type { Repairer } from "../../core/evidence.ts";
import { findLockHolders } from "../../os/lock-holders.ts";
import { openLock, tryLock } from "./lock-file.ts";

const NAME = "repair.lock";
/** A look at all descriptors is not worth the wait of a newcomer. */
const LOOK_MS = 50;

export function repairLockOf(stateDirectory: string): string {
  return `${stateDirectory}/${NAME}`;
}

/** Whether a repair acts at this moment. */
export function isRepairBusy(stateDirectory: string): boolean {
  const opened = openLock(repairLockOf(stateDirectory), "existing");
  if (opened.kind !== "open") return false;
  try {
    return tryLock(opened.fd, "shared") === "busy";
  } finally {
    closeSync(opened.fd);
  }
}

/** The repair that acts at this moment; undefined: none does. */
export function findRepairer(stateDirectory: string): Repairer | undefined {
  if (!isRepairBusy(stateDirectory)) return undefined;
  return { pid: findLockHolders(repairLockOf(stateDirectory), LOOK_MS)[0]?.pid ?? null };
}

/**
 * The repair that has the lock at this path, which is taken. Where nobody can be named, a repair
 * that is at work at all is taken for it: that only makes somebody wait.
 */
export function findRepairerOf(stateDirectory: string, lockPath: string): Repairer | undefined {
  const repairer = findRepairer(stateDirectory);
  if (repairer === undefined || repairer.pid === null) return repairer;
  const holders = findLockHolders(lockPath, LOOK_MS);
  const isOther = holders.length > 0 && !holders.some(({ pid }) => pid === repairer.pid);
  return isOther ? undefined : repairer;
}
