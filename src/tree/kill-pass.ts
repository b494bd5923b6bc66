/**
 * One pass over the proven members of a dead run's tree: each is opened and proven once more, held
 * still, and killed. Synchronous, so that nothing of this process comes in between.
 *
 * Held still (STOP) before KILL, because here nobody is the parent of the tree: a child that is
 * born between the look and the KILL of its parent would come to process 1, and if it hides its
 * environment nothing would prove it any more. A fork(2) that has begun before the STOP goes on to
 * its end (since Linux 4.20), so a parent is waited for until it stands still: the children that it
 * has then are all its children. Some milliseconds later all of them are dead.
 *
 * Refuses to know who is a member (core/survivors.ts) and how often to come again (survivors.ts).
 * Always: suspects, ancestors and whoever may not be signalled are passed over; trouble of our own
 * with one of them costs nobody else the signal, and is in the tally. State after a crash: members
 * may be left stopped; they are members still, and the next one ends them.
 */
import { indexDescent } from "../core/descent.ts";
import { SIGCONT, SIGKILL, SIGSTOP } from "../core/signals.ts";
import {
  decideSurvivors,
  isInMainGroup,
  type Survivor,
  type Survivors,
} from "../core/survivors.ts";
import type {
  DeadRun,
  KeptProcesses,
  RecordedProcess,
  SeenProcess,
} from "../core/survivors-view.ts";
import type { MonotonicAt } from "../core/time.ts";
import { identify } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { lookAtProcess } from "../os/proc-look.ts";
import { readProgram } from "../os/proc.ts";
import { findBorn, lookQuietly, seeQuietly } from "./born.ts";
import { findAncestors } from "./find.ts";
import { mayBeHidden } from "./hidden.ts";
import { translate } from "./numbers.ts";
import { isStranger, isStrangerAt } from "./strangers.ts";
import {
  type OpenSurvivor,
  openSurvivor,
  type Protected,
  type SignalResult,
  type SurvivorTarget,
} from "./signal.ts";

/** Read again after each look: who was kept before a process existed is known by then. */
export type ReadKept = () => KeptProcesses;

/** What one pass stands on. */
export interface Ground {
  readonly run: DeadRun;
  readonly processes: readonly SeenProcess[];
  readonly readKept: ReadKept;
}

export interface PassTally {
  readonly sent: readonly SeenProcess[];
  /** EPERM, although it looked as if we might. */
  readonly refused: readonly SeenProcess[];
  /** With whom something went wrong here: a fault of watchdog's own, not the kernel's word. */
  readonly faults: readonly PassFault[];
}

export interface PassFault {
  readonly member: SeenProcess;
  readonly error: unknown;
}

/** More descriptors are not held at a time; the next pass takes the rest. */
const MOST_HELD = 4_000;
/** Generations of children that are found in one pass. */
const MOST_STEPS = 100;
/**
 * How long one pass waits, in all, for those that it has stopped to stand still: nothing but a lock
 * or memory holds up a fork(2) for longer, and a parent inside vfork(2) waits for its child.
 */
const STILL_LIMIT_MS = 250;

/** Who is what, from one look. */
export function judge(ground: Ground): Survivors {
  const { run, processes, readKept } = translate(ground);
  const found = decideSurvivors({
    processes,
    run,
    self: process.pid,
    ancestors: listAncestors(processes),
    kept: readKept(),
  });
  return mayBeHidden(ground.run, processes) ? { ...found, isBlind: true } : found;
}

/** Those of the members whom a signal may be sent to. */
export function targetsOf(found: Survivors): Survivor[] {
  return found.members.filter((member) => member.isSignalable && !member.isAncestor);
}

/** From the look itself and from a second reading: neither may miss one. */
function listAncestors(processes: readonly SeenProcess[]): ReadonlySet<number> {
  const ancestors = findAncestors();
  const byPid = new Map(processes.map((seen) => [seen.pid, seen]));
  let above = byPid.get(process.pid)?.ppid ?? 0;
  for (const seen = new Set<number>(); above > 0 && !seen.has(above);) {
    seen.add(above);
    ancestors.add(above);
    above = byPid.get(above)?.ppid ?? 0;
  }
  return ancestors;
}

/** KILL to every member that there is, and to those that are born meanwhile. */
export function killPass(ground: Ground): PassTally {
  const pass = new Pass();
  try {
    holdAll(ground, pass);
    return pass.sendAll([SIGKILL]);
  } finally {
    pass.close();
  }
}

/**
 * Each of the signals once to every member that there is now. All are opened and proven before the
 * first is signalled: a parent that obeys at once takes the proof of its children with it.
 */
export function askPass(ground: Ground, signals: readonly number[]): PassTally {
  const found = judge(ground);
  const members = withoutNested(targetsOf(found), ground.processes);
  return signalAll(ground, { found, members, signals });
}

interface Signalled {
  readonly found: Survivors;
  readonly members: readonly Survivor[];
  readonly signals: readonly number[];
}

function signalAll(ground: Ground, { found, members, signals }: Signalled): PassTally {
  const pass = new Pass();
  try {
    pass.open(members, makeProof(ground, found), guard(ground));
    return pass.sendAll(signals);
  } finally {
    pass.close();
  }
}

/**
 * CONT to those of the members, leaves before their parents: one that goes on first would hear that
 * its child is stopped (WUNTRACED of wait(2)).
 */
export function continuePass(ground: Ground, isWanted: (one: SeenProcess) => boolean): PassTally {
  const found = judge(ground);
  const { parentOf } = indexDescent(ground.processes);
  const depthOf = (member: SeenProcess): number => {
    let depth = 0;
    for (let one = parentOf(member); one !== undefined && depth < DEEPEST; depth += 1) {
      one = parentOf(one);
    }
    return depth;
  };
  const wanted = targetsOf(found)
    .filter(isWanted)
    .map((member) => ({ member, depth: depthOf(member) }))
    .toSorted((one, other) => other.depth - one.depth)
    .map(({ member }) => member);
  const tallies: PassTally[] = [];
  for (let from = 0; from < wanted.length; from += MOST_HELD) {
    const some = wanted.slice(from, from + MOST_HELD);
    tallies.push(signalAll(ground, { found, members: some, signals: [SIGCONT] }));
  }
  return {
    sent: tallies.flatMap(({ sent }) => sent),
    refused: tallies.flatMap(({ refused }) => refused),
    faults: tallies.flatMap(({ faults }) => faults),
  };
}

/** A longer chain of parents is a circle in what was read. */
const DEEPEST = 20_000;

interface Held {
  readonly member: Survivor;
  readonly survivor: OpenSurvivor;
}

/** Whom one pass has opened, and what became of each. */
class Pass {
  readonly #held: Held[] = [];
  readonly #faults: PassFault[] = [];

  get isFull(): boolean {
    return this.#held.length >= MOST_HELD;
  }

  /** Opens these as far as there is room; who cannot be opened is gone, or of the next pass. */
  open(members: readonly Survivor[], proof: Proof, guarded: Guarded): readonly Held[] {
    const from = this.#held.length;
    for (const member of members.slice(0, MOST_HELD - from)) {
      const survivor = this.#attempt(member, () => openSurvivor(proof.of(member), guarded));
      if (typeof survivor === "object") this.#held.push({ member, survivor });
    }
    return this.#held.slice(from);
  }

  send({ member, survivor }: Held, signal: number): SignalResult | undefined {
    return this.#attempt(member, () => survivor.send(signal));
  }

  /** To each that was opened; what counts is the result of the first signal. */
  sendAll(signals: readonly number[]): PassTally {
    const results = this.#held.map((one) => {
      const [first] = signals.map((signal) => this.send(one, signal));
      return [one.member, first] as const;
    });
    const those = (wanted: SignalResult): Survivor[] =>
      results.filter(([, result]) => result === wanted).map(([member]) => member);
    return { sent: those("sent"), refused: those("refused"), faults: this.#faults };
  }

  close(): void {
    for (const { survivor } of this.#held) survivor.close();
  }

  /** One target that must not be hit, or cannot be, leaves the others where they are. */
  #attempt<T>(member: Survivor, act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      this.#faults.push({ member, error });
      return undefined;
    }
  }
}

function holdAll(ground: Ground, pass: Pass): void {
  const guarded = guard(ground);
  const tried = new Set<string>();
  const until = (monotonicNow() + STILL_LIMIT_MS) as MonotonicAt;
  let { processes } = ground;
  let moving: readonly SeenProcess[] = [];
  for (let step = 0; step < MOST_STEPS && !pass.isFull; step += 1) {
    const now = { ...ground, processes };
    const found = judge(now);
    const fresh = targetsOf(found).filter((member) => !tried.has(identify(member)));
    if (fresh.length === 0 && moving.length === 0) return;
    for (const member of fresh) tried.add(identify(member));
    const opened = pass.open(fresh, makeProof(now, found), guarded);
    const stopped = opened.filter((one) => pass.send(one, SIGSTOP) === "sent");
    const parents = [...moving, ...fresh];
    moving = [...moving, ...stopped.map(({ member }) => member)];
    ({ processes, moving } = findBorn({ processes, parents, moving, until }));
  }
}

type Guarded = Pick<Protected, "self" | "pids">;

function guard(ground: Ground): Guarded {
  return { self: process.pid, pids: listAncestors(ground.processes) };
}

interface Proof {
  readonly of: (member: Survivor) => SurvivorTarget;
}

/**
 * What has proven a member is asked again: that it was recorded, as this very process where its
 * inode was written down; else its group, or the same parent, which is a member, or the cookie
 * beside it.
 */
function makeProof(ground: Ground, found: Survivors): Proof {
  const { run } = ground;
  // The first of two counts: who was asked to go is appended, without an inode.
  const named = run.recorded.map((one) => [`${one.pid}@${one.start_time}`, one] as const);
  const recorded = new Map<string, RecordedProcess>(named.toReversed());
  const members = new Set(found.members.map(identify));
  const isStillProven = (member: Survivor, pidfd: number | undefined): boolean => {
    const listed = recorded.get(identify(member));
    if (pidfd !== undefined && isStrangerAt(pidfd, listed?.pidfd_inode)) return false;
    const now = seeQuietly(member.pid);
    if (now === undefined || identify(now) !== identify(member)) return false;
    if (listed !== undefined) return true;
    if (isStillInMainGroup(run, now)) return true;
    if (now.ppid !== member.ppid) return false;
    if (isMember(now.ppid, members)) return true;
    // In state D it may not be read: what the look has read of it must do.
    return carries(now.runPath === "unread" && now.state === "D" ? member : now, run.runId);
  };
  return {
    of: (member) => ({
      pid: member.pid,
      startTicks: member.startTicks,
      isStillProven: (pidfd) => isStillProven(member, pidfd),
    }),
  };
}

function isStillInMainGroup(run: DeadRun, now: SeenProcess): boolean {
  if (run.mainGroup === null || now.groupId !== run.mainGroup.pid) return false;
  if (isStranger(run.mainGroup)) return false;
  return isInMainGroup(run, now, seeQuietly(run.mainGroup.pid));
}

function carries(seen: SeenProcess, runId: string): boolean {
  return seen.runPath !== "unread" && seen.runPath.includes(runId);
}

function isMember(pid: number, members: ReadonlySet<string>): boolean {
  const stat = lookQuietly(() => lookAtProcess(pid))?.stat;
  return stat !== undefined && members.has(identify(stat));
}

/** A nested watchdog passes a signal on to everybody below it: they would get it twice. */
function withoutNested(
  asked: readonly Survivor[],
  processes: readonly SeenProcess[],
): readonly Survivor[] {
  const ours = readProgram("self");
  const nested = new Set(
    asked
      .filter(({ pid }) => ours !== undefined && readProgram(pid) === ours)
      .map(({ pid }) => pid),
  );
  if (nested.size === 0) return asked;
  const byPid = new Map(processes.map((seen) => [seen.pid, seen]));
  return asked.filter((member) => {
    const passed = new Set<number>();
    let above = byPid.get(member.ppid);
    while (above !== undefined && !passed.has(above.pid)) {
      if (nested.has(above.pid)) return false;
      passed.add(above.pid);
      above = byPid.get(above.ppid);
    }
    return true;
  });
}
