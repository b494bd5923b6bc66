/**
 * A job of many steps as its file describes it, after reading and checking: plain data. Paths of
 * artifacts, inputs and `cwd` are relative to the job's directory, which is that of its file.
 *
 * Knows no parser and no clock. Spans in milliseconds.
 */
import type { Backoff } from "./backoff.ts";

/** A text for `sh -c`, or a program with its arguments. */
export type StepCommand =
  | { readonly kind: "shell"; readonly text: string }
  | { readonly kind: "arguments"; readonly words: readonly string[] };

/** `unsafe`: to run it a second time may do harm, and nobody but a person can tell. */
export type SideEffects = "none" | "unsafe";

/** One entry of `artifacts`: `PATH[:min=SIZE][:any-age]`. */
export interface ArtifactSpec {
  /** Normalized, below the job's directory, without a slash at its end. */
  readonly path: string;
  /** Of a file; 0: it may be empty. */
  readonly minBytes: number;
  /** It need not have changed since the step was started. */
  readonly isAnyAge: boolean;
}

export interface StepSpec {
  readonly name: string;
  readonly command: StepCommand;
  /** Names of steps, each once, in the order of the file. */
  readonly needs: readonly string[];
  readonly timeoutMs: number | undefined;
  /** Between TERM and KILL. */
  readonly killAfterMs: number;
  /** Between attempts; `backoff.maxAttempts` is `retries` and one. */
  readonly backoff: Backoff;
  /**
   * Files and directories that it reads; undefined: they are not known, so that it is never known
   * to be unchanged.
   */
  readonly inputs: readonly string[] | undefined;
  readonly artifacts: readonly ArtifactSpec[];
  readonly sideEffects: SideEffects;
  /** Asked whether an interrupted step has happened: 0 yes, 1 no, anything else: unknown. */
  readonly settle: StepCommand | undefined;
  /** Of the step alone; null: that of the caller, which counts for whether it is unchanged. */
  readonly env: ReadonlyMap<string, string | null>;
  /** Undefined: the job's directory; an absolute one is taken as it is. */
  readonly cwd: string | undefined;
  /**
   * Options of `watchdog run` that the step has beside these (`probe`, `expect_match` …), by their
   * names in a configuration file, with their texts.
   */
  readonly runOptions: ReadonlyMap<string, readonly string[]>;
}

export interface JobSpec {
  readonly name: string;
  /** Absolute, as realpath(3) gives it. */
  readonly file: string;
  /** Of the file: where its steps run, and below which their artifacts lie. */
  readonly directory: string;
  /** How many steps run at the same time; at least 1. */
  readonly maxParallel: number;
  /** In the order of the file; at least one. */
  readonly steps: readonly StepSpec[];
}

/** So many steps a job may have. */
export const MOST_STEPS = 20_000;
/** So many of them run at the same time at most. */
export const MOST_PARALLEL = 256;
