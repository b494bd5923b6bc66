/**
 * What stands in the place of directories and files of leases and is none: `run` refuses it, so a
 * reader must not answer `free` or `no lease is known` there. Names only; opens nothing.
 *
 * Guarantees: read only, no link is followed. Non-guarantees: that it stays so. Clock: none.
 */
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { isKind, type LeaseKey } from "../core/lease-key.ts";
import { refusalOfOwner } from "../os/state-sharing.ts";
import { decodeLeaseName, LEASES_DIRECTORY, placeOf } from "../lease/files/places.ts";

/** In each kind's directory, beside those of its keys (lease/files/places.ts). */
const FLOORS = "floors";

/** @throws WatchdogError "lease.refused" (78): a link, a file or somebody else's in its place */
export function checkLeasesDirectory(stateDirectory: string): void {
  const path = `${stateDirectory}/${LEASES_DIRECTORY}`;
  const reason = refusalAt(path, "directory");
  if (reason === undefined) return;
  throw new WatchdogError("lease.refused", reason, { hint: `ls -ld ${path}` });
}

/** Why `run` would refuse the place of this key; undefined: it would not. */
export function findPlaceRefusal(stateDirectory: string, key: LeaseKey): string | undefined {
  const place = placeOf(stateDirectory, key);
  return (
    refusalAt(place.kindDirectory, "directory") ??
    refusalAt(place.directory, "directory") ??
    refusalAt(place.lock, "file") ??
    refusalAt(place.fence, "file")
  );
}

/** Kinds and keys that are no directories, which no listing of keys has: a line each. */
export function findPlaceTroubles(stateDirectory: string): string[] {
  const leases = `${stateDirectory}/${LEASES_DIRECTORY}`;
  const kinds = list(leases).filter(({ name }) => isKind(name));
  const wrongKeys = kinds
    .filter((kind) => kind.isDirectory())
    .flatMap((kind) => {
      const keys = list(`${leases}/${kind.name}`).filter(({ name }) => isKeyName(name));
      return keys.flatMap((key) => troubleAt(`${leases}/${kind.name}`, key));
    });
  return [...kinds.flatMap((kind) => troubleAt(leases, kind)), ...wrongKeys];
}

/** Temporary files begin with a dot, and that no key's directory does. */
function isKeyName(name: string): boolean {
  return name !== FLOORS && decodeLeaseName(name) !== undefined;
}

function troubleAt(directory: string, entry: Dirent): string[] {
  return entry.isDirectory()
    ? []
    : [refusalAt(`${directory}/${entry.name}`, "directory") ?? []].flat();
}

/** None where it cannot be read: whoever lists the keys says so. */
function list(path: string): Dirent[] {
  try {
    return lstatSync(path).isDirectory() ? readdirSync(path, { withFileTypes: true }) : [];
  } catch {
    return []; // ENOENT: nothing ran yet. EACCES: told by lease/list.ts.
  }
}

function refusalAt(path: string, expected: "directory" | "file"): string | undefined {
  const found = look(path);
  if (found === undefined) return undefined;
  if (found.isSymbolicLink()) return `${path}: it is a symbolic link, expected a ${expected}`;
  const isRight = expected === "directory" ? found.isDirectory() : found.isFile();
  if (!isRight) return `${path}: it is not a ${nameOf(expected)}`;
  const reason = refusalOfOwner(path, found);
  return reason === undefined ? undefined : `${path}: ${reason}`;
}

function nameOf(expected: "directory" | "file"): string {
  return expected === "file" ? "regular file" : expected;
}

function look(path: string): ReturnType<typeof lstatSync> | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined; // ENOENT; ENOTDIR, EACCES: told of what is above it, or by the evidence
  }
}
