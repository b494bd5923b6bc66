/**
 * What a person is told who has named a run that nobody knows: the job that was meant most likely,
 * or where the names stand. A run without `--name` has one that is longer than its command
 * (`backup.sh-1a2b3c4d`), so that the command alone is asked for.
 *
 * Reads the journal, says nothing of a state directory that cannot be read.
 */

import { lastRuns } from "../journal/queries.ts";
import { viewAnswer } from "../inspect/journal-runs.ts";
import { nearestOf } from "./nearest.ts";
import { quoteForShell } from "./shown-words.ts";

/** The newest; who has more of them has a list to look at. */
const MOST_JOBS = 1_000;

/** @param command  that asked: `why` or `logs`. None that ends a run: a slip would end another. */
export function hintAtRun(stateDirectory: string, target: string, command: string): string[] {
  const runs = viewAnswer(lastRuns(stateDirectory, MOST_JOBS), []).value;
  if (runs.length === 0) return [];
  const near = nearestOf(
    target,
    runs.map(({ job }) => job),
  );
  const line = near === undefined ? undefined : quoteForShell(["watchdog", command, near]);
  return [`hint: ${line ?? "watchdog status"}`];
}
