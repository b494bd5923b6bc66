/**
 * The kill seam: the only place of the product that sends a signal to another process. It proves
 * once more, right before the call, what the caller has decided.
 */
import { assert } from "../core/errors.ts";
import { identify, type ProcessRow } from "../core/tree-members.ts";
import { faultPoint } from "../os/faults.ts";
import { type ProcessStat, readStat } from "../os/proc.ts";
import { ENOSYS, EPERM, sys } from "../os/sys.ts";

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

function checkSeam(pid: number, guarded: Protected): void {
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
