/**
 * The content of an artifact as one SHA-256: of the bytes of a file, or of the manifest of a
 * directory.
 *
 * Guarantees: memory is bounded (a buffer, and what a survey keeps), whatever is read; nothing but
 * regular files and directories is opened; no link is followed. A hash is given only where nothing
 * was written from before the reading until after it, as far as the file system's times tell: two
 * surveys are alike, the first of them older than the present tick of the kernel's clock.
 *
 * Non-guarantees: those of survey.ts; a mount inside a directory is read like the rest. Blocks the
 * calling thread while it reads. Clock: the kernel's clock of changes, for at most a tick (two
 * seconds on FAT). State after a crash: none.
 */
import { type ManifestEntry, renderManifest } from "../core/artifact-manifest.ts";
import type { Hashing, HashedArtifact } from "../core/artifact.ts";
import type { ByteText } from "../core/byte-text.ts";
import {
  closeQuietly,
  type EntryStat,
  isSameStat,
  openToRead,
  readLink,
  statEntry,
  statOpen,
} from "../os/entries.ts";
import { faultPoint } from "../os/faults.ts";
import { awaitNextTick } from "../os/file-tick.ts";
import { EINTR, sys } from "../os/sys.ts";
import { type Place, PlaceTrouble, reachPlace, troubleAt } from "./place.ts";
import {
  demandKnown,
  demandSame,
  newestOf,
  type Reading,
  sayChanging,
  type Survey,
  surveyPlace,
} from "./survey.ts";
import { walkBelow } from "./walk.ts";

const CHUNK_BYTES = 1_048_576;
let chunk: Uint8Array | undefined;

export interface HashedPlace {
  readonly hashing: Hashing;
  /** What was read; undefined: nothing was hashed. */
  readonly survey: Survey | undefined;
}

/**
 * Reads once more, from the beginning, what was written while it was read.
 *
 * @returns every trouble as a result; only bugs and a missing FFI are thrown
 */
export async function hashPlace(
  directory: string,
  path: string,
  reading: Reading,
): Promise<HashedPlace> {
  for (let tries = 1; ; tries += 1) {
    const found = await hashOnce(directory, path, reading);
    if (found.hashing.kind !== "changing" || tries >= reading.mostTries) return found;
  }
}

async function hashOnce(directory: string, path: string, reading: Reading): Promise<HashedPlace> {
  let place: Place | undefined;
  try {
    place = reachPlace(directory, path);
    const survey = surveyPlace(place, reading);
    demandReadable(survey);
    await awaitNextTick(newestOf(survey));
    const content = readContent(place, survey, reading);
    faultPoint("artifact.hashed", { path });
    demandUndisturbed(survey, { directory, path }, reading);
    const artifact = { path, ...content };
    return { hashing: { kind: "hashed", artifact }, survey };
  } catch (error) {
    return { hashing: { ...troubleOf(error), path }, survey: undefined };
  } finally {
    if (place !== undefined) closeQuietly(place.directory);
  }
}

/** @throws what is no trouble of the place */
export function troubleOf(error: unknown): { kind: PlaceTrouble["kind"]; reason: string } {
  if (error instanceof PlaceTrouble) return { kind: error.kind, reason: error.message };
  throw error;
}

function demandReadable({ kind, entries }: Survey): void {
  if (kind === "link") throw new PlaceTrouble("link", "is a symbolic link");
  const special = entries.entries().find(([, stat]) => stat.kind === "special")?.[0];
  if (special === "") throw new PlaceTrouble("special", "is neither a file nor a directory");
  if (special !== undefined) throw new PlaceTrouble("special", "a pipe or a device lies in it");
}

/** What could be read a moment ago and is gone, or no longer reached, was disturbed. */
function demandUndisturbed(
  survey: Survey,
  at: { readonly directory: string; readonly path: string },
  reading: Reading,
): void {
  try {
    demandSame(survey, at, reading);
  } catch (error) {
    const { kind, reason } = troubleOf(error);
    if (kind === "unreadable" || kind === "changing") throw error;
    throw new PlaceTrouble("changing", `while it was read: ${reason}`);
  }
}

function readContent(place: Place, survey: Survey, reading: Reading): Omit<HashedArtifact, "path"> {
  const stat = survey.entries.get("" as ByteText);
  if (survey.kind === "file" && stat !== undefined) {
    const sha256 = hashFile({ ...place, path: "" as ByteText }, stat, reading);
    return { kind: "file", bytes: stat.bytes, sha256 };
  }
  const entries = readEntries(place, survey, reading);
  const hasher = new Bun.CryptoHasher("sha256");
  for (const line of renderManifest(entries)) hasher.update(line, "latin1");
  const files = entries.filter(({ kind }) => kind === "file");
  const bytes = files.reduce((sum, one) => sum + one.bytes, 0);
  return { kind: "directory", bytes, sha256: hasher.digest("hex") };
}

function readEntries(place: Place, survey: Survey, reading: Reading): ManifestEntry[] {
  const entries: ManifestEntry[] = [];
  for (const visit of walkBelow(place, reading)) {
    if (visit.kind === "left" || visit.path === "") continue;
    const { path, stat } = visit;
    demandKnown(survey.entries, path, stat);
    entries.push(readEntry(visit, stat, reading));
  }
  return entries;
}

type At = Place & { readonly path: ByteText };

function readEntry(at: At, stat: EntryStat, reading: Reading): ManifestEntry {
  const { path } = at;
  if (stat.kind === "directory") return { kind: "directory", path, bytes: 0, sha256: "" };
  if (stat.kind !== "link") {
    return { kind: "file", path, bytes: stat.bytes, sha256: hashFile(at, stat, reading) };
  }
  const text = readLink(at.directory, at.name);
  if (typeof text === "number") throw troubleAt(path, text);
  const sha256 = new Bun.CryptoHasher("sha256").update(text, "latin1").digest("hex");
  return { kind: "link", path, bytes: text.length, sha256 };
}

/** @throws PlaceTrouble `changing` where it is not, from beginning to end, what was surveyed */
function hashFile(at: At, surveyed: EntryStat, { onStep }: Reading): string {
  const fd = openToRead(at.directory, at.name);
  if (fd < 0) throw troubleAt(at.path, fd);
  try {
    demandOpen(fd, at, surveyed);
    const hasher = new Bun.CryptoHasher("sha256");
    chunk ??= new Uint8Array(CHUNK_BYTES);
    let bytes = 0;
    for (let count = 1; count !== 0; bytes += count) {
      onStep();
      faultPoint("artifact.read", { bytes });
      count = readSome(fd, chunk, at.path);
      hasher.update(chunk.subarray(0, count));
      // One that grows as fast as it is read would have no end.
      if (bytes + count > surveyed.bytes) throw sayChanging();
    }
    if (bytes !== surveyed.bytes) throw sayChanging();
    demandOpen(fd, at, surveyed);
    return hasher.digest("hex");
  } finally {
    closeQuietly(fd);
  }
}

function readSome(fd: number, into: Uint8Array, path: ByteText): number {
  for (;;) {
    const count = sys.read(fd, into, into.length);
    if (count >= 0) return count;
    if (count !== -EINTR) throw troubleAt(path, count);
  }
}

function demandOpen(fd: number, at: At, surveyed: EntryStat): void {
  const stat = statOpen(fd);
  if (typeof stat === "number") throw troubleAt(at.path, stat);
  if (!isSameStat(surveyed, stat)) throw sayChanging();
}

/** What is there without its content; undefined: nothing, or what a step may take the place of. */
export function lookAtPlace(directory: string, path: string, reading: Reading): Survey | undefined {
  let place: Place | undefined;
  try {
    place = reachPlace(directory, path);
    const stat = statEntry(place.directory, place.name);
    if (typeof stat !== "number" && stat.kind !== "file" && stat.kind !== "directory") {
      return undefined;
    }
    return surveyPlace(place, reading);
  } catch (error) {
    if (troubleOf(error).kind === "missing") return undefined;
    throw error;
  } finally {
    if (place !== undefined) closeQuietly(place.directory);
  }
}
