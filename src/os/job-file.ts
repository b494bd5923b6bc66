/**
 * Reads the text of a job file: where it really lies, and what is in it.
 *
 * Knows nothing of jobs. Unlike a configuration, which is read without having been named, a job
 * file is given by whoever runs it, as a script is to a shell: whose it is is not asked. Always: a
 * FIFO or a device is not waited for, because a resume must be able to read the same again.
 *
 * State after a crash: none, nothing is written.
 */
import { closeSync, constants, fstatSync, openSync, realpathSync } from "node:fs";
import { decodeUtf8, readAtMost } from "./read-text.ts";

/** 20,000 steps of 200 bytes each. */
export const LARGEST_JOB_BYTES = 4 * 1024 * 1024;

export type JobFileReading =
  | {
      readonly kind: "text";
      /** Absolute, without links. */
      readonly path: string;
      readonly text: string;
    }
  /** Clauses for people. */
  | { readonly kind: "refused"; readonly found: string; readonly expected: string };

/** Follows links: a job lives where its file really lies. */
export function readJobFile(path: string): JobFileReading {
  let descriptor: number | undefined;
  try {
    const real = realpathSync(path);
    descriptor = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    return readOpen(descriptor, real);
  } catch (cause) {
    return refuse(describeError(cause), "a file that can be read"); // EIO, EACCES, ELOOP
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function readOpen(descriptor: number, path: string): JobFileReading {
  const stat = fstatSync(descriptor);
  if (stat.isDirectory()) return refuse("a directory", "a file");
  if (!stat.isFile()) return refuse("no regular file", "a file");
  // Where bytes were lost the directory of the job would be another one.
  if (path.includes("\uFFFD")) return refuse("a path that is no UTF-8", "one of UTF-8");
  const bytes = readAtMost(descriptor, LARGEST_JOB_BYTES);
  if (bytes === undefined) return refuse("a larger file", `at most ${LARGEST_JOB_BYTES} bytes`);
  const text = decodeUtf8(bytes);
  if (text === undefined) return refuse("bytes that are no text", "UTF-8");
  return { kind: "text", path, text };
}

function refuse(found: string, expected: string): JobFileReading {
  return { kind: "refused", found, expected };
}

function describeError(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
  if (code === "ENOENT" || code === "ENOTDIR") return "no file";
  return code === "EACCES" ? "a file that may not be read" : `an error (${code})`;
}
