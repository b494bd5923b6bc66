/**
 * Who of all processes of the machine belongs to the tree of a run whose watchdog is dead: proven
 * members, and suspects that only carry its cookie. Pure; knows no system call.
 *
 * Proven is who was recorded with a beat of the owner (pid and start time), who descends from a
 * proven one, who is in the group that the main command was started to lead, in the session of the
 * owner, and a bearer of the cookie that was born in the span that the last beat leaves open (else
 * not before the owner), in the owner's cgroup or below it, and whose parent is one to whom the
 * kernel gives the orphans of this run. A cookie alone proves nothing: `at`, `systemctl
 * import-environment` and `env > file` carry it to innocents
 * (design.md, section 5). Where the owner was killed before it could write down its command, an
 * orphan that may be this one is a suspect; so is who cannot be read and may be of the run as far
 * as everything else tells (core/unread-processes.ts).
 *
 * Always: a bearer that is not proven is a suspect, never nobody; never in either list are the one
 * who looks, process 1, kernel threads, the dead, the owner, any guard, what was started by
 * `watchdog keep`, and everything below those two. An ancestor of the one who looks is listed with
 * a flag, so that the verdict refuses; it is not to be signalled. Names and command lines are never
 * looked at, and users and ages prove nobody a member.
 */
import type { ProcessIdentity } from "./lease-record.ts";
import type { DeadRun, SeenProcess, SurvivorView } from "./survivors-view.ts";
import { type Descent, indexDescent } from "./descent.ts";
import { identify } from "./tree-members.ts";
import { findUnread, isAtOrBelow } from "./unread-processes.ts";

export { deadRunOf, UNREAD_CGROUP } from "./dead-run.ts";

export interface Survivor extends SeenProcess {
  /** An ancestor of the one who looks. */
  readonly isAncestor: boolean;
}

export interface Survivors {
  readonly members: readonly Survivor[];
  readonly suspects: readonly Survivor[];
  /** As in the run: that nobody was found proves nothing. */
  readonly isBlind: boolean;
}

/** Decides for all processes of the view at once, in the order in which they were seen. */
export function decideSurvivors(view: SurvivorView): Survivors {
  const { run, processes } = view;
  const descent = indexDescent(processes);
  const spared = descent.below(processes.filter((seen) => isSpared(view, seen)));
  // What the one who looks has below it came with it, even if that was a member itself once.
  const ours = descent.below(processes.filter((seen) => seen.pid === view.self));
  const owner = nameOf(run.owner);
  const isNever = (seen: SeenProcess): boolean =>
    seen.pid === view.self ||
    seen.pid === 1 ||
    seen.isKernelThread ||
    identify(seen) === owner ||
    spared.has(seen.pid);
  const recorded = new Set(run.recorded.map(nameOf));
  const adopters = new Set([...run.adopters, run.owner].map(nameOf));
  const leader = processes.find((seen) => seen.pid === run.mainGroup?.pid);
  const isRoot = (seen: SeenProcess): boolean =>
    recorded.has(identify(seen)) ||
    (isInMainGroup(run, seen, leader) && !ours.has(seen.pid)) ||
    (isBearer(run, seen) && isInPlace(run, seen) && isOrphan(seen, descent, adopters));
  const isTold = (seen: SeenProcess): boolean =>
    isBearer(run, seen) || (mayBeUnrecorded(run, seen) && isOrphan(seen, descent, adopters));
  const proven = descent.below(processes.filter(isRoot), isNever);
  const unread = findUnread(view, { descent, adopters, isNever, isTold });
  const isSuspect = (seen: SeenProcess): boolean => isTold(seen) || unread.has(seen.pid);
  const list = (isListed: (seen: SeenProcess) => boolean): Survivor[] =>
    processes
      .filter((seen) => !isNever(seen) && !isDead(seen) && isListed(seen))
      .map((seen) => ({ ...seen, isAncestor: view.ancestors.has(seen.pid) }));
  return {
    members: list((seen) => proven.has(seen.pid)),
    suspects: list((seen) => !proven.has(seen.pid) && isSuspect(seen)),
    isBlind: run.isBlind,
  };
}

/** The dead are no survivors, but whoever is below them still descends from them. */
function isDead(seen: SeenProcess): boolean {
  return seen.state === "Z" || seen.state === "X";
}

function isSpared({ run, kept }: SurvivorView, seen: SeenProcess): boolean {
  const isGuard = seen.isGuard || (run.guard !== null && nameOf(run.guard) === identify(seen));
  const hasToken = seen.keptToken !== undefined && kept.tokens.has(seen.keptToken);
  return isGuard || hasToken || kept.identities.has(identify(seen));
}

function isBearer(run: DeadRun, seen: SeenProcess): boolean {
  return seen.runPath !== "unread" && seen.runPath.includes(run.runId);
}

/**
 * Whether its group proves it: the number of a group is not given to a process while somebody is in
 * it, and once it is, the leader has another start or the session is another one.
 *
 * @param leader  the process that has the group's number for its pid now, if there is one
 */
export function isInMainGroup(
  run: DeadRun,
  seen: SeenProcess,
  leader: Pick<SeenProcess, "startTicks"> | undefined,
): boolean {
  const group = run.mainGroup;
  return (
    group !== null &&
    seen.groupId === group.pid &&
    seen.sessionId === group.sessionId &&
    seen.startTicks >= run.owner.start_time &&
    (leader === undefined || leader.startTicks === group.start_time)
  );
}

/**
 * A command leads a group in the session of its watchdog from its first moment on. One that carries
 * the cookie of another run is that one's.
 */
function mayBeUnrecorded(run: DeadRun, seen: SeenProcess): boolean {
  const { pid, groupId, sessionId, startTicks, runPath } = seen;
  if (runPath !== "unread" && runPath.length > 0) return false;
  const leadsOnlyAGroup = groupId === pid && sessionId !== pid;
  const isThere = leadsOnlyAGroup && run.unrecordedIn.includes(sessionId);
  const [first, last] = run.unrecordedBetween ?? [run.owner.start_time, Number.MAX_VALUE];
  return isThere && startTicks >= Math.max(first, run.owner.start_time) && startTicks <= last;
}

function nameOf(identity: ProcessIdentity): string {
  return identify({ pid: identity.pid, startTicks: identity.start_time });
}

/** Born in the span of the run, still in its cgroup; where none was recorded any place will do. */
function isInPlace(run: DeadRun, seen: SeenProcess): boolean {
  const [first, last] = run.provenBetween ?? [run.owner.start_time, Number.MAX_VALUE];
  if (seen.startTicks < Math.max(first, run.owner.start_time) || seen.startTicks > last) {
    return false;
  }
  return run.cgroup === null || isAtOrBelow(run.cgroup, seen.cgroup);
}

/**
 * Whether the parent is one that an orphan of the run comes to: process 1 of any namespace, an
 * ancestor of the owner that adopts, or the owner itself in the moment of its death.
 */
function isOrphan(seen: SeenProcess, descent: Descent, adopters: ReadonlySet<string>): boolean {
  if (seen.ppid === 1) return true;
  const parent = descent.parentOf(seen);
  return parent !== undefined && (parent.isNamespaceInit || adopters.has(identify(parent)));
}
