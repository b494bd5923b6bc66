/**
 * Looks at all processes of the machine, for the sake of a run whose watchdog is dead: whose child
 * each is, and which runs its environment names. Refuses to know which run is looked for
 * (core/survivors.ts decides) and signals nobody.
 *
 * Guarantees: a look is whole or `unread`; a process whose environment could not be read says so.
 * Non-guarantee: it is no snapshot. A process that is born behind the reader's back, or that
 * replaces itself faster than it is read, is missing: so nobody takes one look for a proof. Clock:
 * none. State after a crash: none.
 */
import { GUARD_DESCRIPTOR, GUARD_MEMORY } from "../core/burial.ts";
import type { SeenProcess } from "../core/survivors-view.ts";
import { readCgroup } from "../os/machine.ts";
import {
  holdsMemoryFileAt,
  isDeadState,
  listProcesses,
  lookAtProcess,
  type ProcessLook,
  readEnvironmentText,
  readIsNamespaceInit,
  readUserIds,
} from "../os/proc-look.ts";
import { maySignal } from "./signal.ts";

/** `unread`: the processes could not be read as a whole, so nothing follows from it. */
export type ScanResult = readonly SeenProcess[] | "unread";

/** The variables that tell (README, "What the command sees"; `watchdog keep`). */
const RUN_PATH = "WATCHDOG_RUN_PATH";
const KEPT = "WATCHDOG_KEPT";

/** Whoever is inside exec or in state D is looked at again: 15 times, 20 ms apart. */
export const LOOK_AGAIN_MS = 20;
export const MOST_LOOKS_AGAIN = 15;

/**
 * One pass in the calling thread: some 20 µs for each process, and never waits. Processes that are
 * inside exec or in state D (whose environment may hang) are there with a run path `unread`.
 */
export function scanProcesses(): ScanResult {
  return orUnread(() => finish(lookAtAll()));
}

export interface Patience {
  readonly pause: (pauseMs: number) => void;
  /**
   * Given the result so far before the first read that may never come back: that of a process
   * which was in state D all the time.
   */
  readonly onDoubtful: (sofar: readonly SeenProcess[]) => void;
}

/**
 * A pass that comes back to those it could not read at first. Waits up to 300 ms by `pause`, and
 * for ever where a process is stuck: in a Worker only (scan-worker.ts).
 */
export function scanPatiently(patience: Patience): ScanResult {
  return orUnread(() => {
    const looks = lookAtAll();
    let unsettled = [...looks.values()].filter((one) => one.isUnsettled);
    for (let again = 0; again < MOST_LOOKS_AGAIN && unsettled.length > 0; again += 1) {
      patience.pause(LOOK_AGAIN_MS);
      unsettled = unsettled.filter(({ seen }) => lookAgain(looks, seen.pid)?.isUnsettled);
    }
    const stuck = unsettled.filter(({ seen }) => seen.state === "D");
    if (stuck.length > 0) patience.onDoubtful(finish(looks));
    for (const { seen } of stuck) lookAgain(looks, seen.pid, "even-if-it-hangs");
    return finish(looks);
  });
}

/** One process by itself, as a scan shows it; undefined: gone. Never waits. */
export function seeProcess(pid: number): SeenProcess | undefined {
  const look = lookAt(pid, "if-it-cannot-hang");
  return look === undefined ? undefined : finish(new Map([[pid, look]]))[0];
}

interface Look {
  readonly seen: SeenProcess;
  /** Another look may tell more. */
  readonly isUnsettled: boolean;
}

type Courage = "if-it-cannot-hang" | "even-if-it-hangs";

function orUnread(scan: () => ScanResult): ScanResult {
  try {
    return scan();
  } catch {
    return "unread"; // EMFILE, ENFILE, ENOMEM, EIO, no /proc: a part of a list would be a wrong one
  }
}

function lookAtAll(): Map<number, Look> {
  const looks = new Map<number, Look>();
  for (const pid of listProcesses()) {
    const look = lookAt(pid, "if-it-cannot-hang");
    if (look !== undefined) looks.set(pid, look);
  }
  return looks;
}

/** Who is gone meanwhile is settled, too. */
function lookAgain(
  looks: Map<number, Look>,
  pid: number,
  courage: Courage = "if-it-cannot-hang",
): Look | undefined {
  const look = lookAt(pid, courage);
  if (look === undefined) looks.delete(pid);
  else looks.set(pid, look);
  return look;
}

function lookAt(pid: number, courage: Courage): Look | undefined {
  const look = lookAtProcess(pid);
  if (look === undefined) return undefined;
  const words = readWords(look, courage);
  if (words === undefined) return undefined;
  const isKnown = typeof words !== "string";
  return {
    // Process 1 is in no tree; that of a container may look as if it were in exec for ever.
    isUnsettled: pid !== 1 && (words === "in-exec" || words === "may-hang"),
    seen: {
      pid,
      ppid: look.stat.ppid,
      startTicks: look.stat.startTicks,
      groupId: look.stat.groupId,
      sessionId: look.stat.sessionId,
      state: look.stat.state,
      isKernelThread: look.isKernelThread,
      runPath: isKnown ? words.runPath : "unread",
      keptToken: isKnown ? words.keptToken : undefined,
      cgroup: undefined,
      isNamespaceInit: pid === 1,
      isSignalable: maySignal(pid),
      isGuard: false,
    },
  };
}

interface Words {
  readonly runPath: readonly string[];
  readonly keptToken: string | undefined;
}

const NO_WORDS: Words = { runPath: [], keptToken: undefined };

/** @returns undefined: gone */
function readWords(
  look: ProcessLook,
  courage: Courage,
): Words | "in-exec" | "may-hang" | "hidden" | undefined {
  if (look.environment === "none") return NO_WORDS;
  if (look.environment === "may-hang" && courage === "if-it-cannot-hang") return "may-hang";
  const read = readEnvironmentText(look);
  if (read === undefined || typeof read === "string") return read;
  const path = findVariable(read.text, RUN_PATH) ?? "";
  return {
    runPath: path.split("/").filter((id) => id !== ""),
    keptToken: findVariable(read.text, KEPT),
  };
}

/** The first entry of this name, as getenv(3) finds it. */
function findVariable(text: string, name: string): string | undefined {
  const head = `${name}=`;
  const inner = text.startsWith(head) ? 0 : text.indexOf(`\0${head}`) + 1;
  if (inner === 0 && !text.startsWith(head)) return undefined;
  const from = inner + head.length;
  const end = text.indexOf("\0", from);
  return end === -1 ? text.slice(from) : text.slice(from, end);
}

/** What matters for some only is read for them only. */
function finish(looks: ReadonlyMap<number, Look>): SeenProcess[] {
  const seen = [...looks.values()].map((look) => look.seen);
  const isOrphanOfInterest = (one: SeenProcess) =>
    isBearer(one) || leadsOnlyAGroup(one) || one.runPath === "unread";
  const parents = new Set(seen.filter(isOrphanOfInterest).map((one) => one.ppid));
  return seen.map((one) => ({
    ...one,
    cgroup: isBearer(one) || one.runPath === "unread" ? readCgroup(one.pid) : undefined,
    ...(one.runPath === "unread" ? readUsers(one.pid) : {}),
    isNamespaceInit: one.isNamespaceInit || (parents.has(one.pid) && readIsNamespaceInit(one.pid)),
    isGuard: isGuard(one),
  }));
}

function readUsers(pid: number): Pick<SeenProcess, "userIds"> {
  const userIds = readUserIds(pid);
  return userIds === undefined ? {} : { userIds };
}

/** As a command does that was started without a terminal, in the session of its watchdog. */
function leadsOnlyAGroup({ pid, groupId, sessionId }: SeenProcess): boolean {
  return groupId === pid && sessionId !== pid;
}

/** A guard leads a session and carries no cookie, so that few have to be asked. */
function isGuard(one: SeenProcess): boolean {
  if (one.sessionId !== one.pid || one.isKernelThread || isDeadState(one.state)) return false;
  return !isBearer(one) && holdsMemoryFileAt(one.pid, GUARD_DESCRIPTOR, GUARD_MEMORY);
}

function isBearer(seen: SeenProcess): boolean {
  return seen.runPath !== "unread" && seen.runPath.length > 0;
}
