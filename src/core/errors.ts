/**
 * Failures: the world's faults, each with a code of one closed table that also gives the exit
 * status. Normal results that somebody must choose between are unions, never errors; bugs are
 * assertions.
 */

/** Exit statuses of watchdog's own, by outcome name (README, "Exit statuses"). */
export const EXIT = {
  ok: 0,
  unknown: 3,
  usage_error: 64,
  bad_output: 65,
  dependency_down: 69,
  locked: 75,
  lease_lost: 76,
  refused: 77,
  config_error: 78,
  wrapper_error: 125,
  not_executable: 126,
  not_found: 127,
  timeout: 124,
} as const;

export type ExitName = keyof typeof EXIT;

/**
 * Every failure code and the exit that it leads to: a code that is missing here does not compile.
 */
export const FAILURES = {
  usage: "usage_error",
  "state.refused": "config_error",
  "state.unusable": "wrapper_error",
  "answer.unwritable": "wrapper_error",
  "lease.refused": "config_error",
  "lease.unusable": "wrapper_error",
  "spawn.not-found": "not_found",
  "spawn.not-executable": "not_executable",
  "spawn.failed": "wrapper_error",
  "result-file.unwritable": "wrapper_error",
  "keep.unregistered": "wrapper_error",
  "os.no-ffi": "wrapper_error",
  "config.refused": "config_error",
  "probe.refused": "config_error",
  "rights.missing": "refused",
  "fence.unusable": "wrapper_error",
  "repair.unusable": "wrapper_error",
  "git.refused": "config_error",
  "git.unusable": "wrapper_error",
  "retry.input-too-long": "config_error",
  "retry.unusable": "wrapper_error",
  "job.refused": "config_error",
  "job.unusable": "wrapper_error",
} as const satisfies Record<string, ExitName>;

export type FailureCode = keyof typeof FAILURES;

/**
 * A failure on its way to the user: one sentence (what, found, expected) and a hint that can be
 * pasted. Adapters make it once, at the place where the foreign error is caught, and keep that as
 * `cause`.
 */
export class WatchdogError extends Error {
  readonly code: FailureCode;
  readonly hint: string | undefined;

  constructor(
    code: FailureCode,
    message: string,
    options: { hint?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "WatchdogError";
    this.code = code;
    this.hint = options.hint;
  }

  get exitStatus(): number {
    return EXIT[FAILURES[this.code]];
  }
}

/** Our own bug: caught only in `main`, which ends with 125 and the sentence. */
export function assert(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${sentence}`);
}
