/**
 * Who of the processes of the machine works in a checkout that somebody wants for itself. Pure;
 * knows no system call, and nobody is ever signalled because of what is decided here.
 *
 * Counted is a process that carries the cookie of another run: the last id of its run path is
 * neither one of the runs around the one who looks nor of an ancestor of it. A sibling below the
 * same outer run is another run. With a strict look everybody counts but the one who looks, those
 * above and below it, and the processes of its session.
 *
 * Always: never counted are the one who looks, its ancestors and what it has below it, process 1,
 * kernel threads, the dead, and whoever is about to be ended for the claim. What was started by
 * `watchdog keep` carries no cookie; where it got that of its run back, it counts for the strict
 * look only. A run that something kept has started is a run like any other.
 */
import type { ProcessIdentity } from "./lease-record.ts";
import type { KeptProcesses, SeenProcess } from "./survivors-view.ts";
import { identify } from "./tree-members.ts";

/** A process that was found at work in the checkout. */
export interface PlaceInWorktree extends ProcessIdentity {
  readonly command: string;
  /** By its working directory, or by a file that it has open for writing. */
  readonly by: "cwd" | "file";
  /** As the kernel names it, with ` (deleted)` behind what is gone. */
  readonly path: string;
}

export interface WorktreeUser extends PlaceInWorktree {
  /** The run whose cookie it carries; null: none, or it could not be read. */
  readonly runId: string | null;
}

/** Whoever is going to be ended for the claim, and with them their trees. */
export interface Spared {
  readonly runIds: readonly string[];
  readonly members: readonly ProcessIdentity[];
}

export interface WorktreeView {
  readonly processes: readonly SeenProcess[];
  readonly places: readonly PlaceInWorktree[];
  readonly self: number;
  readonly ancestors: ReadonlySet<number>;
  readonly sessionId: number;
  readonly runsAround: readonly string[];
  readonly isStrict: boolean;
  readonly spared: Spared;
  readonly kept: (runId: string) => KeptProcesses;
}

/** Decides for all processes at once, in the order of the places. */
export function decideWorktreeUsers(view: WorktreeView): WorktreeUser[] {
  const { processes } = view;
  const byIdentity = new Map(processes.map((seen) => [identify(seen), seen]));
  const below = indexDescent(processes);
  const ours = below((seen) => seen.pid === view.self);
  const ending = below((seen) => isSpared(view.spared, seen));
  const around = runsAround(view);
  return view.places.flatMap((place) => {
    const seen = byIdentity.get(identify({ pid: place.pid, startTicks: place.start_time }));
    if (seen === undefined || isNever(view, seen)) return [];
    if (ours.has(seen.pid) || ending.has(seen.pid)) return [];
    const runId = lastRunOf(seen);
    const isOfAnotherRun = runId !== undefined && !around.has(runId) && !isKept(view, seen);
    const isInTheWay = view.isStrict && seen.sessionId !== view.sessionId;
    return isOfAnotherRun || isInTheWay ? [{ ...place, runId: runId ?? null }] : [];
  });
}

function isNever({ ancestors }: WorktreeView, seen: SeenProcess): boolean {
  const isDead = seen.state === "Z" || seen.state === "X";
  return seen.pid === 1 || seen.isKernelThread || isDead || ancestors.has(seen.pid);
}

/** The run that a process belongs to; undefined: none, or not to be read. */
function lastRunOf({ runPath }: SeenProcess): string | undefined {
  return runPath === "unread" ? undefined : runPath.at(-1);
}

/** Those of our environment, and those of ancestors whose cookie did not come down to us. */
function runsAround({ runsAround: own, processes, ancestors }: WorktreeView): ReadonlySet<string> {
  const above = processes.filter((seen) => ancestors.has(seen.pid));
  return new Set([
    ...own,
    ...above.flatMap(({ runPath }) => (runPath === "unread" ? [] : runPath)),
  ]);
}

function isSpared({ runIds, members }: Spared, seen: SeenProcess): boolean {
  const { runPath, pid, startTicks } = seen;
  if (runPath !== "unread" && runIds.some((runId) => runPath.includes(runId))) return true;
  return members.some((one) => one.pid === pid && one.start_time === startTicks);
}

function isKept(view: WorktreeView, seen: SeenProcess): boolean {
  const runs = seen.runPath === "unread" ? [] : seen.runPath;
  return runs.some((runId) => {
    const { identities, tokens } = view.kept(runId);
    const hasToken = seen.keptToken !== undefined && tokens.has(seen.keptToken);
    return hasToken || identities.has(identify(seen));
  });
}

/** Each root that fits, and everybody below it; a list to work off, for chains of any length. */
function indexDescent(
  processes: readonly SeenProcess[],
): (isRoot: (seen: SeenProcess) => boolean) => ReadonlySet<number> {
  const byPid = new Map(processes.map((seen) => [seen.pid, seen]));
  const byParent = Map.groupBy(processes, (seen) => {
    const parent = byPid.get(seen.ppid);
    // A parent that is younger than its child is another process with a used pid.
    return parent !== undefined && parent.startTicks <= seen.startTicks ? parent.pid : undefined;
  });
  return (isRoot) => {
    const reached = new Set<number>();
    const queue = processes.filter(isRoot);
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      if (reached.has(next.pid)) continue;
      reached.add(next.pid);
      queue.push(...(byParent.get(next.pid) ?? []));
    }
    return reached;
  };
}
