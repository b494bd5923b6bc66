/**
 * The file to which a job reports its progress: `<state>/progress/<run id>`, made before the
 * command is started and removed when its run is over.
 *
 * Knows nothing of what stands in it. Always: the watchdog of a run holds a lock (flock(2)) on its
 * file for as long as it lives, so a file whose lock is free belongs to nobody and may be removed,
 * whatever its age; a name that is no run id is left alone. Clock: none. State after a crash: the
 * file, without a lock; the guard or a later run removes it.
 */
import { closeSync, fstatSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { constants } from "node:fs";
import { isRunId } from "../core/run-id.ts";
import { faultPoint } from "../os/faults.ts";
import { createStateFile, makeStateDirectory, refusalOfOwner } from "../os/state-sharing.ts";
import { LOCK_EX, LOCK_NB, sys } from "../os/sys.ts";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
/** Somebody else who clears away may have met the file before it was locked. */
const MOST_TRIES = 5;
/** More of them are cleared away by the next run. */
const MOST_SWEPT = 200;

export interface ProgressFile {
  readonly path: string;
  /** Open for reading, locked; the caller closes it. */
  readonly fd: number;
}

export function progressPath(stateDirectory: string, runId: string): string {
  return `${stateDirectory}/progress/${runId}`;
}

/** Whether it is made like the path of such a file, of whichever state directory. */
export function isProgressPath(path: string): boolean {
  const [directory, name = ""] = path.split("/").slice(-2);
  return path.startsWith("/") && directory === "progress" && isRunId(name);
}

/** @throws the error of the system call: EACCES, ENOSPC, EMFILE, ENOLCK … */
export function makeProgressFile(stateDirectory: string, runId: string): ProgressFile {
  const path = progressPath(stateDirectory, runId);
  faultPoint("progress.create", { path });
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const fd = createIn(`${stateDirectory}/progress`, path);
    const isOurs = sys.flock(fd, LOCK_EX | LOCK_NB) >= 0 && fstatSync(fd).nlink === 1;
    if (isOurs) return { path, fd };
    closeSync(fd);
    if (tries < MOST_TRIES) removeQuietly(path);
  }
  throw Object.assign(new Error(`EBUSY: ${path} is being removed by somebody else`), {
    code: "EBUSY",
  });
}

/** The directory is made where it is not there: with the first run, and where it was removed. */
function createIn(directory: string, path: string): number {
  try {
    return createStateFile(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    makeStateDirectory(directory);
    return createStateFile(path);
  }
}

/** The run is over. Whoever still has it open writes into nothing. */
export function removeProgressFile({ path, fd }: ProgressFile): void {
  faultPoint("progress.remove", { path });
  removeQuietly(path);
  closeSync(fd);
}

/** What a job has put in the place of its file; undefined: nothing that may be read. */
export function openProgress(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    return undefined; // ENOENT: removed. ELOOP: a link, which is never followed
  }
  const found = fstatSync(fd);
  if (found.isFile() && refusalOfOwner(path, found) === undefined) return fd;
  closeSync(fd);
  return undefined;
}

/**
 * Removes the files of runs whose watchdog is dead, as the kernel's lock proves.
 * @returns how many
 */
export function sweepProgress(stateDirectory: string): number {
  let names: string[];
  try {
    names = readdirSync(`${stateDirectory}/progress`);
  } catch {
    return 0; // ENOENT: no run has ever made one
  }
  const paths = names.filter(isRunId).map((name) => progressPath(stateDirectory, name));
  let swept = 0;
  for (const path of paths) {
    if (swept >= MOST_SWEPT) break;
    if (removeDead(path)) swept += 1;
  }
  return swept;
}

/** @returns false where it is not there, not ours, or its watchdog lives */
export function removeDead(path: string): boolean {
  let fd: number;
  try {
    fd = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    return false; // ENOENT: removed at this moment. EACCES: another user's
  }
  try {
    const isDead = fstatSync(fd).isFile() && sys.flock(fd, LOCK_EX | LOCK_NB) >= 0;
    if (isDead) removeQuietly(path);
    return isDead;
  } finally {
    closeSync(fd);
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // ENOENT: it is gone. EROFS, EACCES: a later run tries again.
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
