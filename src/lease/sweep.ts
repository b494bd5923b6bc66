/**
 * Removing lease directories that nobody has used for a long time, so that keys which never come
 * back do not pile up. Meant for when a directory was just made; the bounds keep it cheap.
 *
 * Guarantees: a directory goes only while its lock and its fence are ours, only where its last
 * generation is over (`free`, or `dead` with a boot that has ended), and only after its number is
 * on the disk in `floors`. Non-guarantees: that an old directory goes soon. Clock: the wall clock
 * against the times of the files; one that jumps ahead removes early, which loses no number. Crash
 * behaviour: what is left has the same verdict, or was never held; the number is in `floors`.
 */
import { closeSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import { decideVerdict } from "../core/lease-verdict.ts";
import { wallNow } from "../os/clock.ts";
import { readMachine } from "../os/machine.ts";
import { withDirectoryLock } from "./files/directory-lock.ts";
import { raiseFloor } from "./files/floors.ts";
import { gatherEvidence, type Looker } from "./gather.ts";
import { listKeys } from "./list.ts";
import { isThePath, openLock, tryLock } from "./files/lock-file.ts";
import { codeOf, textOf } from "./files/own-file.ts";
import { type LeasePlace, listSlots, placeOf } from "./files/places.ts";

/** Without a beat, a grant or a note for so long (design.md, section 2). */
export const SWEEP_AFTER_MS = 30 * 86_400_000;
const MOST_REMOVED = 16;
/** Directories that are looked at in one sweep; the next one begins at another place. */
const MOST_LOOKED_AT = 256;
/** A directory with more files than this was not made by watchdog alone. */
const MOST_FILES = 200;

export interface SweepReport {
  readonly removed: readonly LeaseKey[];
  /** What stood in the way, for `-v`; never an error of the run. */
  readonly trouble: readonly string[];
}

/**
 * Removes at most `limit` old directories of one kind. Never throws an error of the system: a
 * sweep that fails costs room on the disk and nothing else.
 *
 * Blocks: an fsync or three for each directory that goes.
 */
export function sweepOldPlaces(
  stateDirectory: string,
  kind: string,
  limit = MOST_REMOVED,
): SweepReport {
  const removed: LeaseKey[] = [];
  const trouble: string[] = [];
  try {
    const old = rotate(listKeys(stateDirectory).filter((key) => key.kind === kind))
      .slice(0, MOST_LOOKED_AT)
      .map((key) => placeOf(stateDirectory, key))
      .filter(isOld);
    if (old.length === 0) return { removed, trouble };
    // The journal is not asked: what it could add is that an unreleased lease was released, and
    // without it such a directory stays.
    const machine = readMachine();
    const looker: Looker = { stateDirectory, machine, journal: () => undefined };
    for (const place of old) {
      if (removed.length >= limit) break;
      const outcome = sweepPlace(place, looker);
      if (outcome === "removed") removed.push(place.key);
      else if (outcome !== "kept") trouble.push(`${renderKey(place.key)}: ${outcome.reason}`);
    }
  } catch (error) {
    trouble.push(reasonOf(error));
  }
  return { removed, trouble };
}

/** Begins each time somewhere else, so that every directory has its turn. */
function rotate(keys: readonly LeaseKey[]): readonly LeaseKey[] {
  const start = keys.length === 0 ? 0 : Math.floor(wallNow() / 1000) % keys.length;
  return [...keys.slice(start), ...keys.slice(0, start)];
}

/** By the newest time of the directory and all that is in it; what cannot be told is not old. */
function isOld(place: LeasePlace): boolean {
  try {
    const names = readdirSync(place.directory);
    if (names.length > MOST_FILES) return false;
    const paths = [place.directory, ...names.map((name) => `${place.directory}/${name}`)];
    const before = wallNow() - SWEEP_AFTER_MS;
    return paths.every((path) => lstatSync(path).mtimeMs < before);
  } catch {
    return false; // ENOENT: just being renamed or removed, so somebody uses it. EACCES: unknown.
  }
}

type SweepOutcome = "removed" | "kept" | { readonly reason: string };

function sweepPlace(place: LeasePlace, looker: Looker): SweepOutcome {
  const held: number[] = [];
  try {
    // Where there is no lock file, one is made: without it nobody is kept out.
    if (!hold(place.lock, "create", held)) return "kept";
    if (hasFile(place.fence) && !hold(place.fence, "existing", held)) return "kept";
    const evidence = gatherEvidence(looker, place.key, { kind: "free" });
    const verdict = decideVerdict(evidence);
    if (verdict.name !== "free" && verdict.name !== "dead") return "kept";
    const { source } = evidence;
    const known = source.kind === "read" ? source.generation : 0;
    raiseFloor(place, Math.max(known, ...listSlots(place)));
    // Who looks for the key of a worktree marks the directory under this lock (worktree-place.ts).
    return withDirectoryLock(place.kindDirectory, () => removeOld(place));
  } catch (error) {
    return { reason: reasonOf(error) };
  } finally {
    for (const fd of held) closeSync(fd);
  }
}

function removeOld(place: LeasePlace): SweepOutcome {
  const names = readdirSync(place.directory);
  const others = names.filter((name) => !OURS.test(name));
  if (others.length > 0) return { reason: `${place.directory} holds ${others[0]}, not ours` };
  if (!isOld(place)) return "kept";
  remove(place, names);
  return "removed";
}

/** Whether the lock is ours now. It is let go with its descriptor. */
function hold(path: string, how: "create" | "existing", held: number[]): boolean {
  const opened = openLock(path, how);
  if (opened.kind !== "open") return false;
  held.push(opened.fd);
  return tryLock(opened.fd, "exclusive") === "locked" && isThePath(opened.fd, path);
}

function hasFile(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return codeOf(error) !== "ENOENT";
  }
}

/**
 * `place` is that of worktree-place.ts, `kept` and `repair` are of a repair; the last are left by a
 * crash in os/files.ts.
 */
const OURS = new RegExp(
  "^((lock|fence|lease\\.json)(\\.kept-\\d+)?|lease\\.json\\.broken-\\d+|seen\\.json|place|" +
    "(beat|repair)\\.\\d+|\\.[^/]+\\.tmp)$",
);

/**
 * The record goes after the slots, so that it still tells what they belonged to, and the lock last:
 * until then nobody else can be in here. Who waits for it gets an inode without a path, and begins
 * again (A3).
 */
function remove(place: LeasePlace, names: readonly string[]): void {
  const last = ["lease.json", "fence", "lock"];
  const first = names.filter((name) => !last.includes(name));
  for (const name of [...first, ...last.filter((one) => names.includes(one))]) {
    unlinkSync(`${place.directory}/${name}`);
  }
  try {
    rmdirSync(place.directory);
  } catch (error) {
    // ENOTEMPTY: a newcomer has made its lock file already. ENOENT: another sweep was here.
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(codeOf(error))) throw error;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof WatchdogError || codeOf(error) !== "unknown") return textOf(error);
  throw error;
}
