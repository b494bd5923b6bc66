/**
 * The independent judge of who lived when, for processes that are killed and cannot write down
 * their end: each appends a line `RUN_ID PID` to one file again and again (fixtures
 * `keeps-writing.*`, `titles-itself.py`), and the kernel keeps the order of appends.
 *
 * Refuses to know anything of leases, clocks and /proc. Always holds: a line that cannot be read is
 * an error, never left out.
 */
import { existsSync, readFileSync } from "node:fs";

export interface Tick {
  readonly runId: string;
  readonly pid: number;
}

export function readTicks(path: string): Tick[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => {
    const [, runId, pid] = /^(\S+) (\d+)$/.exec(line) ?? [];
    if (runId === undefined) throw new Error(`no tick: ${line}`);
    return { runId, pid: Number(pid) };
  });
}

/** The runs in the order in which their commands first showed life. */
export function listRuns(ticks: readonly Tick[]): string[] {
  return [...new Set(ticks.map((tick) => tick.runId))];
}

/** Signs of life of a run after one of the next has lived: none where nothing overlapped. */
export function findLateTicks(ticks: readonly Tick[]): Tick[] {
  const begun = new Set<string>();
  let current: string | undefined;
  return ticks.filter(({ runId }) => {
    const isLate = begun.has(runId) && runId !== current;
    if (!isLate) current = runId;
    begun.add(runId);
    return isLate;
  });
}
