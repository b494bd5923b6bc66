/**
 * One patrol at a time: the lock of `patrol.lock` in the state directory. Knows nothing else.
 *
 * Guarantees: of two that patrol one does; the kernel frees the lock when its holder dies. Clock:
 * none. Crash behaviour: an empty file remains, and it is nobody's.
 */
import { closeSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { troubleWith } from "../lease/files/failure.ts";
import { isThePath, openLock, tryLock } from "../lease/files/lock-file.ts";
import { monotonicNow } from "../os/clock.ts";
import { faultPoint } from "../os/faults.ts";
import { findLockHolders } from "../os/lock-holders.ts";
import { nameErrno } from "../os/sys.ts";
import { pauseThread } from "../os/timers.ts";

export interface PatrolLock {
  release(): void;
}

export type LockedPatrol =
  | { readonly kind: "locked"; readonly lock: PatrolLock }
  /** @property pid  of who has it; undefined: it cannot be told */
  | { readonly kind: "busy"; readonly pid: number | undefined }
  /** There is no state directory, so that there is nothing to look at. */
  | { readonly kind: "no-state" };

/** One alone takes some seconds; one that goes on for ever is not waited for longer. */
const LOOP_WAIT_MS = 10_000;
const PAUSE_MS = 100;
const MOST_REPLACEMENTS = 5;
/** A look at all descriptors of the machine. */
const LOOK_MS = 200;

/**
 * For a patrol that is to go on for ever: a single one that is just at work does not send it away.
 * @throws as `lockPatrol`
 */
export function waitForPatrol(stateDirectory: string): LockedPatrol {
  const until = monotonicNow() + LOOP_WAIT_MS;
  let locked = lockPatrol(stateDirectory);
  while (locked.kind === "busy" && monotonicNow() < until) {
    pauseThread(PAUSE_MS);
    locked = lockPatrol(stateDirectory);
  }
  return locked;
}

/** @throws WatchdogError "lease.refused", "lease.unusable": the file cannot be had */
export function lockPatrol(stateDirectory: string): LockedPatrol {
  const path = `${stateDirectory}/patrol.lock`;
  for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
    faultPoint("patrol.lock", { path });
    const opened = openLock(path, "create");
    if (opened.kind === "missing") return { kind: "no-state" };
    if (opened.kind !== "open") throw troubleWith(path, opened);
    const { fd } = opened;
    const answer = tryLock(fd, "exclusive");
    if (answer === "locked" && isThePath(fd, path)) {
      return { kind: "locked", lock: { release: () => closeSync(fd) } };
    }
    closeSync(fd);
    if (answer === "busy") return { kind: "busy", pid: findLockHolders(path, LOOK_MS)[0]?.pid };
    if (answer !== "locked") {
      throw new WatchdogError("lease.unusable", `${path}: ${nameErrno(answer.errno)}`);
    }
  }
  throw new WatchdogError("lease.unusable", `${path} is replaced again and again`);
}
