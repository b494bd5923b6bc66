/**
 * Who this watchdog is, on which machine: read once, at the first need, because each of these facts
 * is fixed for the life of a process and costs a dozen reads of /proc.
 */
import type { ProcessIdentity } from "../core/lease-record.ts";
import { type Machine, readAdopters, readMachine, readProcessIdentity } from "../os/machine.ts";
import { readStat } from "../os/proc.ts";

export interface OwnSelf {
  readonly machine: Machine;
  readonly identity: ProcessIdentity;
  readonly sessionId: number;
  /** Ancestors that would adopt the orphans of the run. */
  readonly adopters: readonly ProcessIdentity[];
}

let known: OwnSelf | undefined;

/** @throws WatchdogError "lease.unusable" where /proc does not tell */
export function readOwnSelf(): OwnSelf {
  known ??= {
    machine: readMachine(),
    identity: readProcessIdentity(process.pid) ?? { pid: process.pid, start_time: 0 },
    sessionId: readStat(process.pid)?.sessionId ?? 0,
    adopters: readAdopters(),
  };
  return known;
}
