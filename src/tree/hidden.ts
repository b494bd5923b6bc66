/**
 * Whether a mount of /proc keeps living processes of a dead run from our sight: with `hidepid`
 * (proc(5)) those of other users look like gone. Decides nothing about who is a member, and signals
 * nobody but with the null signal (kill(2)).
 *
 * Guarantees: that nobody was found proves nothing where this says yes. Non-guarantees: that one of
 * the hidden is of the run. Clock: none. State after a crash: none.
 */
import type { DeadRun, SeenProcess } from "../core/survivors-view.ts";
import { isAlive } from "../os/machine.ts";

/**
 * Somebody recorded is missing in the look and lives; or processes of others are hidden, and those
 * of the run may be others', or are numbered in a namespace in which none of the hidden is found.
 */
export function mayBeHidden(run: DeadRun, processes: readonly SeenProcess[]): boolean {
  const isTranslated = run.countedIn !== null;
  const isOthers = run.ownerUid !== undefined && run.ownerUid !== process.getuid?.();
  if ((isTranslated || isOthers) && hidesOthers()) return true;
  if (isTranslated) return false;
  const seen = new Set(processes.map(({ pid }) => pid));
  return run.recorded.some((one) => !seen.has(one.pid) && isAlive(one) === "unread");
}

/** By process 1, which there always is: a start that does not fit is an answer, too. */
function hidesOthers(): boolean {
  return isAlive({ pid: 1, start_time: -1 }) === "unread";
}
