/**
 * The runs that go on now under a name or an id, and what proves that a process is the watchdog of
 * one: found by the lease that it holds, or, without one, by the journal's row.
 *
 * Always: a holder is proven by the kernel's lock together with the pid and start time of its own
 * record; a run that no lock proves (it has no lease, or its lock file was replaced) by pid, start
 * time, boot, and that the process runs the program of watchdog. A name, a command line or an age
 * alone proves nobody. Clock: as leases.ts.
 */
import { statSync } from "node:fs";
import { type LeaseKey, renderKey } from "../core/lease-key.ts";
import type { ProcessIdentity } from "../core/lease-record.ts";
import { type JournalRun, runningRuns } from "../journal/queries.ts";
import { readProgram } from "../os/proc.ts";
import { isGoingOn, supervisorOf, viewAnswer } from "./journal-runs.ts";
import { isTaken, jobOf, ownerOf, runIdOf } from "./lease-facts.ts";
import { gatherLeases, type LeaseView } from "./leases.ts";
import { isLeaseNamed, isRunNamed } from "./names.ts";

export interface RunningRun {
  readonly runId: string;
  readonly job: string;
  readonly supervisor: ProcessIdentity;
  /** The lease by which it was found; undefined: by the journal. */
  readonly key: LeaseKey | undefined;
}

export interface RunningFinding {
  readonly runs: readonly RunningRun[];
  /** Leases of that name which somebody has, or may have, whose watchdog cannot be told. */
  readonly unseen: readonly LeaseView[];
  /** Leases of that name which nobody has. */
  readonly left: readonly LeaseView[];
  /** False: what runs without a lease is not known. */
  readonly isJournalRead: boolean;
  readonly troubles: readonly string[];
}

/**
 * @param target  the name of a job, a key or the id of a run
 * @throws WatchdogError "state.unusable", "lease.unusable"
 */
export function findRunning(stateDirectory: string, target: string): RunningFinding {
  const leases = gatherLeases({ stateDirectory, isAsked: (view) => isLeaseNamed(view, target) });
  const held = leases.filter(isTaken);
  const byLease = held.flatMap((view) => runningBy(view) ?? []);
  const answer = runningRuns(stateDirectory);
  const journal = viewAnswer<JournalRun[]>(answer, []);
  const byJournal = journal.value
    .filter((run) => isRunNamed(run, target) && isGoingOn(run))
    .flatMap((run) => runningOf(run) ?? []);
  const runs = new Map([...byJournal, ...byLease].map((run) => [run.runId, run]));
  return {
    runs: [...runs.values()],
    unseen: leases.filter((view) => mayBeHeld(view) && runningBy(view) === undefined),
    left: leases.filter((view) => !mayBeHeld(view) && view.verdict.name !== "free"),
    isJournalRead: answer.kind !== "unreadable" && (answer.waiting ?? 0) === 0,
    troubles: journal.troubles,
  };
}

/** Also beside a lock that cannot be asked, or that was replaced under a living owner. */
function mayBeHeld({ evidence, verdict }: LeaseView): boolean {
  const { lock, ownerAlive } = evidence;
  if (lock.kind !== "free") return lock.kind === "held" || ownerAlive !== "no";
  return verdict.because === "lock-replaced" || verdict.because === "owner-unread";
}

function runningBy(view: LeaseView): RunningRun | undefined {
  const [runId, supervisor] = [runIdOf(view), ownerOf(view)];
  if (!isTaken(view) || view.evidence.ownerAlive !== "yes") return undefined;
  if (runId === undefined || supervisor === undefined) return undefined;
  return { runId, job: jobOf(view) ?? renderKey(view.key), supervisor, key: view.key };
}

function runningOf(run: JournalRun): RunningRun | undefined {
  const supervisor = supervisorOf(run);
  if (supervisor === undefined) return undefined;
  return { runId: run.runId, job: run.job, supervisor, key: undefined };
}

/** Asked once more with the process held by a pidfd; pid and start time are compared there. */
export function isStillRunning(stateDirectory: string, run: RunningRun): boolean {
  if (run.key === undefined) return isOurProgram(run.supervisor.pid);
  const [view] = gatherLeases({ stateDirectory, keys: [run.key] });
  const now = view === undefined ? undefined : runningBy(view);
  return now?.runId === run.runId && now.supervisor.pid === run.supervisor.pid;
}

/** The same file, or one that an upgrade has put in its place at the same path. */
export function isOurProgram(pid: number): boolean {
  const [theirs, ours] = [programInode(pid), programInode("self")];
  if (theirs !== undefined && theirs === ours) return true;
  const path = readProgram("self");
  return path !== undefined && readProgram(pid) === path;
}

function programInode(pid: number | "self"): string | undefined {
  try {
    const { dev, ino } = statSync(`/proc/${pid}/exe`, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined; // ENOENT: gone. EACCES: another user's, so that nobody can tell.
  }
}
