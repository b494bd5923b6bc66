/**
 * The result file of a run whose watchdog is dead: corrected by whoever found it so. Only a file
 * that still says that this very run goes on is replaced; another run's, or a person's, never.
 *
 * State after a crash: the old content, or the new.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import type { RunRecord } from "../core/run-record.ts";
import { deliverFile } from "../os/files.ts";

const { O_NONBLOCK, O_RDONLY } = constants;
/** Two command lines of the greatest length, as text and as base64. */
const LONGEST_RECORD_BYTES = 64 * 1024 * 1024;

/**
 * @param path  absolute
 * @param mode  permission bits, should the file go away meanwhile
 * @returns "kept": no file, none of this run, or one that says the end already
 * @throws the error of the system call: EACCES, ENOSPC, EROFS …
 */
export function correctResultFile(
  path: string,
  record: RunRecord,
  mode: number,
): "corrected" | "kept" {
  const found = readResult(path);
  if (found?.["run_id"] !== record.run_id || found["state"] !== "running") return "kept";
  deliverFile(path, `${JSON.stringify(record, null, 2)}\n`, mode);
  return "corrected";
}

/** Undefined: nothing there that a run has written. Opened so that a FIFO cannot hold us up. */
function readResult(path: string): Readonly<Record<string, unknown>> | undefined {
  let fd: number;
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const found = fstatSync(fd);
    if (!found.isFile() || found.size > LONGEST_RECORD_BYTES) return undefined;
    return parseObject(readFileSync(fd, "utf8"));
  } finally {
    closeSync(fd);
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined; // SyntaxError: somebody else's file
  }
}
