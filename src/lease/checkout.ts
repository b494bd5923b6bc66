/**
 * What a path in a checkout tells about it: the top level, and the branch. Reads git's own files
 * and never runs git.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
} from "node:fs";
import { dirname, resolve } from "node:path";

const { O_NONBLOCK, O_RDONLY } = constants;
const LONGEST_GIT_FILE = 4096;

/** @param path  a real path. @returns the nearest directory with a `.git`, or the path itself */
export function findTopLevel(path: string): string {
  for (let directory = path; ; directory = dirname(directory)) {
    if (existsSync(`${directory}/.git`)) return directory;
    if (directory === dirname(directory)) return path;
  }
}

/** The branch that is checked out (gitrepository-layout(5)); null: detached, or no git. */
export function readBranch(topLevel: string): string | null {
  const head = readGitFile(`${findGitDirectory(topLevel)}/HEAD`);
  return /^ref: refs\/heads\/(.+)$/m.exec(head ?? "")?.[1] ?? null;
}

/** A linked worktree and a submodule have a file there that names the directory. */
function findGitDirectory(topLevel: string): string {
  const path = `${topLevel}/.git`;
  const link = isDirectory(path) ? undefined : readGitFile(path);
  const target = /^gitdir: (.+)$/m.exec(link ?? "")?.[1];
  return target === undefined ? path : resolve(topLevel, target);
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Small regular files only: a FIFO in the place of one would not answer. */
function readGitFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK);
  } catch {
    return undefined; // ENOENT: no git here. EACCES: not ours to read. The branch is for people.
  }
  try {
    if (!fstatSync(fd).isFile()) return undefined;
    const bytes = new Uint8Array(LONGEST_GIT_FILE);
    return new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes)));
  } catch {
    return undefined; // EIO: as above
  } finally {
    closeSync(fd);
  }
}
