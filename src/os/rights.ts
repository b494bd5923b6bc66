/**
 * Asks the policy for ourselves and a state directory (core/policy.ts decides). The file system has
 * its say before: who cannot open the directory does not come so far.
 *
 * Clock: none. State after a crash: none, nothing is written.
 */
import { lstatSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { decideRight, type PolicyFile, type Right, type RightAnswer } from "../core/policy.ts";
import { readCaller } from "./users.ts";

/** @param files  those with a `[policy]` table, in the order in which they are read */
export function askRight(
  right: Right,
  stateDirectory: string,
  files: readonly PolicyFile[],
): RightAnswer {
  const stateOwnerUid = findOwner(stateDirectory);
  return decideRight(right, readCaller(), { stateDirectory, stateOwnerUid, files });
}

/** @throws WatchdogError "rights.missing" (77) with what is missing and who can grant it */
export function requireRight(
  right: Right,
  stateDirectory: string,
  files: readonly PolicyFile[],
): void {
  const answer = askRight(right, stateDirectory, files);
  if (answer.kind === "granted") return;
  throw new WatchdogError("rights.missing", `right '${right}' is missing: ${answer.what}`, {
    hint: "watchdog doctor",
  });
}

function findOwner(path: string): number | undefined {
  try {
    return lstatSync(path).uid;
  } catch {
    return undefined; // ENOENT: it will be ours. EACCES: it cannot be opened anyway.
  }
}
