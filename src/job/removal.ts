/**
 * Removes what a step has left before the step runs again. Guarantees: only what lies at the given
 * place below the job's directory is removed, no link is followed (a link is removed itself), and
 * no other mount is entered: where one lies inside, nothing at all is removed. Directories above
 * the place stay.
 *
 * Clock: none. Blocks as long as the file system does. State after a crash: a part may be left;
 * removing it again goes on.
 */
import { showBytes } from "../core/byte-text.ts";
import {
  closeQuietly,
  type EntryStat,
  removeDirectory,
  removeEntry,
  statEntry,
  statOpen,
} from "../os/entries.ts";
import { faultPoint } from "../os/faults.ts";
import { readMountNumber } from "../os/mounts.ts";
import { ENOENT, ENOTEMPTY, nameErrno } from "../os/sys.ts";
import { troubleOf } from "./hash.ts";
import { type Place, PlaceTrouble, reachPlace } from "./place.ts";
import type { Reading } from "./survey.ts";
import { type Visit, walkBelow } from "./walk.ts";

/** Beyond any tree; somebody who makes files as fast as they are removed must come to an end. */
const MOST_REMOVED = 50_000_000;
/** A listing may pass over names while others go (POSIX, readdir). */
const MOST_PASSES = 5;

export interface Removal {
  readonly path: string;
  readonly kind: "removed" | "absent" | "refused";
  /** For people; null: nothing stands in the way. */
  readonly reason: string | null;
}

/** @returns every trouble as `refused`; only bugs and a missing FFI are thrown */
export function removePlace(directory: string, path: string, { onStep }: Reading): Removal {
  let place: Place | undefined;
  try {
    place = reachPlace(directory, path);
    return { path, kind: removeAt(place, onStep) ? "removed" : "absent", reason: null };
  } catch (error) {
    const { kind, reason } = troubleOf(error);
    if (kind === "missing") return { path, kind: "absent", reason: null };
    return { path, kind: "refused", reason };
  } finally {
    if (place !== undefined) closeQuietly(place.directory);
  }
}

/** @returns whether there was anything */
function removeAt(place: Place, onStep: () => void): boolean {
  const stat = statEntry(place.directory, place.name);
  if (stat === -ENOENT) return false;
  if (typeof stat === "number") throw new PlaceTrouble("unreadable", nameErrno(stat));
  if (stat.kind !== "directory") {
    demandRemoved(removeEntry(place.directory, place.name), place);
    return true;
  }
  const limits = { mostEntries: MOST_REMOVED, onStep };
  const mount = mountAround(place);
  for (const visit of walkBelow(place, limits)) demandMount(visit, mount);
  for (let pass = 1; pass <= MOST_PASSES; pass += 1) {
    faultPoint("artifact.remove", { pass });
    if (removeBelow(place, limits, mount)) return true;
  }
  throw new PlaceTrouble("unreadable", "it is filled again as fast as it is emptied");
}

/** @returns false: a directory was not empty when it was left */
function removeBelow(
  place: Place,
  limits: Parameters<typeof walkBelow>[1],
  mount: number,
): boolean {
  for (const visit of walkBelow(place, limits)) {
    demandMount(visit, mount);
    if (visit.kind === "entry") demandRemoved(removeEntry(visit.directory, visit.name), visit);
    if (visit.kind !== "left") continue;
    const outcome = removeDirectory(visit.directory, visit.name);
    if (outcome === -ENOTEMPTY) return false;
    demandRemoved(outcome, visit);
  }
  return true;
}

function mountAround({ directory }: Place): number {
  const stat = statOpen(directory);
  const mount = typeof stat === "number" ? undefined : stat.mount;
  const found = mount ?? readMountNumber(directory);
  if (found !== undefined) return found;
  throw new PlaceTrouble("unreadable", "on which mount it lies cannot be told");
}

function demandMount(visit: Visit, mount: number): void {
  if (visit.kind === "left") return;
  const found = mountOf(visit, visit.stat);
  if (found !== undefined && found === mount) return;
  // A file's mount that cannot be told: the kernel refuses to remove a mount point (EBUSY).
  if (found === undefined && visit.kind === "entry") return;
  const shown = visit.path === "" ? "it" : `'${showBytes(visit.path)}' in it`;
  throw new PlaceTrouble("unreadable", `${shown} is a mount point`);
}

function mountOf(visit: Visit, stat: EntryStat): number | undefined {
  if (stat.mount !== undefined) return stat.mount;
  return visit.kind === "entered" ? readMountNumber(visit.fd) : undefined;
}

function demandRemoved(outcome: number, { name }: Pick<Place, "name">): void {
  if (outcome >= 0 || outcome === -ENOENT) return;
  throw new PlaceTrouble("unreadable", `'${showBytes(name)}': ${nameErrno(outcome)}`);
}
