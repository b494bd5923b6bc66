/**
 * Carries retention out on the disk: joins what killed runs left in parts, removes the oldest logs,
 * then empty job directories. Knows nothing of the run that it works for.
 *
 * Guarantees: touches only files that are named as logs are (`<uuid>.log` and its parts) in
 * directories right below the root, never follows a link, and never a log whose flock is taken. Not
 * guaranteed: an exact bound while runs are writing; entries beyond MAX_SCANNED wait for a later
 * run. Errors of single files are skipped: the next run tries.
 * Works in steps (each `next()` is short), so that the log Worker goes on writing in between.
 */
import { closeSync, constants, lstatSync, openSync, readdirSync, rmdirSync } from "node:fs";
import { LOCK_EX, LOCK_NB, sys } from "../os/sys.ts";
import type { RetentionLimits, StoredLog } from "./log-retention.ts";
import { decidePruning } from "./log-retention.ts";
import { joinSegments, removeIfThere } from "./log-segments.ts";

export const MAX_SCANNED = 8_192;
/**
 * Logs that turn out to be held make room for others to go; this often, then the next run goes on.
 */
const MAX_ROUNDS = 3;

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const O_CLOEXEC = 0o2000000;

const LOG_PART = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.log(\.tail-\d+-\d+|\.joining)?$/;

interface FoundLog extends StoredLog {
  readonly directory: string;
  /** Names of the parts beside the log itself. */
  readonly parts: readonly string[];
}

export function* pruneLogs(root: string, limits: RetentionLimits): Generator<undefined, number> {
  const found: FoundLog[] = [];
  let budget = MAX_SCANNED;
  for (const job of listDirectory(root).slice(0, MAX_SCANNED)) {
    const names = listDirectory(`${root}/${job}`).slice(0, budget);
    budget -= names.length;
    for (const log of gatherLogs(`${root}/${job}`, names)) {
      found.push(log);
      if (log.parts.length > 0) withFreeLog(log, () => joinSegments(pathOf(log)));
      yield;
    }
    if (names.length === 0) removeIfEmpty(`${root}/${job}`);
    if (budget <= 0) break;
  }
  return yield* removeOldest(found, limits);
}

function* removeOldest(
  found: readonly FoundLog[],
  limits: RetentionLimits,
): Generator<undefined, number> {
  let logs = [...found];
  let removed = 0;
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    const removals = decidePruning(logs, limits);
    const held = new Set<string>();
    for (const { log } of removals) {
      if (withFreeLog(log, () => removeLog(log))) removed += 1;
      else held.add(log.runId);
      logs = logs.filter((one) => one !== log || held.has(one.runId));
      yield;
    }
    if (held.size === 0) break;
    logs = logs.map((log) => (held.has(log.runId) ? { ...log, isHeld: true } : log));
  }
  for (const directory of new Set(found.map((log) => log.directory))) removeIfEmpty(directory);
  return removed;
}

function gatherLogs(directory: string, names: readonly string[]): FoundLog[] {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const runId = LOG_PART.exec(name)?.[1];
    if (runId === undefined) continue;
    groups.set(runId, [...(groups.get(runId) ?? []), name]);
  }
  return [...groups].map(([runId, files]) => ({
    runId,
    directory,
    parts: files.filter((name) => name !== `${runId}.log`),
    bytes: files.reduce((sum, name) => sum + sizeOf(`${directory}/${name}`), 0),
    isHeld: false,
  }));
}

function pathOf(log: FoundLog): string {
  return `${log.directory}/${log.runId}.log`;
}

/**
 * Runs `act` while holding the log's flock; false when a living run has it, or the file cannot be
 * had.
 */
function withFreeLog(log: FoundLog, act: () => void): boolean {
  let fd: number | undefined;
  try {
    fd = openSync(pathOf(log), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (sys.flock(fd, LOCK_EX | LOCK_NB) < 0) return false;
    act();
    return true;
  } catch {
    // ENOENT: another run was faster. EACCES, ELOOP, EIO: not ours to judge; the next run tries
    // again.
    return false;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function removeLog(log: FoundLog): void {
  // The parts first: without its log a part would belong to nobody.
  for (const part of log.parts) removeIfThere(`${log.directory}/${part}`);
  removeIfThere(pathOf(log));
}

function listDirectory(path: string): string[] {
  try {
    return lstatSync(path).isDirectory() ? readdirSync(path) : [];
  } catch {
    // ENOENT: nothing has been kept yet. EACCES: nothing that we may remove.
    return [];
  }
}

function sizeOf(path: string): number {
  try {
    return lstatSync(path).size;
  } catch {
    // ENOENT: removed since the listing.
    return 0;
  }
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // ENOTEMPTY: still in use. Others: a directory that stays does no harm.
  }
}
