/** What stands around the command of a run: its leases and its guard. */
import type { Guard } from "./guard.ts";
import type { RunLeases } from "./run-leases.ts";

export interface Protection {
  readonly leases: RunLeases;
  /** Undefined where there can be none; the record says so. */
  readonly guard: Guard | undefined;
}
