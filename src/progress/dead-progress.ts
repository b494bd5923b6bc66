/**
 * The progress file of a run whose watchdog was killed: what the job had reported by then. Only the
 * guard asks, once the tree is gone or left; nobody judges it.
 *
 * Always: bounded by READ_MS, whatever stands in the file.
 */
import { closeSync } from "node:fs";
import type { ItemCounts } from "../core/item-counts.ts";
import { ProgressFollower } from "./follower.ts";
import { openProgress, progressPath } from "./place.ts";

const READ_MS = 1_000;
const NO_LIMITS = { maxFailRate: undefined, maxConsecutiveFails: undefined } as const;

/** Undefined: there is no file. @throws the error of the system call: EIO */
export function countDead(stateDirectory: string, runId: string): ItemCounts | undefined {
  const path = progressPath(stateDirectory, runId);
  const fd = openProgress(path);
  if (fd === undefined) return undefined;
  const follower = new ProgressFollower({ path, fd }, NO_LIMITS);
  try {
    follower.look(READ_MS);
    follower.end();
    return follower.counts;
  } finally {
    follower.close();
    closeSync(fd);
  }
}
