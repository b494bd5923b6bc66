/**
 * The git process that has started a hook, found by its command line on the way up from us: whether
 * it was told `--no-verify`. Decides nothing; git's words are core/git-words.ts.
 *
 * Always: what cannot be read was told nothing. Clock: none. State after a crash: none.
 */
import { readFileSync } from "node:fs";
import { isGit, skipsVerify } from "../core/git-words.ts";
import { readStat } from "../os/proc.ts";

/** Shells of hook managers may be in between; more than this is none of git's. */
const MOST_ANCESTORS = 32;

/**
 * Looks at the nearest git, and at those of git that have started it: `git pull` starts `git
 * merge`, `git push` what writes at a remote on this machine.
 * @param pid  the hook's own
 */
export function wantsNoHooks(pid: number): boolean {
  let isAmongGits = false;
  let above = readStat(pid)?.ppid ?? 0;
  for (let step = 0; above > 1 && step < MOST_ANCESTORS; step += 1) {
    const argv = readArguments(above);
    if (isGit(argv)) {
      isAmongGits = true;
      if (skipsVerify(argv)) return true;
    } else if (isAmongGits) {
      return false;
    }
    above = readStat(above)?.ppid ?? 0;
  }
  return false;
}

function readArguments(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return []; // ENOENT, ESRCH: gone. EACCES: not ours to read. It was told nothing.
  }
}
