/**
 * Who is below whom in one look over all processes. Pure; decides nothing about anybody. A look may
 * be torn: a parent that is missing or younger than its child is none.
 */
import type { SeenProcess } from "./survivors-view.ts";

export interface Descent {
  readonly parentOf: (seen: SeenProcess) => SeenProcess | undefined;
  /** The roots and all below them; nobody who is stopped at, and nobody below such a one. */
  readonly below: (
    roots: readonly SeenProcess[],
    stopsAt?: (seen: SeenProcess) => boolean,
  ) => ReadonlySet<number>;
}

/**
 * A list to work off and no recursion: a shell loop makes chains of many thousand processes. A
 * circle, which only a torn look can show, is gone around once.
 */
export function indexDescent(processes: readonly SeenProcess[]): Descent {
  const byPid = new Map(processes.map((seen) => [seen.pid, seen]));
  const parentOf = (seen: SeenProcess): SeenProcess | undefined => {
    const parent = byPid.get(seen.ppid);
    // A parent that is younger than its child is another process with a used pid: no parent.
    return parent !== undefined && parent.startTicks <= seen.startTicks ? parent : undefined;
  };
  const byParent = Map.groupBy(processes, (seen) => parentOf(seen)?.pid);
  const below: Descent["below"] = (roots, stopsAt = () => false) => {
    const reached = new Set<number>();
    const queue = [...roots];
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      if (reached.has(next.pid) || stopsAt(next)) continue;
      reached.add(next.pid);
      for (const child of byParent.get(next.pid) ?? []) queue.push(child);
    }
    return reached;
  };
  return { parentOf, below };
}
