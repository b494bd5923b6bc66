/**
 * The fences of the keys that are being acquired: step A6. While they are held no fenced operation
 * starts, and none was in progress when they were had.
 *
 * Guarantees: a fence that is handed out is the one that the path leads to. Non-guarantees: who
 * holds a fence that is busy. Clock: none. Crash behaviour: the kernel frees them; an empty file
 * remains.
 */
import { closeSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import { renderKey } from "../../core/lease-key.ts";
import { faultPoint } from "../../os/faults.ts";
import { nameErrno } from "../../os/sys.ts";
import { MOST_REPLACEMENTS, replacedTooOften, troubleWith } from "../files/failure.ts";
import { isThePath, openLock, tryLock } from "../files/lock-file.ts";
import type { LeasePlace } from "../files/places.ts";

/** Fences that are held, in the course of one claim. */
export class Fences {
  readonly #fds = new Map<LeasePlace, number>();

  /**
   * Tries for the fences that are not held yet, without waiting. Those that are had stay held: an
   * operation of the dead owner's that has not started must not start any more.
   *
   * @returns the places whose fence somebody holds
   * @throws WatchdogError "lease.refused", "lease.unusable"; what is held stays so until `release`
   */
  take(places: readonly LeasePlace[]): LeasePlace[] {
    return places.filter((place) => !this.#fds.has(place) && !this.#takeOne(place));
  }

  /** @throws if `take` has not had it */
  fdOf(place: LeasePlace): number {
    const fd = this.#fds.get(place);
    if (fd === undefined) throw new Error(`the fence of ${renderKey(place.key)} is not held`);
    return fd;
  }

  release(): void {
    for (const fd of this.#fds.values()) closeSync(fd);
    this.#fds.clear();
  }

  #takeOne(place: LeasePlace): boolean {
    for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
      faultPoint("acquire.A6", { key: renderKey(place.key), isLocked: true, isFenced: false });
      const opened = openLock(place.fence, "create");
      // The directory is gone under our lock: a person has removed it.
      if (opened.kind === "missing") continue;
      if (opened.kind !== "open") throw troubleWith(place.fence, opened);
      const answer = lockFence(opened.fd, place);
      if (answer === "locked") this.#fds.set(place, opened.fd);
      if (answer !== "replaced") return answer === "locked";
    }
    throw replacedTooOften(place);
  }
}

/** Whether somebody has it at this moment; false where nothing can be told. Makes no file. */
export function isFenceBusy({ fence }: LeasePlace): boolean {
  const opened = openLock(fence, "existing");
  if (opened.kind !== "open") return false;
  try {
    return tryLock(opened.fd, "exclusive") === "busy";
  } finally {
    closeSync(opened.fd);
  }
}

function lockFence(fd: number, place: LeasePlace): "locked" | "busy" | "replaced" {
  let isKept = false;
  try {
    const answer = tryLock(fd, "exclusive");
    if (answer === "busy") return "busy";
    if (answer !== "locked") {
      const reason = `${place.fence}: the lock cannot be asked: ${nameErrno(answer.errno)}`;
      throw new WatchdogError("lease.unusable", reason, { hint: `ls -l ${place.fence}` });
    }
    isKept = isThePath(fd, place.fence);
    return isKept ? "locked" : "replaced";
  } finally {
    if (!isKept) closeSync(fd);
  }
}
