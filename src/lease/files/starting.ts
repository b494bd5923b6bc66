/**
 * A start that has the lock of a key and waits for its dependencies, seen from outside: it has the
 * directory of the circuits open meanwhile (os/circuits-directory.ts), and nobody else does who has
 * such a lock. For people alone: nothing is decided by it.
 *
 * Guarantees: reads only, waits for nobody; whoever is named has the lock. Non-guarantees: of
 * another user or pid namespace none is seen. Clock and crash behaviour: none.
 */
import type { WaitingStart } from "../../core/evidence.ts";
import { circuitsDirectoryOf } from "../../os/circuits-directory.ts";
import { findLockTakerWith } from "../../os/lock-holders.ts";

/** @returns undefined: none was seen */
export function findWaitingStart(
  stateDirectory: string,
  lockPath: string,
): WaitingStart | undefined {
  const pid = findLockTakerWith(lockPath, circuitsDirectoryOf(stateDirectory));
  return pid === undefined ? undefined : { pid };
}
