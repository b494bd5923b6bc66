/**
 * What a person asked `watchdog retry` for, after reading. Plain data: spans in milliseconds.
 */
import type { Backoff } from "./backoff.ts";

export interface RetryOptions {
  /** The circuit that its calls go through; undefined: none. */
  readonly breaker: string | undefined;
  /** Of the waits between attempts; its bounds are those of all attempts together. */
  readonly backoff: Backoff;
  /** How long one attempt may take; undefined: no limit. */
  readonly attemptTimeoutMs: number | undefined;
  /** Only these statuses are tried again; undefined: all but 0. */
  readonly retryOn: readonly number[] | undefined;
  /** These statuses are not, whatever else says so. */
  readonly noRetryOn: readonly number[];
  /** Every attempt gets the whole standard input, not only the first. */
  readonly buffersStdin: boolean;
  /** Absolute, or as the caller's working directory makes it. */
  readonly resultFile: string | undefined;
  readonly isVerbose: boolean;
  readonly stateDir: string | undefined;
  /** `--config`; undefined: the files of the machine and of the user. */
  readonly configFile: string | undefined;
}

/** The waits of product.md, section 5: 1 s to 30 s, twice as long each, 5 attempts, 5 min. */
export const DEFAULT_RETRY_BACKOFF: Backoff = {
  initialMs: 1_000,
  capMs: 30_000,
  factor: 2,
  maxAttempts: 5,
  maxElapsedMs: 300_000,
};
