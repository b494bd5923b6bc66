/**
 * Who may be of a dead run and cannot be read: whose environment belongs to another user, or hides
 * itself from its own (a program of mode 0711, set-uid, PR_SET_DUMPABLE 0). Such a one is a suspect
 * and never a member. Pure; knows no system call.
 *
 * That it cannot be read proves nothing, so that it is of somebody else only where something says
 * so. It does where
 *
 * - it was born before the last beat, which lists everybody of the run (before the owner, where the
 *   list is not whole);
 * - none of its four users is the owner's. The owner's being root, or unknown, says nothing;
 * - it is in a cgroup that is not the run's, nor below that;
 * - its parent is neither one who adopts orphans of the run, nor somebody who may be of the run
 *   itself: whoever was there before, or can be read and carries no cookie, has its own children;
 * - it is above the one who looks, who would have inherited the cookie and has none.
 *
 * So the daemons of a machine keep nobody from a key: they are other users', of other cgroups,
 * below a manager that was there before, or older than the last beat. Non-guarantees: whoever of a
 * run has become another user or has moved to another cgroup, and has left and hidden its
 * environment since the last beat, is not found.
 */
import type { Descent } from "./descent.ts";
import type { DeadRun, SeenProcess, SurvivorView } from "./survivors-view.ts";
import { identify } from "./tree-members.ts";

/** What is known of the processes of the view already. */
export interface Known {
  readonly descent: Descent;
  /** Those to whom orphans of the run come, the owner among them: `pid@start`. */
  readonly adopters: ReadonlySet<string>;
  readonly isNever: (seen: SeenProcess) => boolean;
  /** A suspect by what can be read of it. */
  readonly isTold: (seen: SeenProcess) => boolean;
}

/** UNREAD_CGROUP of core/dead-run.ts: it is like no path. */
const isPath = (cgroup: string): boolean => cgroup.startsWith("/");

/** @returns their pids */
export function findUnread(view: SurvivorView, known: Known): ReadonlySet<number> {
  const { processes, run } = view;
  const { descent, adopters, isNever, isTold } = known;
  const mayBe = (seen: SeenProcess): boolean => !isNever(seen) && mayBeOfRun(view, seen);
  const isRoot = (seen: SeenProcess): boolean =>
    isTold(seen) || (mayBe(seen) && isLeft(run, seen, descent.parentOf(seen), adopters));
  if (run.unlistedFrom === undefined) return new Set();
  const found = descent.below(processes.filter(isRoot), (seen) => !isTold(seen) && !mayBe(seen));
  return new Set(
    processes.filter((seen) => found.has(seen.pid) && mayBe(seen)).map(({ pid }) => pid),
  );
}

/** As far as it tells by itself, whoever its parent is. */
function mayBeOfRun({ run, processes, self, ancestors }: SurvivorView, seen: SeenProcess): boolean {
  if (seen.runPath !== "unread" || seen.isKernelThread) return false;
  if (seen.startTicks < (run.unlistedFrom ?? Infinity)) return false;
  if (!mayBeItsUser(run, seen) || isElsewhere(run, seen)) return false;
  if (!ancestors.has(seen.pid)) return true;
  const looker = processes.find(({ pid }) => pid === self);
  return looker === undefined || looker.runPath === "unread" || looker.runPath.includes(run.runId);
}

/** Root makes itself anybody. */
function mayBeItsUser({ ownerUid }: DeadRun, { userIds }: SeenProcess): boolean {
  if (ownerUid === undefined || ownerUid === 0 || userIds === undefined) return true;
  return userIds.includes(ownerUid);
}

function isElsewhere({ cgroup }: DeadRun, seen: SeenProcess): boolean {
  if (cgroup === null || !isPath(cgroup) || seen.cgroup === undefined) return false;
  return !isAtOrBelow(cgroup, seen.cgroup);
}

export function isAtOrBelow(place: string, cgroup: string | undefined): boolean {
  const below = place.endsWith("/") ? place : `${place}/`;
  return cgroup === place || cgroup?.startsWith(below) === true;
}

/** Whether an orphan of the run comes to where it is, or nothing tells who its parent is. */
function isLeft(
  run: DeadRun,
  seen: SeenProcess,
  parent: SeenProcess | undefined,
  adopters: ReadonlySet<string>,
): boolean {
  if (seen.ppid === 1) return run.isBelowOurs !== true;
  // 0: it has come in from outside of our pid namespace, where nobody of the run was.
  if (parent === undefined) return seen.ppid !== 0;
  if (run.isBelowOurs === true && parent.isNamespaceInit) return true;
  return adopters.has(identify(parent));
}
