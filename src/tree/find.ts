/**
 * Looks at the tree: everything below this process, by the `children` files of `/proc`, level by
 * level. Only reads; what it sees may have changed a microsecond later, so nobody signals by this
 * alone (see `signal.ts`).
 */
import type { ProcessRow } from "../core/tree-members.ts";
import { GUARD_MEMORY } from "../core/burial.ts";
import {
  holdsMemoryFile,
  readChildren,
  readEnvironment,
  readMainChildren,
  readProgram,
  readStat,
  readThreadStates,
} from "../os/proc.ts";

/** More processes than this are not looked at in one go; rounds of KILL come back for the rest. */
export const MOST_PROCESSES = 20_000;

/** All living and dead processes below `self`, parents before children. */
export function findDescendants(self: number): ProcessRow[] {
  const ours = readProgram("self");
  const rows: ProcessRow[] = [];
  const seen = new Set<number>([self]);
  let level = readChildren("self");
  while (level.length > 0 && rows.length < MOST_PROCESSES) {
    const below: number[] = [];
    for (const pid of level) {
      if (seen.has(pid)) continue;
      seen.add(pid);
      const row = lookAt(pid, ours);
      if (row === undefined) continue;
      rows.push(row);
      below.push(...readChildren(pid));
    }
    level = below;
  }
  return rows;
}

/**
 * The direct children only: enough to kill by rounds and to prove the tree empty, however deep it
 * is.
 */
export function findChildren(): ProcessRow[] {
  return readChildren("self").flatMap((pid) => lookAt(pid, undefined) ?? []);
}

/**
 * Children to be killed, as quickly as can be: between this look and the signal a process that
 * replaces itself by fork and exit is gone. None of them is looked at for its program.
 */
export function findKillable(helpers: ReadonlySet<number>): ProcessRow[] {
  const isOfJob = (pid: number): boolean => !helpers.has(pid);
  const near = readMainChildren().filter(isOfJob);
  const pids = near.length > 0 ? near : readChildren("self").filter(isOfJob);
  return pids.flatMap((pid) => lookAt(pid, undefined) ?? []);
}

/**
 * One process; undefined if it is gone. Where its first thread has ended while others live on, its
 * state is that of one of these: it is no more dead than they are.
 */
export function lookAt(pid: number, ours: string | undefined): ProcessRow | undefined {
  const stat = readStat(pid);
  if (stat === undefined) return undefined;
  return {
    pid,
    ppid: stat.ppid,
    startTicks: stat.startTicks,
    state: stat.state === "Z" && stat.threads > 1 ? stateOfThreads(pid) : stat.state,
    isWatchdog: ours !== undefined && readProgram(pid) === ours,
  };
}

function stateOfThreads(pid: number): string {
  return readThreadStates(pid).find((state) => state !== "Z" && state !== "X") ?? "Z";
}

/**
 * The same rows, with every watchdog known as one: also a copy of the program elsewhere, by the
 * memory file that each shares with its guard. Costs a look at all descriptors of each process.
 */
export function markWatchdogs(rows: readonly ProcessRow[]): ProcessRow[] {
  return rows.map((row) =>
    row.isWatchdog ? row : { ...row, isWatchdog: holdsMemoryFile(row.pid, GUARD_MEMORY) },
  );
}

/** Our own chain of parents up to process 1. */
export function findAncestors(): Set<number> {
  const ancestors = new Set<number>();
  for (let pid = process.ppid; pid > 0 && !ancestors.has(pid);) {
    ancestors.add(pid);
    pid = readStat(pid)?.ppid ?? 0;
  }
  return ancestors;
}

/**
 * Whether the environment of a process holds `KEY=` with this value as one of its `/`-separated
 * parts.
 */
export function readCookie(pid: number, key: string, value: string): "yes" | "no" | "unread" {
  const entries = readEnvironment(pid);
  if (entries === undefined) return "unread";
  const entry = entries.find((one) => one.startsWith(`${key}=`));
  return entry
    ?.slice(key.length + 1)
    .split("/")
    .includes(value)
    ? "yes"
    : "no";
}
