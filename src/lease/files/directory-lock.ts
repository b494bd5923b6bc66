/**
 * A short lock on a directory itself, for the few files in it that several keys share.
 *
 * Guarantees: of those who use this on one directory one acts at a time. Non-guarantees: an order.
 * Clock: pauses only. Crash behaviour: the kernel frees the lock.
 */
import { closeSync, constants, openSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import { pauseThread } from "../../os/timers.ts";
import { tryLock } from "./lock-file.ts";
import { textOf } from "./own-file.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
/** Whoever holds it writes a small file or two: a second is long. */
const MOST_TRIES = 200;
const PAUSE_MS = 5;

/**
 * Acts while the directory is locked exclusively. Not to be nested: a second descriptor of our own
 * is kept out like anybody's.
 *
 * @throws WatchdogError "lease.unusable": the directory cannot be opened, or others had it for a
 *   second (a process that was stopped in between)
 */
export function withDirectoryLock<Result>(path: string, act: () => Result): Result {
  const fd = openDirectory(path);
  try {
    for (let tries = 0; tryLock(fd, "exclusive") !== "locked"; tries += 1) {
      if (tries >= MOST_TRIES) throw unusable(path, "another process has it locked", undefined);
      pauseThread(PAUSE_MS);
    }
    return act();
  } finally {
    closeSync(fd);
  }
}

function openDirectory(path: string): number {
  try {
    return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (cause) {
    throw unusable(path, textOf(cause), cause);
  }
}

function unusable(path: string, reason: string, cause: unknown): WatchdogError {
  return new WatchdogError("lease.unusable", `${path} cannot be used: ${reason}`, {
    hint: `ls -ld ${path}`,
    cause,
  });
}
