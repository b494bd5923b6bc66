/**
 * The kill seam: the only place of the product that sends a signal to another process. It proves
 * once more, right before the call, what the caller has decided.
 */
import { assert } from "../core/errors.ts";
import { identify, type ProcessRow, type TreeView } from "../core/tree-members.ts";
import { faultPoint } from "../os/faults.ts";
import { type ProcessStat, readStat } from "../os/proc.ts";
import { EINVAL, ENOSYS, EPERM, ESRCH, sys } from "../os/sys.ts";

export type SignalResult = "sent" | "gone" | "refused";

/** Who must never be hit, whatever anybody decided. */
export interface Protected {
  readonly self: number;
  readonly pids: ReadonlySet<number>;
  /**
   * Members that this pass has proven already, by pid and start: a chain that reaches one is proven
   * too.
   */
  readonly verified: Set<string>;
}

/** Everybody who is never hit in a tree as it was seen; for one pass. */
export function protect(view: TreeView): Protected {
  const pids = new Set([...view.ancestors, ...view.inborn, ...view.helpers, ...view.kept]);
  return { self: view.self, pids, verified: new Set() };
}

/**
 * Signals one member through a pidfd (pidfd_open(2)): opened first, then the identity and the chain
 * of parents are read again, so the process that was checked is the one that is hit, even if the
 * pid is used again meanwhile.
 */
export function signalMember(row: ProcessRow, signal: number, guarded: Protected): SignalResult {
  checkSeam(row.pid, guarded);
  faultPoint("tree.signal", { pid: row.pid, signal });
  const pidfd = sys.pidfdOpen(row.pid);
  if (pidfd === -ENOSYS) return signalByPid(row, signal, guarded);
  if (pidfd < 0) return "gone"; // ESRCH: already gone, which is what we wanted
  try {
    if (!isStillMember(row, guarded)) return "gone";
    return readResult(sys.pidfdSendSignal(pidfd, signal));
  } finally {
    sys.close(pidfd);
  }
}

/** Kernels before 5.3: the check and the call are two steps there. */
function signalByPid(row: ProcessRow, signal: number, guarded: Protected): SignalResult {
  return isStillMember(row, guarded) ? readResult(sys.kill(row.pid, signal)) : "gone";
}

/** Signals a direct child: its pid is ours until we collect it, so no second look is needed. */
export function signalChild(pid: number, signal: number, guarded: Protected): SignalResult {
  checkSeam(pid, guarded);
  faultPoint("tree.kill", { pid, signal });
  return readResult(sys.kill(pid, signal));
}

function checkSeam(pid: number, guarded: Pick<Protected, "self" | "pids">): void {
  assert(pid > 1 && pid !== guarded.self, `signal to process ${pid}, which is ours or process 1`);
  assert(!guarded.pids.has(pid), `signal to protected process ${pid}`);
}

function readResult(result: number): SignalResult {
  if (result >= 0) return "sent";
  return result === -EPERM ? "refused" : "gone";
}

/** A chain of parents longer than this is a loop in what was read. */
const LONGEST_CHAIN = 20_000;
/**
 * An ancestor that ends while we look hands its children to another: then the walk begins again.
 */
const MOST_WALKS = 50;

function isStillMember(row: ProcessRow, guarded: Protected): boolean {
  for (let walk = 0; walk < MOST_WALKS; walk += 1) {
    const stat = readStat(row.pid);
    if (stat?.startTicks !== row.startTicks) return false;
    const found = walkUp(stat, guarded);
    if (found === "lost") continue;
    if (found === "member") guarded.verified.add(identify(row));
    return found === "member";
  }
  return false;
}

function walkUp(from: ProcessStat, guarded: Protected): "member" | "stranger" | "lost" {
  let stat = from;
  for (let step = 0; step < LONGEST_CHAIN; step += 1) {
    if (stat.ppid === guarded.self) return "member";
    const parent = stat.ppid <= 1 ? undefined : readStat(stat.ppid);
    if (parent === undefined) return stat.ppid <= 1 ? "stranger" : "lost";
    if (guarded.verified.has(identify(parent))) return "member";
    stat = parent;
  }
  return "stranger";
}

/** Whether we have the right to signal it; who is gone needs none. Sends nothing (kill(2)). */
export function maySignal(pid: number): boolean {
  const result = sys.kill(pid, NULL_SIGNAL);
  return result >= 0 || result === -ESRCH;
}

const NULL_SIGNAL = 0;

/** Whom a survivor is signalled as, and how that is seen once more. */
export interface SurvivorTarget {
  readonly pid: number;
  readonly startTicks: number;
  /**
   * Asked with the pidfd open: whether all that has proven it a member still holds. Undefined: this
   * kernel has no pidfd (before 5.3).
   */
  readonly isStillProven: (pidfd: number | undefined) => boolean;
}

/** A survivor that was proven on its open pidfd: whatever is sent hits this process or nobody. */
export interface OpenSurvivor {
  send(signal: number): SignalResult;
  close(): void;
}

/**
 * Opens a member of a dead run's tree, which is nobody's child here: the pidfd first, then its
 * proof once more, so that the process that was judged is the one that is hit.
 *
 * @returns `gone`: ended, or not what it was any more. `refused`: no descriptor for it (EMFILE)
 */
export function openSurvivor(
  target: SurvivorTarget,
  guarded: Pick<Protected, "self" | "pids">,
): OpenSurvivor | "gone" | "refused" {
  checkSeam(target.pid, guarded);
  const pidfd = sys.pidfdOpen(target.pid);
  if (pidfd === -ENOSYS) return openWithoutPidfd(target);
  if (pidfd === -ESRCH || pidfd === -EINVAL) return "gone"; // EINVAL: the id of a thread by now
  if (pidfd < 0) return "refused";
  if (!target.isStillProven(pidfd)) {
    sys.close(pidfd);
    return "gone";
  }
  return {
    send: (signal) => sendSurvivor(target, signal, () => sys.pidfdSendSignal(pidfd, signal)),
    close: () => sys.close(pidfd),
  };
}

/** Kernels before 5.3: the check and the call are two steps there, so each call has its own. */
function openWithoutPidfd(target: SurvivorTarget): OpenSurvivor | "gone" {
  if (!target.isStillProven(undefined)) return "gone";
  return {
    send: (signal) =>
      sendSurvivor(target, signal, () =>
        target.isStillProven(undefined) ? sys.kill(target.pid, signal) : -ESRCH,
      ),
    close: () => undefined,
  };
}

function sendSurvivor(target: SurvivorTarget, signal: number, send: () => number): SignalResult {
  faultPoint("tree.survivor", { pid: target.pid, start: target.startTicks, signal });
  return readResult(send());
}
