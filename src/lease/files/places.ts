/**
 * Where the files of a lease lie: `leases/<kind>/<name>/` in the state directory. Knows names of
 * files and nothing of what is in them.
 *
 * Guarantees: one key, one directory, for ever; two keys never share one. Non-guarantees: that
 * anything is there. Clock: none. Crash behaviour: `makePlace` may leave empty directories, which
 * are nobody's lease.
 */
import { lstatSync, readdirSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import type { LeaseKey } from "../../core/lease-key.ts";
import { encodeName } from "../../os/state-dir.ts";
import { makeOneStateDirectory, refusalOfOwner } from "../../os/state-sharing.ts";
import { codeOf, textOf } from "./own-file.ts";

export interface LeasePlace {
  readonly key: LeaseKey;
  readonly directory: string;
  /** Empty; the kernel's lock on it is the lease. */
  readonly lock: string;
  /** Empty; held shared by `fence`, exclusively during a grant. */
  readonly fence: string;
  /** `lease.json`. */
  readonly record: string;
  /** `seen.json`. */
  readonly note: string;
  readonly kindDirectory: string;
  /** Last generations of directories of this kind that were removed. */
  readonly floors: string;
}

export const LEASES_DIRECTORY = "leases";
const FLOORS = "floors";
/** `floors` is a name that a key may have, and the name of the file beside the directories. */
const ESCAPED_FLOORS = "%66loors";
const SLOT_NAME = /^beat\.([1-9][0-9]{0,15})$/;

export function placeOf(stateDirectory: string, key: LeaseKey): LeasePlace {
  const kindDirectory = `${stateDirectory}/${LEASES_DIRECTORY}/${key.kind}`;
  const directory = `${kindDirectory}/${encodeLeaseName(key.name)}`;
  return {
    key,
    directory,
    lock: `${directory}/lock`,
    fence: `${directory}/fence`,
    record: `${directory}/lease.json`,
    note: `${directory}/seen.json`,
    kindDirectory,
    floors: `${kindDirectory}/${FLOORS}`,
  };
}

/** The name of the directory of a key's name. */
export function encodeLeaseName(name: string): string {
  const encoded = encodeName(name);
  return encoded === FLOORS ? ESCAPED_FLOORS : encoded;
}

/** The name again; undefined where it was cut (`~`) or is none that `encodeLeaseName` makes. */
export function decodeLeaseName(directoryName: string): string | undefined {
  try {
    const name = decodeURIComponent(directoryName);
    return encodeLeaseName(name) === directoryName ? name : undefined;
  } catch {
    return undefined; // URIError: not one of ours
  }
}

/** The slot of a generation; that the name exists reserves the number. */
export function slotPath(place: LeasePlace, generation: number): string {
  return `${place.directory}/beat.${generation}`;
}

/**
 * The generations that have a slot, the largest first.
 * @throws WatchdogError "lease.unusable" where the directory cannot be read; a missing one has none
 */
export function listSlots(place: LeasePlace): number[] {
  let names: string[];
  try {
    names = readdirSync(place.directory);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return [];
    throw unusable(place.directory, cause);
  }
  return names
    .map((name) => Number(SLOT_NAME.exec(name)?.[1] ?? 0))
    .filter((generation) => generation > 0 && Number.isSafeInteger(generation))
    .toSorted((one, other) => other - one);
}

/**
 * Makes what is missing of the directories, 0700 or 2770 as the state directory is, whatever the
 * umask.
 *
 * @returns "made" where the lease directory itself was not there
 * @throws WatchdogError "lease.refused": a link, no directory or somebody else's in its place
 * @throws WatchdogError "lease.unusable": EACCES, ENOSPC, EROFS …
 */
export function makePlace(place: LeasePlace): "made" | "there" {
  const leases = place.kindDirectory.slice(0, place.kindDirectory.lastIndexOf("/"));
  makeDirectory(leases);
  makeDirectory(place.kindDirectory);
  return makeDirectory(place.directory);
}

function makeDirectory(path: string): "made" | "there" {
  try {
    if (makeOneStateDirectory(path) === "made") return "made";
  } catch (cause) {
    throw unusable(path, cause);
  }
  const reason = refusalOf(path);
  if (reason === undefined) return "there";
  throw new WatchdogError("lease.refused", `${path}: ${reason}`, {
    hint: `ls -ld ${path}`,
  });
}

function refusalOf(path: string): string | undefined {
  const found = lookAt(path);
  if (found.isSymbolicLink()) return "it is a symbolic link, expected a directory";
  if (!found.isDirectory()) return "it is not a directory";
  return refusalOfOwner(path, found);
}

function lookAt(path: string): ReturnType<typeof lstatSync> & object {
  try {
    return lstatSync(path);
  } catch (cause) {
    throw unusable(path, cause);
  }
}

function unusable(path: string, cause: unknown): WatchdogError {
  return new WatchdogError("lease.unusable", `${path} cannot be used: ${textOf(cause)}`, {
    hint: `ls -ld ${path}`,
    cause,
  });
}
