/**
 * The other process of the proof that locks exclude: `watchdog __lock-probe PATH`, which only
 * `watchdog doctor` starts. It asks for the lock of a file that its parent holds, says what it was
 * told, and stays until its standard input ends, holding what it was given.
 *
 * Guarantees: it never waits for a lock, and holds none that it was given by the kernel itself for
 * longer than its life. Clock: none. State after a crash: none.
 */
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { LOCK_PROBE_WORDS } from "../core/lock-probe.ts";
import { EAGAIN, LOCK_EX, LOCK_NB, sys } from "../os/sys.ts";

const { O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;

/** @throws the error of the system call: nobody hears an answer then, which is one */
export function probeLock(path: string): void {
  const fd = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  const result = sys.flock(fd, LOCK_EX | LOCK_NB);
  if (result === -EAGAIN) writeSync(1, LOCK_PROBE_WORDS.refused);
  else writeSync(1, result >= 0 ? LOCK_PROBE_WORDS.granted : LOCK_PROBE_WORDS.failed);
  closeSync(fd);
  const bytes = new Uint8Array(64);
  while (readSync(0, bytes) > 0) continue;
}
