/**
 * What lies at the place of an artifact at one moment: each entry with what it is and when it last
 * changed, no content. Two surveys that are alike, a tick of the kernel's clock of changes apart,
 * saw the same thing: nothing was written between them.
 *
 * Non-guarantee: a write through a mapping (mmap(2)) may change the times later, when it is written
 * back. Clock: times of the file system, compared among themselves. State after a crash: none.
 */
import type { ByteText } from "../core/byte-text.ts";
import type { FileSight, FileStamp } from "../core/file-changes.ts";
import { closeQuietly, type EntryStat, isSameStat, statEntry } from "../os/entries.ts";
import { type Place, PlaceTrouble, reachPlace, troubleAt } from "./place.ts";
import { walkBelow } from "./walk.ts";

/** Each costs about a kilobyte of memory while a directory is read (measured with 200,000). */
export const MOST_ENTRIES = 100_000;

export interface Survey {
  readonly kind: "file" | "directory" | "link" | "special";
  /** By the path below the artifact; "" for the artifact itself. */
  readonly entries: ReadonlyMap<ByteText, EntryStat>;
}

export interface Reading {
  /** Called again and again as long as something is read; may throw to stop. */
  readonly onStep: () => void;
  /** Of a directory. */
  readonly mostEntries: number;
  /** A backup that sets times back, or a snapshot by hard links, disturbs a reading once. */
  readonly mostTries: number;
}

const MOST_TRIES = 3;

export const DEFAULT_READING: Reading = {
  onStep: () => undefined,
  mostEntries: MOST_ENTRIES,
  mostTries: MOST_TRIES,
};

/** @throws PlaceTrouble as walkBelow does */
export function surveyPlace(place: Place, reading: Reading): Survey {
  const stat = statEntry(place.directory, place.name);
  if (typeof stat === "number") throw troubleAt("" as ByteText, stat);
  if (stat.kind !== "directory") {
    return { kind: stat.kind, entries: new Map([["" as ByteText, stat]]) };
  }
  const entries = new Map<ByteText, EntryStat>();
  for (const visit of walkBelow(place, reading)) {
    if (visit.kind !== "left") entries.set(visit.path, visit.stat);
  }
  return { kind: "directory", entries };
}

/**
 * The same once more, from the job's directory on: a directory on the way may have become a link.
 *
 * @throws PlaceTrouble `changing` where anything is not what it was, and where it cannot be read
 */
export function demandSame(
  before: Survey,
  at: { readonly directory: string; readonly path: string },
  reading: Reading,
): void {
  const place = reachPlace(at.directory, at.path);
  try {
    const left = countSame(before, place, reading);
    if (left !== 0) throw sayChanging();
  } finally {
    closeQuietly(place.directory);
  }
}

/** Compared as they come, so that no second survey need be kept. @returns how many are missing */
function countSame({ entries, kind }: Survey, place: Place, reading: Reading): number {
  let left = entries.size;
  const compare = (path: ByteText, stat: EntryStat): void => {
    demandKnown(entries, path, stat);
    left -= 1;
  };
  if (kind === "directory") {
    for (const visit of walkBelow(place, reading)) {
      if (visit.kind !== "left") compare(visit.path, visit.stat);
    }
    return left;
  }
  const stat = statEntry(place.directory, place.name);
  if (typeof stat === "number") throw troubleAt("" as ByteText, stat);
  compare("" as ByteText, stat);
  return left;
}

/** @throws PlaceTrouble `changing` */
export function demandKnown(entries: Survey["entries"], path: ByteText, stat: EntryStat): void {
  const known = entries.get(path);
  if (known === undefined || !isSameStat(known, stat)) throw sayChanging();
}

export function sayChanging(): PlaceTrouble {
  return new PlaceTrouble("changing", "it was written while it was read");
}

/** The latest change of anything in it, in nanoseconds. */
export function newestOf({ entries }: Survey): bigint {
  let [seconds, nanoseconds] = [0, 0];
  for (const { changedSeconds, changedNanoseconds } of entries.values()) {
    const isLater =
      changedSeconds === seconds ? changedNanoseconds > nanoseconds : changedSeconds > seconds;
    if (isLater) [seconds, nanoseconds] = [changedSeconds, changedNanoseconds];
  }
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds);
}

/** Of a directory its files and links, or itself where there is none. */
export function sightOf({ entries }: Survey): FileSight {
  const files = new Map<string, FileStamp>();
  for (const [path, stat] of entries) if (stat.kind !== "directory") files.set(path, stampOf(stat));
  const itself = entries.get("" as ByteText);
  if (files.size === 0 && itself !== undefined) files.set("", stampOf(itself));
  return { kind: "seen", files };
}

function stampOf(stat: EntryStat): FileStamp {
  const identity = [
    stat.device,
    stat.inodeHigh,
    stat.inodeLow,
    stat.changedSeconds,
    stat.changedNanoseconds,
    stat.modifiedSeconds,
    stat.modifiedNanoseconds,
  ].join(":");
  const { modifiedSeconds, modifiedNanoseconds } = stat;
  const changedAt = modifiedSeconds * 1_000 + Math.floor(modifiedNanoseconds / 1_000_000);
  return { identity, bytes: stat.bytes, changedAt };
}
