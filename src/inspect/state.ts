/**
 * The state directory of a command that only looks: whether it may be trusted, and nothing more.
 * Always: nothing is created; a directory that is not there is an empty answer. Clock: none.
 */
import { findStateDirectory } from "../os/state-dir.ts";
import { refuseNewerFormat } from "../os/state-format.ts";

/**
 * @throws WatchdogError "state.refused" (78): a link, somebody else's, writable by others, of a
 *   newer layout; "state.unusable" (125): the system says no
 */
export function checkPlace(stateDirectory: string): void {
  if (findStateDirectory(stateDirectory)) refuseNewerFormat(stateDirectory);
}
