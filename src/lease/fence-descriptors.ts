/**
 * Descriptors of fences that a process was given by the operation that it is part of. Who outlives
 * the run on purpose must not keep them: nobody would ever be granted the lease again.
 *
 * Guarantees: only empty files that lie where a fence of some state directory lies are closed.
 * Non-guarantees: none of whoever else has the same open file. Clock: none. Crash behaviour: the
 * kernel closes what is left.
 */
import { closeSync, fstatSync, readlinkSync } from "node:fs";

/** The path of a fence in any state directory, as /proc/self/fd shows it, when it is gone too. */
const FENCE_PATH = /\/leases\/[a-z][a-z0-9-]*\/[^/]+\/fence( \(deleted\))?$/;

/** Closes those of the descriptors that are fences. @returns the others, in the same order */
export function closeFences(descriptors: readonly number[]): number[] {
  return descriptors.filter((fd) => {
    if (!isFence(fd)) return true;
    closeSync(fd);
    return false;
  });
}

function isFence(fd: number): boolean {
  try {
    if (!FENCE_PATH.test(readlinkSync(`/proc/self/fd/${fd}`))) return false;
    const found = fstatSync(fd);
    return found.isFile() && found.size === 0;
  } catch {
    return false; // EBADF, no /proc: nothing that could be told apart
  }
}
