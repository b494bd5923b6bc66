/**
 * What a run starts in the place of a command: plain data between the rooms that make and start it.
 */
import type { JobVerdict } from "../core/job-verdict.ts";
import type { Redirection } from "./spawn.ts";

/** Watchdog itself, as the runner of a job of many steps. */
export interface OwnProgram {
  readonly argv: readonly Uint8Array[];
  /** Beside what every command gets. */
  readonly environment: readonly Uint8Array[];
  readonly redirections: readonly Redirection[];
  /** `NAME=value` of its steps: the secrets in them are masked as those of the environment. */
  readonly secrets: readonly string[];
  /** What it has told of the end; undefined: nothing, because it was killed. */
  readonly readVerdict: () => JobVerdict | undefined;
  /** In its place, as far as the journal knows. @param runId  of the run around it */
  readonly tellKilled: (runId: string) => void;
}
