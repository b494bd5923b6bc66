/**
 * What a person asked `watchdog fence` for, after reading. Plain data: spans in milliseconds.
 */
import type { LeaseKey } from "./lease-key.ts";

export interface FenceOptions {
  /** None: all leases of the run around; in a step, of its job. */
  readonly keys: readonly LeaseKey[];
  /** How long the operation may take; undefined: no limit. */
  readonly timeoutMs: number | undefined;
  /** How long the fence is waited for; 0: not at all. */
  readonly waitMs: number;
  readonly isVerbose: boolean;
  readonly stateDir: string | undefined;
  /** `--config`; undefined: the files of the machine and of the user. */
  readonly configFile: string | undefined;
}

/** A fenced operation keeps every grant of its keys waiting, so it has a limit (product.md, 4). */
export const DEFAULT_FENCE_TIMEOUT_MS = 600_000;
export const DEFAULT_FENCE_WAIT_MS = 30_000;
