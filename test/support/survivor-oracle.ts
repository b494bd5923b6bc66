/**
 * Who belongs to a dead run, decided by a walk up from each process: the decision under test walks
 * down from the proven ones.
 */
import { UNREAD_CGROUP } from "../../src/core/survivors.ts";
import type { SeenProcess, SurvivorView } from "../../src/core/survivors-view.ts";

/** The group and session of the main command, whose pid no other process has. */
export const [GROUP, SESSION] = [60, 8] as const;

function isOneOf(seen: SeenProcess, list: readonly { pid: number; start_time: number }[]): boolean {
  return list.some((one) => one.pid === seen.pid && one.start_time === seen.startTicks);
}

/** A process and all above it, as far as each is at least as old as the one below. */
function chainOf(view: SurvivorView, seen: SeenProcess): SeenProcess[] {
  const chain = [seen];
  for (;;) {
    const last = chain.at(-1);
    const parent = view.processes.find(({ pid }) => pid === last?.ppid);
    if (parent === undefined || last === undefined || chain.includes(parent)) return chain;
    if (parent.startTicks > last.startTicks) return chain;
    chain.push(parent);
  }
}

function bears(view: SurvivorView, { runPath }: SeenProcess): boolean {
  return runPath !== "unread" && runPath.some((id) => id === view.run.runId);
}

/** The recorded place of the owner, and which paths are in it. */
export const PLACES: Readonly<Record<string, RegExp>> = {
  "/jobs/x": /^[/]jobs[/]x([/]|$)/,
  "/": /^[/]/,
  [UNREAD_CGROUP]: /^unread/,
};

/** Of the chain of a process, itself first: whether it alone is proven. */
function isProvenByItself(view: SurvivorView, chain: readonly SeenProcess[]): boolean {
  const { run } = view;
  const [seen, above] = chain;
  if (seen === undefined) return false;
  if (isOneOf(seen, run.recorded)) return true;
  if (seen.startTicks < run.owner.start_time) return false;
  if (isInGroup(view, seen) && !chain.some(({ pid }) => pid === view.self)) return true;
  if (!bears(view, seen) || !isAdopted(view, seen, above)) return false;
  const { provenBetween: [first, last] = [0, Infinity] } = run;
  if (seen.startTicks < first || last < seen.startTicks) return false;
  return run.cgroup === null || PLACES[run.cgroup]?.test(seen.cgroup ?? "") === true;
}

function isAdopted({ run }: SurvivorView, seen: SeenProcess, above?: SeenProcess): boolean {
  if (seen.ppid === 1 || above === undefined) return seen.ppid === 1;
  return above.isNamespaceInit || isOneOf(above, [...run.adopters, run.owner]);
}

function isInGroup({ run, processes }: SurvivorView, seen: SeenProcess): boolean {
  if (run.mainGroup === null) return false;
  const isReused = processes.some(({ pid, startTicks }) => pid === GROUP && startTicks !== 100);
  return !isReused && `${seen.groupId} ${seen.sessionId}` === "60 8";
}

/** It may be the command that its owner had no time to write down. */
function mayBeCommand(view: SurvivorView, seen: SeenProcess, above?: SeenProcess): boolean {
  if (view.run.unrecordedIn.length === 0 || seen.sessionId !== SESSION) return false;
  const isYoung = seen.startTicks >= view.run.owner.start_time;
  return seen.pid === seen.groupId && isYoung && isAdopted(view, seen, above);
}

/** By itself, as far as it tells: young enough, the owner's user, in its place, not above us. */
function mayHide(view: SurvivorView, one: SeenProcess): boolean {
  const { run, ancestors } = view;
  if (one.runPath !== "unread" || one.startTicks < (run.unlistedFrom ?? 0)) return false;
  const { ownerUid } = run;
  const users = one.userIds ?? [ownerUid];
  const isItsUser = ownerUid === 0 || ownerUid === undefined || users.includes(ownerUid);
  return isItsUser && mayBeAt(run.cgroup, one) && (!ancestors.has(one.pid) || mayInherit(view));
}

function mayBeAt(place: string | null, { cgroup }: SeenProcess): boolean {
  if (place === null || place === UNREAD_CGROUP || cgroup === undefined) return true;
  return PLACES[place]?.test(cgroup) === true;
}

/** Whoever looks would have it of its ancestors. */
function mayInherit({ run, self, processes }: SurvivorView): boolean {
  const looker = processes.find(({ pid }) => pid === self);
  return looker === undefined || looker.runPath === "unread" || looker.runPath.includes(run.runId);
}

/** The orphans that the run could have left, by who has them now. */
function mayBeLeft(view: SurvivorView, one: SeenProcess, above?: SeenProcess): boolean {
  const { run, processes } = view;
  const isBelow = run.isBelowOurs === true;
  if (one.ppid <= 1) return one.ppid === 1 && !isBelow;
  if (above === undefined) {
    // Its parent is gone; or it is in a circle, which only a torn look can show.
    return !processes.some(
      ({ pid, startTicks }) => pid === one.ppid && startTicks <= one.startTicks,
    );
  }
  return isOneOf(above, [...run.adopters, run.owner]) || (isBelow && above.isNamespaceInit);
}

/** Up from it, nobody but those who may hide, to one who was left or is a suspect himself. */
function isHidden(
  view: SurvivorView,
  chain: readonly SeenProcess[],
  isNever: (one: SeenProcess) => boolean,
): boolean {
  if (view.run.unlistedFrom === undefined) return false;
  for (const [index, one] of chain.entries()) {
    const above = chain[index + 1];
    if (index > 0 && (bears(view, one) || mayBeCommand(view, one, above))) return true;
    if (isNever(one) || !mayHide(view, one)) return false;
    if (mayBeLeft(view, one, above)) return true;
  }
  return false;
}

export function judge(view: SurvivorView, seen: SeenProcess): "member" | "suspect" | "nobody" {
  const chain = chainOf(view, seen);
  const { identities, tokens } = view.kept;
  const spared = chain.find(
    (one) =>
      one.isGuard ||
      isOneOf(one, view.run.guard === null ? [] : [view.run.guard]) ||
      identities.has(`${one.pid}@${one.startTicks}`) ||
      tokens.has(one.keptToken ?? "none"),
  );
  const isNever = (one: SeenProcess) =>
    one.pid === 1 || one.pid === view.self || one.isKernelThread || isOneOf(one, [view.run.owner]);
  if (spared !== undefined || isNever(seen) || "ZX".includes(seen.state)) return "nobody";
  for (const [index, one] of chain.entries()) {
    if (isNever(one)) break;
    if (isProvenByItself(view, chain.slice(index))) return "member";
  }
  const isTold = bears(view, seen) || mayBeCommand(view, seen, chain[1]);
  return isTold || isHidden(view, chain, isNever) ? "suspect" : "nobody";
}
