/**
 * Who holds the trial of a half-open circuit: this process, and whether another one still lives and
 * goes on.
 * Clock: none. State after a crash: a dead holder is seen to be dead, on this boot.
 */
import type { TrialSelf } from "../core/circuit-change.ts";
import type { TrialHolder } from "../core/shared-circuit.ts";
import { isAlive, type Machine, readProcessIdentity } from "../os/machine.ts";
import { readStat } from "../os/proc.ts";

/** Of proc_pid_stat(5): by a signal. */
const STOPPED = "T";

export function readTrialSelf(machine: Machine): TrialSelf {
  return {
    ...(readProcessIdentity(process.pid) ?? { pid: process.pid, start_time: 0 }),
    boot_id: machine.bootId,
    pid_namespace: machine.pidNamespace,
  };
}

/**
 * Of another pid namespace it cannot be told: only the time ends its trial. One that was stopped
 * makes none: it may stand still for as long as somebody likes.
 */
export function isHolderAlive(holder: TrialHolder, machine: Machine): boolean {
  if (holder.boot_id !== machine.bootId) return false;
  if (holder.pid_namespace !== machine.pidNamespace || !machine.seesOwnProc) return true;
  return isAlive(holder) !== "no" && readStat(holder.pid)?.state !== STOPPED;
}
