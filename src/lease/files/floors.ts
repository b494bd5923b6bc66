/**
 * `floors`: the last generations of lease directories that were removed, one file for each kind, so
 * that a key that comes back goes on counting. Knows nothing of why and when they are removed.
 *
 * Guarantees: what `raiseFloor` has written is on the disk before it returns, and no name's floor
 * ever falls; more than MOST_NAMES names are forgotten only by giving all names the largest of
 * them. Non-guarantees: protection from whoever edits the file. Clock: none. Crash behaviour: the
 * old floors or the new ones (os/files.ts); the lock on the kind's directory goes with its process.
 */
import { closeSync, constants, openSync } from "node:fs";
import { WatchdogError } from "../../core/errors.ts";
import { replaceFile } from "../../os/files.ts";
import { fileModeAt } from "../../os/state-sharing.ts";
import { LOCK_EX, LOCK_NB, sys } from "../../os/sys.ts";
import { pauseThread } from "../../os/timers.ts";
import { readOwnFile, textOf } from "./own-file.ts";
import { type LeasePlace, listSlots } from "./places.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const FLOORS_FORMAT = 1;
export const MOST_NAMES = 1000;
/** A name of a directory has at most 150 bytes. */
const LONGEST_FLOORS_BYTES = 1_048_576;
const MOST_TRIES = 200;
const PAUSE_MS = 5;

interface Floors {
  /** Of every name that is not in the list. */
  readonly fallback: number;
  /** By the name of the directory. */
  readonly names: ReadonlyMap<string, number>;
}

const NO_FLOORS: Floors = { fallback: 0, names: new Map() };

/**
 * The largest generation that a removed directory of this key can have had; 0: none is known.
 *
 * A file that cannot be read counts as none where the key has slots, because their numbers are
 * larger than any floor.
 * @throws WatchdogError "lease.refused" where it cannot be read and the key has no number elsewhere
 */
export function readFloor(place: LeasePlace): number {
  const floors = readFloors(place.floors);
  if (typeof floors !== "string") return floorOf(floors, nameOf(place));
  if (listSlots(place).length > 0) return 0;
  throw refuse(place.floors, floors);
}

/**
 * Remembers the generation of a directory that will be removed: before it is, and not removed where
 * this throws. A smaller number than is known changes nothing.
 *
 * @throws WatchdogError "lease.refused": the file cannot be read, so it is not written either
 * @throws WatchdogError "lease.unusable": ENOSPC, EACCES …, or others had the file for a second
 * Blocks: two fsyncs, and up to MOST_TRIES pauses for another writer.
 */
export function raiseFloor(place: LeasePlace, generation: number): void {
  const fd = lockKind(place.kindDirectory);
  try {
    const floors = readFloors(place.floors);
    if (typeof floors === "string") throw refuse(place.floors, floors);
    if (floorOf(floors, nameOf(place)) >= generation) return;
    writeFloors(place.floors, withFloor(floors, nameOf(place), generation));
  } finally {
    closeSync(fd);
  }
}

function nameOf(place: LeasePlace): string {
  return place.directory.slice(place.directory.lastIndexOf("/") + 1);
}

function floorOf(floors: Floors, name: string): number {
  return Math.max(floors.fallback, floors.names.get(name) ?? 0);
}

function withFloor(floors: Floors, name: string, generation: number): Floors {
  const names = new Map(floors.names).set(name, generation);
  if (names.size <= MOST_NAMES) return { fallback: floors.fallback, names };
  const largest = [...names.values()].reduce((most, one) => Math.max(most, one), floors.fallback);
  return { fallback: largest, names: new Map() };
}

/** A text is the reason why it cannot be read. */
function readFloors(path: string): Floors | string {
  const file = readOwnFile(path, LONGEST_FLOORS_BYTES);
  if (file.kind === "missing") return NO_FLOORS;
  if (file.kind !== "read") return file.reason;
  try {
    return parseFloors(JSON.parse(new TextDecoder().decode(file.bytes)));
  } catch {
    return "it is no JSON"; // SyntaxError: cut off, zeroed or edited
  }
}

function parseFloors(value: unknown): Floors | string {
  if (typeof value !== "object" || value === null) return "it is no JSON object";
  const { format, default: fallback, names } = value as Readonly<Record<string, unknown>>;
  if (format !== FLOORS_FORMAT) return `it has the format ${String(format)}, expected 1`;
  if (typeof names !== "object" || names === null) return "its names are no JSON object";
  const entries = Object.entries(names);
  const isWhole = isGeneration(fallback) && entries.every(([, floor]) => isGeneration(floor));
  return isWhole
    ? { fallback: fallback as number, names: new Map(entries as [string, number][]) }
    : "it holds something that is no generation";
}

function isGeneration(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function writeFloors(path: string, floors: Floors): void {
  const names = Object.fromEntries(floors.names);
  const content = { format: FLOORS_FORMAT, default: floors.fallback, names };
  try {
    replaceFile(path, `${JSON.stringify(content, undefined, 1)}\n`, fileModeAt(path));
  } catch (cause) {
    throw unusable(path, cause);
  }
}

/** An open descriptor of the kind's directory, locked exclusively. */
function lockKind(path: string): number {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (cause) {
    throw unusable(path, cause);
  }
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    if (sys.flock(fd, LOCK_EX | LOCK_NB) >= 0) return fd;
    pauseThread(PAUSE_MS);
  }
  closeSync(fd);
  throw unusable(path, new Error("another process has it locked"));
}

function refuse(path: string, reason: string): WatchdogError {
  return new WatchdogError("lease.refused", `${path}: ${reason}`, { hint: `cat ${path}` });
}

function unusable(path: string, cause: unknown): WatchdogError {
  return new WatchdogError("lease.unusable", `${path} cannot be used: ${textOf(cause)}`, {
    hint: `ls -l ${path}`,
    cause,
  });
}
