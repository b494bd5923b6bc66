/**
 * What an answer is, and what whoever gives one is told.
 *
 * Asks and renders nothing.
 */

import { EXIT } from "../core/errors.ts";
import type { TreeLook } from "../inspect/leases.ts";
import { keptProcesses } from "../run/claim-for-run.ts";
import type { Said } from "./render-stop.ts";

/** `text` goes to stdout, `lines` to stderr, each behind `watchdog: `. */
export type Answer = Said;

export interface AnswerContext {
  /** Resolved and absolute; it need not be there. */
  readonly stateDirectory: string;
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  /** WATCHDOG_RUN_PATH: the runs around whoever asks. */
  readonly runPath: string | undefined;
  /** TERM. */
  readonly terminalKind?: string | undefined;
  /** They stay ignored. */
  readonly ignoredSignals?: bigint;
}

/** The answer could not be had or written. */
export const UNANSWERED = EXIT.wrapper_error;

/** How a tree is looked at, for a verdict that depends on it. */
export function lookFrom({ stateDirectory, scanUrl }: AnswerContext): TreeLook {
  return { scanUrl, readKept: (runId) => keptProcesses(stateDirectory, runId) };
}
