/**
 * Small files, written so that a reader sees the old one or the new one, never a part.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readlinkSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { faultPoint } from "./faults.ts";

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY } = constants;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** Whether this path is a regular file, or nothing yet: then a new content can take its place. */
export function isReplaceable(path: string): boolean {
  const target = followLinks(path);
  return !DESCRIPTOR.test(target) && (statOf(target)?.isFile() ?? true);
}

/** `/dev/stdout` may lead to a regular file: the one that the output itself is written to. */
const DESCRIPTOR = /^\/(dev\/(std|fd\/)|proc\/)/;

/**
 * Gives a file of the user's a new content: a regular file is replaced at once, with its mode and
 * owner; a link is followed; what is no regular file (a device, a FIFO, a descriptor) is written
 * straight into.
 *
 * @param mode  permission bits of a file that was not there
 * @throws the error of the system call; ENXIO for a FIFO without a reader, EAGAIN for a full one
 */
export function deliverFile(path: string, content: string, mode: number): void {
  if (!isReplaceable(path)) return writeInto(path, content);
  const target = followLinks(path);
  const old = statOf(target);
  replaceFile(target, content, old === undefined ? mode : old.mode & 0o7777, old);
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined; // ENOENT: it will be made. EACCES: the write will say so.
  }
}

const MOST_LINKS = 40;

/** The file that a path leads to, also where it is not there yet. */
function followLinks(path: string): string {
  let target = path;
  for (let step = 0; step < MOST_LINKS; step += 1) {
    if (DESCRIPTOR.test(target)) return target;
    try {
      const link = readlinkSync(target);
      target = link.startsWith("/") ? link : `${directoryOf(target)}/${link}`;
    } catch {
      return target; // EINVAL: no link. ENOENT: nothing there.
    }
  }
  statSync(path); // links in a circle: throws ELOOP
  return target;
}

function writeInto(path: string, content: string): void {
  const fd = openSync(path, O_WRONLY | O_NONBLOCK | O_APPEND | O_NOCTTY);
  try {
    writeAll(fd, content);
  } finally {
    closeSync(fd);
  }
}

function directoryOf(path: string): string {
  const end = path.lastIndexOf("/");
  return end <= 0 ? path.slice(0, end + 1) || "." : path.slice(0, end);
}

/**
 * Replaces a file's content at once: written beside it, fsynced, renamed, the directory fsynced
 * (rename(2), fsync(2)).
 *
 * After a crash: the old content, or the new; a `.<name>.<random>.tmp` may remain beside it.
 * @param mode  permission bits of a new file; the umask is applied as for any file of the user's
 * @throws the error of the system call (EACCES, ENOSPC, EROFS …); nothing of ours remains then
 * Blocks: two fsyncs.
 */
export function replaceFile(path: string, content: string, mode: number, owner?: Stats): void {
  const directory = directoryOf(path);
  const name = path.slice(path.lastIndexOf("/") + 1).slice(0, 100);
  const beside = `${directory}/.${name}.${crypto.randomUUID().slice(0, 13)}.tmp`;
  try {
    faultPoint("file.create", { path });
    writeWhole(beside, content, mode, owner);
    faultPoint("file.rename", { path });
    renameSync(beside, path);
  } catch (error) {
    removeQuietly(beside);
    throw error;
  }
  syncDirectory(directory);
}

function writeWhole(path: string, content: string, mode: number, owner: Stats | undefined): void {
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    writeAll(fd, content);
    if (owner !== undefined && process.getuid?.() === 0) fchownSync(fd, owner.uid, owner.gid);
    fchmodSync(fd, mode);
    faultPoint("file.fsync", { path });
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, content: string): void {
  const bytes = Buffer.from(content);
  for (let offset = 0; offset < bytes.length;) offset += writeSync(fd, bytes, offset);
}

export function syncDirectory(path: string): void {
  const fd = openSync(path, O_RDONLY | O_DIRECTORY);
  try {
    fsyncSync(fd);
  } catch (error) {
    // EINVAL: this file system has nothing to sync for a directory.
    if (!(error instanceof Error && "code" in error && error.code === "EINVAL")) throw error;
  } finally {
    closeSync(fd);
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // ENOENT: it was never made. Anything else: the first error is the one to tell.
  }
}
