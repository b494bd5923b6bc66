/**
 * The file `FORMAT` of a state directory: which layout it has, and that flock(2) excludes on its
 * file system, tried once. Knows nothing of what is stored beside it.
 *
 * Always: a directory of a newer layout is never written into. State after a crash: no FORMAT yet,
 * and the next start tries again; two first starters write the same content.
 */
import { closeSync, constants, fstatSync, openSync, readSync, unlinkSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { replaceFile } from "./files.ts";
import { createStateFile, fileModeAt } from "./state-sharing.ts";
import { EINTR, LOCK_EX, LOCK_NB, nameErrno, sys } from "./sys.ts";

/** Of the layout; a newer one is refused. */
export const STATE_FORMAT = 1;
const LONGEST_FORMAT = 4096;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

/**
 * Reads FORMAT, or tries the lock and writes it where it is missing or holds no JSON (a disk that
 * lost its last writes).
 *
 * @throws WatchdogError "state.refused": a newer layout, a link or no regular file in its place, or
 *   locks that do not exclude
 * @throws WatchdogError "state.unusable": EACCES, ENOSPC, EROFS …
 */
export function checkStateFormat(stateDirectory: string): void {
  if (refuseNewerFormat(stateDirectory) === STATE_FORMAT) return;
  writeFormat(stateDirectory, `${stateDirectory}/FORMAT`);
}

/**
 * The number of the layout, for whoever only reads; undefined: none is written down.
 *
 * @throws WatchdogError "state.refused": a newer layout, a link or no regular file in its place
 * @throws WatchdogError "state.unusable": EACCES …
 */
export function refuseNewerFormat(stateDirectory: string): number | undefined {
  const found = readFormat(`${stateDirectory}/FORMAT`);
  if (found === undefined || found <= STATE_FORMAT) return found;
  throw new WatchdogError(
    "state.refused",
    `state directory ${stateDirectory} has format ${found}, expected at most ${STATE_FORMAT}`,
    { hint: "watchdog --version" },
  );
}

/** The number of the layout; undefined: no file, or nothing that can be read as one. */
function readFormat(path: string): number | undefined {
  const text = readSmallFile(path);
  if (text === undefined) return undefined;
  try {
    const format: unknown = JSON.parse(text)?.format;
    return typeof format === "number" ? format : undefined;
  } catch {
    return undefined; // SyntaxError: cut off or zeroed; it is written again
  }
}

function readSmallFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (code === "ENOENT") return undefined;
    throw code === "ELOOP" ? refuse(path, "it is a symbolic link") : unusable(path, cause);
  }
  try {
    if (!fstatSync(fd).isFile()) throw refuse(path, "it is not a regular file");
    const bytes = new Uint8Array(LONGEST_FORMAT);
    return new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes)));
  } finally {
    closeSync(fd);
  }
}

function writeFormat(stateDirectory: string, path: string): void {
  try {
    const trouble = tryLocks(stateDirectory);
    if (trouble !== undefined) throw refuse(stateDirectory, trouble);
    const content = `${JSON.stringify({ format: STATE_FORMAT, locks: "tried" })}\n`;
    replaceFile(path, content, fileModeAt(path));
  } catch (cause) {
    throw cause instanceof WatchdogError ? cause : unusable(path, cause);
  }
}

/** Undefined: a second descriptor is refused while the first one holds the lock. */
function tryLocks(stateDirectory: string): string | undefined {
  const path = `${stateDirectory}/.self-test.${crypto.randomUUID()}.tmp`;
  const first = createStateFile(path);
  try {
    const second = openSync(path, O_RDWR | O_NOFOLLOW);
    try {
      const had = lock(first);
      if (had < 0) return `flock(2) is refused on its file system: ${nameErrno(had)}`;
      return lock(second) < 0 ? undefined : "flock(2) does not exclude on its file system";
    } finally {
      closeSync(second);
    }
  } finally {
    closeSync(first);
    unlinkSync(path);
  }
}

/** EINTR says nothing about the lock: asked again, so often at most. */
const MOST_INTERRUPTIONS = 100;

function lock(fd: number): number {
  let result = -EINTR;
  for (let tried = 0; result === -EINTR && tried < MOST_INTERRUPTIONS; tried += 1) {
    result = sys.flock(fd, LOCK_EX | LOCK_NB);
  }
  return result;
}

function refuse(path: string, reason: string): WatchdogError {
  return new WatchdogError("state.refused", `${path}: ${reason}`, { hint: "watchdog help run" });
}

function unusable(path: string, cause: unknown): WatchdogError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new WatchdogError("state.unusable", `${path} cannot be used: ${text}`, {
    hint: "watchdog help run",
    cause,
  });
}
