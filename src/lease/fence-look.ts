/**
 * Who has the fence of a key, for whoever only wants to know: an operation that is in progress
 * keeps every newcomer out, although the key itself is free. Nothing is decided by the names.
 *
 * Guarantees: makes no file; holds the fence for a moment at most, and only where the key is free,
 * so that no operation of a living owner is disturbed. Non-guarantees: that it stays so. Clock:
 * MONOTONIC, for the look at who it is. Crash behaviour: the kernel frees it.
 */
import { closeSync, constants } from "node:fs";
import type { FenceLook, LockAnswer } from "../core/evidence.ts";
import { WatchdogError } from "../core/errors.ts";
import { findLockHolders } from "../os/lock-holders.ts";
import { nameErrno } from "../os/sys.ts";
import { tryLock } from "./files/lock-file.ts";
import { openOwnFile } from "./files/own-file.ts";
import type { LeasePlace } from "./files/places.ts";

/** Another reader has it for a moment, too. */
const MOST_TRIES = 3;
const NOT_ASKED = "not asked while the key is held, and nobody is seen to have it";

/** @param lock  the answer about the key's own lock, which is not ours */
export function lookAtFence({ fence }: LeasePlace, lock: LockAnswer): FenceLook {
  if (lock.kind === "unaskable") return unread("the lock of the key cannot be asked");
  if (lock.kind === "held") {
    const by = findLockHolders(fence);
    return by.length > 0 ? { isTaken: "yes", by } : unread(NOT_ASKED);
  }
  for (let tries = 1; ; tries += 1) {
    const answer = probe(fence);
    if (answer !== "busy") return answer;
    const by = findLockHolders(fence);
    if (by.length > 0 || tries === MOST_TRIES) return { isTaken: "yes", by };
  }
}

function unread(reason: string): FenceLook {
  return { isTaken: "unread", by: [], reason };
}

/** A shared lock would be had beside that of an operation. */
function probe(path: string): FenceLook | "busy" {
  const opened = openOwnFile(path, constants.O_RDONLY);
  if (opened.kind === "missing") return { isTaken: "no", by: [] };
  if (opened.kind !== "open") return unread(opened.reason);
  try {
    const answer = tryLock(opened.fd, "exclusive");
    if (answer === "busy") return "busy";
    return answer === "locked" ? { isTaken: "no", by: [] } : unread(nameErrno(answer.errno));
  } catch (cause) {
    if (!(cause instanceof WatchdogError)) throw cause;
    return unread(cause.message);
  } finally {
    closeSync(opened.fd);
  }
}
