/**
 * One repair at a time: the lock of `repair.lock` in the state directory. Knows nothing of leases.
 *
 * Guarantees: of two that want to act one does; the kernel frees the lock when its holder dies.
 * Clock: none. Crash behaviour: an empty file remains, and it is nobody's.
 */
import { closeSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { troubleWith } from "../lease/files/failure.ts";
import { isThePath, type LockResult, openLock, tryLock } from "../lease/files/lock-file.ts";
import { repairLockOf } from "../lease/files/repairer.ts";
import { faultPoint } from "../os/faults.ts";
import { nameErrno } from "../os/sys.ts";
import { pauseThread } from "../os/timers.ts";

const MOST_REPLACEMENTS = 5;
const MOST_TRIES = 5;
const PAUSE_MS = 20;

export interface RepairLock {
  release(): void;
}

/**
 * @returns "no-state": there is no state directory, so that nothing can be wrong in it
 * @throws WatchdogError "lease.refused", "lease.unusable": the file cannot be had
 */
export function takeRepairLock(stateDirectory: string): RepairLock | "busy" | "no-state" {
  const path = repairLockOf(stateDirectory);
  for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
    faultPoint("repair.lock", { path, isLocked: false });
    const opened = openLock(path, "create");
    if (opened.kind === "missing") return "no-state";
    if (opened.kind !== "open") throw troubleWith(path, opened);
    const { fd } = opened;
    const answer = tryPatiently(fd);
    if (answer === "locked" && isThePath(fd, path)) return { release: () => closeSync(fd) };
    closeSync(fd);
    if (answer === "busy") return "busy";
    if (answer !== "locked") {
      throw new WatchdogError("repair.unusable", `${path}: ${nameErrno(answer.errno)}`);
    }
  }
  throw new WatchdogError("repair.unusable", `${path} is replaced again and again`);
}

/** Whoever only looks has it shared for a moment. */
function tryPatiently(fd: number): LockResult {
  let answer = tryLock(fd, "exclusive");
  for (let tries = 1; answer === "busy" && tries < MOST_TRIES; tries += 1) {
    pauseThread(PAUSE_MS);
    answer = tryLock(fd, "exclusive");
  }
  return answer;
}
