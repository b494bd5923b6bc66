/**
 * The state directory of a check-up: whether a run would accept it, and a place on its file system
 * where things can be tried. Decides nothing about what is stored there.
 *
 * Always: a state directory that is not there is not made: things are tried in a directory beside
 * the place where it would be, which is removed at the end; one that a run refuses is not written
 * into. Clock: none. State after a crash: an empty `.watchdog-doctor-…` may remain there.
 */
import { lstatSync, mkdtempSync, rmSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { WatchdogError } from "../core/errors.ts";
import { findMount } from "../os/mounts.ts";
import { findStateDirectory, openStateDirectory, resolveStateDirectory } from "../os/state-dir.ts";
import { refuseNewerFormat } from "../os/state-format.ts";
import { findOwnGroup, isOpenToRoot, isShared, isSharedWithUs } from "../os/state-group.ts";
import { nameGroup } from "../os/users.ts";
import { type CheckupRequest, type Finding, finding, note, ok, textOf } from "./request.ts";

export interface CheckupPlace {
  readonly finding: Finding;
  /** Undefined: it has no name that can be told. */
  readonly stateDirectory: string | undefined;
  /** Whether it is there and a run would accept it: it may be read in. */
  readonly isAccepted: boolean;
  /** Where things can be tried; undefined: nowhere. */
  readonly trialDirectory: string | undefined;
  close(): void;
}

type Asked = Pick<CheckupRequest, "askedStateDir" | "stateGroup">;

const ANOTHER = "name another one with --state-dir, or let its owner change it";
const HOMELESS = "/var/tmp/watchdog-";

export function openPlace(asked: Asked): CheckupPlace {
  let stateDirectory: string | undefined;
  try {
    stateDirectory = resolveStateDirectory(asked.askedStateDir);
    if (!findStateDirectory(stateDirectory)) return openBeside(stateDirectory, asked);
    const found = lstatSync(stateDirectory);
    const group = isForRootToRepair(found) ? nameGroup(found.gid) : undefined;
    openStateDirectory(stateDirectory, { group });
    refuseNewerFormat(stateDirectory);
    return openExisting(stateDirectory, asked, found);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    return refused(stateDirectory, finding(error.message, ANOTHER));
  }
}

function refused(stateDirectory: string | undefined, what: Finding): CheckupPlace {
  const nothing = { isAccepted: false, trialDirectory: undefined, close: () => undefined };
  return { finding: what, stateDirectory, ...nothing };
}

/** Shared by others: root looks and repairs there, and runs there only if it asks for the group. */
function isForRootToRepair(found: Stats): boolean {
  return isOpenToRoot(found) && !isSharedWithUs(found);
}

function openExisting(stateDirectory: string, { stateGroup }: Asked, found: Stats): CheckupPlace {
  const mode = (found.mode & 0o7777).toString(8);
  const kind = findMount(stateDirectory)?.fileSystem ?? "an unknown file system";
  const whose = `uid ${found.uid}, group ${nameGroup(found.gid)}`;
  const seen = `${stateDirectory} (${whose}, mode ${mode}, on ${kind})`;
  return {
    finding: judgeGroup(stateGroup, seen, found) ?? judgeDefault(stateDirectory, seen),
    stateDirectory,
    isAccepted: true,
    trialDirectory: stateDirectory,
    close: () => undefined,
  };
}

/** A group that is asked for is refused by each run, where the directory is not that group's. */
function judgeGroup(group: string | undefined, seen: string, found: Stats): Finding | undefined {
  if (group === undefined) {
    if (!isForRootToRepair(found)) return undefined;
    const name = nameGroup(found.gid);
    return note(`${seen}: root repairs here, and runs only with --state-group ${name}`);
  }
  const own = findOwnGroup(group);
  if (own.kind === "refused") return finding(`${seen}: ${own.reason}`, own.hint);
  if (isShared(found, own.gid)) return undefined;
  return finding(
    `${seen} is not shared by the group '${group}' that is asked for`,
    `watchdog run --state-group ${group} -- true (its refusal says how to open it)`,
  );
}

/** Design: the home is on no local file system, or the user has none. */
function judgeDefault(stateDirectory: string, seen: string): Finding {
  if (!stateDirectory.startsWith(HOMELESS)) return ok(seen);
  return note(`${seen}, because the home of this user is not there or not local`);
}

/** What would be made is tried where it would be made. */
function openBeside(stateDirectory: string, { stateGroup: group }: Asked): CheckupPlace {
  const own = group === undefined ? undefined : findOwnGroup(group);
  if (own?.kind === "refused") {
    const what = `${stateDirectory} is not there and cannot be made: ${own.reason}`;
    return refused(stateDirectory, finding(what, own.hint));
  }
  const above = findAbove(stateDirectory);
  let trial: string;
  try {
    trial = mkdtempSync(`${above}/.watchdog-doctor-`);
  } catch (error) {
    const what = `${stateDirectory} is not there and cannot be made: ${textOf(error)}`;
    return refused(stateDirectory, finding(what, ANOTHER));
  }
  const close = (): void => rmSync(trial, { recursive: true, force: true });
  try {
    openStateDirectory(trial, { group });
  } catch (error) {
    close();
    const what = `${stateDirectory} is not there; above it: ${textOf(error)}`;
    return refused(stateDirectory, finding(what, ANOTHER));
  }
  const kind = findMount(trial)?.fileSystem ?? "an unknown file system";
  const seen = `${stateDirectory} is not there yet and can be made (in ${above}, on ${kind})`;
  const what = judgeDefault(stateDirectory, seen);
  return { finding: what, stateDirectory, isAccepted: false, trialDirectory: trial, close };
}

/** The nearest directory that is there. */
function findAbove(path: string): string {
  let above = dirname(path);
  while (above !== "/" && statSync(above, { throwIfNoEntry: false }) === undefined) {
    above = dirname(above);
  }
  return above;
}
