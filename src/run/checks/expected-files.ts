/**
 * Looks at the files that a job is expected to write: right before its start, now and then while it
 * runs, and when its tree is gone. Says what is there, decides nothing.
 *
 * Guarantees: no byte of a file is read; the main loop is not held up by a file system that hangs;
 * a look ends within its limit, with "unread" where it could not be finished. Links are followed,
 * as the job's own writes do; links to directories below a directory are not.
 */
import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { FileExpectation } from "../../core/expectations.ts";
import type { FileSight, FileStamp } from "../../core/file-changes.ts";
import { faultPoint } from "../../os/faults.ts";
import { wakeAfter } from "../../os/timers.ts";

/** Of one expectation: a pattern or a directory with more is not looked at. */
export const MOST_FILES = 10_000;
/** How long a look may take: a file system that hangs must keep neither start nor end waiting. */
const LOOK_LIMIT_MS = 10_000;
/** Asked for together: one after the other costs five times as much (measured). */
const MOST_AT_ONCE = 64;

export interface Look {
  readonly sight: FileSight;
  readonly isDirectory: boolean;
  /** The latest change of any file of it (nanoseconds of the wall clock). */
  readonly newest: bigint;
}

/** @param directory  the run's working directory; undefined: it is gone */
export async function lookAtFiles(
  directory: string | undefined,
  expectations: readonly FileExpectation[],
  when: "start" | "meanwhile" | "end",
): Promise<readonly Look[]> {
  const over = Promise.withResolvers<"over">();
  const timer = wakeAfter(LOOK_LIMIT_MS, () => over.resolve("over"));
  const looks = expectations.map(async ({ target }) => {
    const look = await Promise.race([lookAt(directory, target, when), over.promise]);
    return look === "over" ? unread("the file system did not answer in time") : look;
  });
  const found = await Promise.all(looks);
  timer.cancel();
  return found;
}

async function lookAt(directory: string | undefined, target: string, when: string): Promise<Look> {
  try {
    faultPoint("checks.look", { target, when });
    if (directory === undefined && !target.startsWith("/")) {
      return unread("the working directory is gone");
    }
    const path = resolve(directory ?? "/", target);
    const found = await statIfThere(path);
    if (found === undefined) {
      return isPattern(target) ? await lookAtPattern(path) : seen(new Map(), false);
    }
    if (found.isDirectory()) return await lookBelow(path);
    return seen(new Map([[path, found]]), false);
  } catch (error) {
    return unread(describe(error));
  }
}

/** A name that is there is meant as it is, whatever stands in it. */
function isPattern(target: string): boolean {
  return /[*?[]/.test(target);
}

function seen(files: ReadonlyMap<string, BigIntStats>, isDirectory: boolean): Look {
  const stamps = [...files].map(([path, found]) => [path, stampOf(found)] as const);
  const newest = [...files.values()].reduce((last, { ctimeNs }) => maxOf(last, ctimeNs), 0n);
  return { sight: { kind: "seen", files: new Map(stamps) }, isDirectory, newest };
}

function maxOf(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

function unread(reason: string): Look {
  return { sight: { kind: "unread", reason }, isDirectory: false, newest: 0n };
}

/** What is no file (a pipe, a device) holds nothing that could be a result. */
function stampOf(found: BigIntStats): FileStamp {
  const { dev, ino, ctimeNs, mtimeNs } = found;
  return {
    identity: `${dev}:${ino}:${ctimeNs}:${mtimeNs}`,
    bytes: found.isFile() ? Number(found.size) : 0,
    changedAt: Number(mtimeNs / 1_000_000n),
  };
}

async function statIfThere(path: string): Promise<BigIntStats | undefined> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** All files below a directory, however deep. */
async function lookBelow(path: string): Promise<Look> {
  return lookAtMatches(path, "**/*", { isDirectory: true, hasHidden: true });
}

async function lookAtPattern(path: string): Promise<Look> {
  const parts = path.split("/");
  const first = parts.findIndex(isPattern);
  const base = parts.slice(0, first).join("/");
  const pattern = parts.slice(first).join("/");
  const found = await statIfThere(base === "" ? "/" : base);
  if (found === undefined) return seen(new Map(), false);
  // Bun's patterns know more than ours: braces are alternatives there, and `!` turns all around.
  const ours = pattern.replace(/[{}]/g, "\\$&").replace(/^!/, "\\!");
  return lookAtMatches(base === "" ? "/" : base, ours, {
    isDirectory: false,
    hasHidden: false,
  });
}

async function lookAtMatches(
  base: string,
  pattern: string,
  how: { readonly isDirectory: boolean; readonly hasHidden: boolean },
): Promise<Look> {
  const paths: string[] = [];
  const options = { cwd: base, onlyFiles: false, dot: how.hasHidden, followSymlinks: false };
  for await (const name of new Bun.Glob(pattern).scan(options)) {
    paths.push(resolve(base, name));
    if (paths.length > MOST_FILES) return unread(`there are more than ${MOST_FILES} files`);
  }
  return seen(await statFiles(paths), how.isDirectory);
}

async function statFiles(paths: readonly string[]): Promise<ReadonlyMap<string, BigIntStats>> {
  const files = new Map<string, BigIntStats>();
  for (let at = 0; at < paths.length; at += MOST_AT_ONCE) {
    const some = paths.slice(at, at + MOST_AT_ONCE);
    const found = await Promise.all(some.map(statIfThere));
    for (const [index, path] of some.entries()) {
      const one = found[index];
      // Undefined: gone since it was listed, a temporary file of the job.
      if (one?.isFile() === true) files.set(path, one);
    }
  }
  return files;
}

function describe(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/, \w+ '.*$/s, "");
}
