/**
 * What became of the files that a job is expected to write: which have changed since before its
 * start, and what that says about one expectation. Plain data in, plain data out; no clock is
 * compared with another, because a file's times may come from elsewhere (`touch -d`, `mv`, `tar`, a
 * server).
 */
import type { FileExpectation } from "./expectations.ts";
import type { CheckResult } from "./checks.ts";
import { renderIso } from "./time.ts";

/** A file at one moment. Numbers of the kernel as text: they are only ever compared. */
export interface FileStamp {
  /** Device, inode, time of change and of modification. */
  readonly identity: string;
  readonly bytes: number;
  /** Its time of modification, in wall-clock milliseconds: what `ls` shows. */
  readonly changedAt: number;
}

/**
 * What an expectation leads to at one moment. `path` is the target where it is one file or one
 * directory, else each match of the pattern.
 */
export type FileSight =
  | { readonly kind: "seen"; readonly files: ReadonlyMap<string, FileStamp> }
  /** Why nobody can tell: EACCES, too many files, no answer in time. */
  | { readonly kind: "unread"; readonly reason: string };

export interface SeenFile extends FileStamp {
  readonly path: string;
  readonly isChanged: boolean;
}

export interface FileFacts {
  readonly expectation: FileExpectation;
  /** A directory counts as one result: all that lies below it. */
  readonly isDirectory: boolean;
  readonly before: FileSight;
  readonly after: FileSight;
  /** When the run began, wall clock, for people. */
  readonly startedAt: number;
  /**
   * What the last good run left for the same target; undefined: there is none, `unread`: the
   * journal did not answer.
   */
  readonly lastGoodBytes: number | undefined | "unread";
}

/** New, or another one, or written since. */
export function listChanges(before: FileSight, after: FileSight): readonly SeenFile[] {
  if (after.kind !== "seen") return [];
  return [...after.files].map(([path, stamp]) => ({
    ...stamp,
    path,
    isChanged: before.kind === "seen" && isOther(before.files.get(path), stamp),
  }));
}

/** Whether nothing has changed between two looks; also not where neither could be finished. */
export function isSameSight(before: FileSight | undefined, after: FileSight): boolean {
  if (before?.kind !== "seen" || after.kind !== "seen") return before?.kind === after.kind;
  if (before.files.size !== after.files.size) return false;
  return [...after.files].every(([path, stamp]) => !isOther(before.files.get(path), stamp));
}

function isOther(before: FileStamp | undefined, after: FileStamp): boolean {
  return before?.identity !== after.identity || before.bytes !== after.bytes;
}

/** Those that are the result of this run. */
export function listResults(facts: FileFacts): readonly SeenFile[] {
  const all = listChanges(facts.before, facts.after);
  if (facts.expectation.isAnyAge || facts.isDirectory) return all;
  return all.filter(({ isChanged }) => isChanged);
}

export function decideFile(facts: FileFacts): CheckResult {
  const { expectation, before, after } = facts;
  const { isAnyAge } = expectation;
  const judge = { check: "expect-file", target: expectation.target } as const;
  const expected = describeExpectation(expectation);
  const fail = (because: CheckResult["because"], found: string): CheckResult => ({
    ...judge,
    passed: false,
    because,
    found,
    expected,
  });
  if (after.kind === "unread") return fail("file-unread", after.reason);
  const all = listChanges(before, after);
  if (all.length === 0) {
    return facts.isDirectory
      ? fail("file-empty", "a directory without a file")
      : fail("file-missing", "no such file");
  }
  if (before.kind === "unread" && !isAnyAge) {
    return fail("file-unread", `before the start: ${before.reason}`);
  }
  if (!isAnyAge && !all.some(({ isChanged }) => isChanged)) {
    return fail("file-unchanged", describeUnchanged(all, facts.startedAt));
  }
  const results = listResults(facts);
  const small = findSmall(facts, results);
  if (small !== undefined) {
    const because = small.bytes === 0 ? "file-empty" : "file-too-small";
    return fail(because, describeSize(small, expectation.target));
  }
  const shrunk = findShrunk(facts, sumBytes(results));
  if (shrunk !== undefined) return fail("file-shrunk", shrunk);
  const found = describeGood(results, facts.lastGoodBytes, expectation.minRatio);
  return { ...judge, passed: true, because: null, found, expected };
}

export function sumBytes(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

type Sized = Pick<SeenFile, "path" | "bytes">;

/** The first result that holds too little; of a directory all that lies in it counts together. */
function findSmall(facts: FileFacts, results: readonly SeenFile[]): Sized | undefined {
  const { minBytes, target } = facts.expectation;
  const sized = facts.isDirectory ? [{ path: target, bytes: sumBytes(results) }] : results;
  return sized.find(({ bytes }) => bytes < minBytes);
}

function findShrunk({ expectation, lastGoodBytes }: FileFacts, bytes: number): string | undefined {
  const { minRatio } = expectation;
  if (minRatio === undefined || typeof lastGoodBytes !== "number") return undefined;
  if (bytes >= lastGoodBytes * minRatio) return undefined;
  return `${bytes} bytes, ${lastGoodBytes} after the last good run`;
}

function describeExpectation({ minBytes, isAnyAge, minRatio }: FileExpectation): string {
  const size = minBytes === 1 ? "not empty" : `of at least ${minBytes} bytes`;
  const parts = [
    "a file",
    ...(isAnyAge ? [] : ["changed since before the start"]),
    ...(minBytes === 0 ? [] : [size]),
    ...(minRatio === undefined ? [] : [`at least ${minRatio} of its last good size`]),
  ];
  return parts.join(", ");
}

function describeUnchanged(files: readonly SeenFile[], startedAt: number): string {
  const newest = files.reduce((last, file) => (file.changedAt > last.changedAt ? file : last));
  const which = files.length === 1 ? "it" : `${files.length} files, the newest`;
  return (
    `${which} last changed at ${showTime(newest.changedAt)}, ` +
    `the same as before the start at ${showTime(startedAt)}`
  );
}

function describeSize({ path, bytes }: Sized, target: string): string {
  // Absolute, where a pattern does not say which file it is.
  const which = path.endsWith(target) ? "" : `${path} with `;
  return `${which}${bytes === 1 ? "1 byte" : `${bytes} bytes`}`;
}

function describeGood(
  results: readonly SeenFile[],
  lastGoodBytes: FileFacts["lastGoodBytes"],
  minRatio: number | undefined,
): string {
  const files = results.length === 1 ? "" : ` in ${results.length} files`;
  const size = `${sumBytes(results)} bytes${files}`;
  if (minRatio === undefined || typeof lastGoodBytes === "number") return size;
  const why = lastGoodBytes === "unread" ? "the journal did not answer" : "no good run before";
  return `${size}; not compared: ${why}`;
}

export function showTime(at: number): string {
  return renderIso(at) ?? "a time that no calendar has";
}
