/**
 * Small files, written so that a reader sees the old one or the new one, never a part.
 */
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { faultPoint } from "./faults.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;

/**
 * Replaces a file's content at once: written beside it, fsynced, renamed, the directory fsynced
 * (rename(2), fsync(2)).
 *
 * After a crash: the old content, or the new; a `.<name>.<random>.tmp` may remain beside it.
 * @param mode  permission bits of a new file; the umask is applied as for any file of the user's
 * @throws the error of the system call (EACCES, ENOSPC, EROFS …); nothing of ours remains then
 * Blocks: two fsyncs.
 */
export function replaceFile(path: string, content: string, mode: number): void {
  const end = path.lastIndexOf("/");
  const directory = end <= 0 ? path.slice(0, end + 1) || "." : path.slice(0, end);
  const name = path.slice(end + 1).slice(0, 100);
  const beside = `${directory}/.${name}.${crypto.randomUUID().slice(0, 13)}.tmp`;
  try {
    faultPoint("file.create", { path });
    writeWhole(beside, content, mode);
    faultPoint("file.rename", { path });
    renameSync(beside, path);
  } catch (error) {
    removeQuietly(beside);
    throw error;
  }
  syncDirectory(directory);
}

function writeWhole(path: string, content: string, mode: number): void {
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    const bytes = Buffer.from(content);
    for (let offset = 0; offset < bytes.length;) offset += writeSync(fd, bytes, offset);
    faultPoint("file.fsync", { path });
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
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
