/**
 * The outcomes of a run and the exit statuses that tell them: one table for the help and the
 * README.
 *
 * Decides nothing. Always: a status that core/errors.ts gives to a name is the one that stands here
 * (a test compares).
 */

export interface OutcomeRow {
  readonly outcome: string;
  /**
   * A number of watchdog's own; `command`: whatever the command's is; `none`: nobody is left to
   * exit.
   */
  readonly status: number | "command" | "none";
  /** One clause without a full stop. */
  readonly meaning: string;
}

function row(outcome: string, status: OutcomeRow["status"], meaning: string): OutcomeRow {
  return { outcome, status, meaning };
}

export const OUTCOME_TABLE: readonly OutcomeRow[] = [
  row("ok", "command", "the command ended with 0 or one of --success-exit-codes"),
  row("failed", "command", "the command ended with another status"),
  row("signaled", "command", "the command died of signal N: so does watchdog, a shell shows 128+N"),
  row("stopped", "command", "the run was ended on request: TERM, INT, QUIT or a lost terminal"),
  row("unknown", 3, "a step with unsafe side effects may or may not have run"),
  row("usage_error", 64, "the command line is wrong; nothing was started"),
  row(
    "bad_output",
    65,
    "the command said 0 and has not done its work, or was ended because too many items failed",
  ),
  row(
    "dependency_down",
    69,
    "a probed dependency was down: the job was not started, or was stopped",
  ),
  row("locked", 75, "the lease is held by another run; nothing was started"),
  row("lease_lost", 76, "the lease was no longer that of the run; the job was stopped"),
  row("refused", 77, "permission or approval is missing; nothing was started"),
  row(
    "config_error",
    78,
    "a person must change something, such as the owner of the state directory",
  ),
  row("timeout", 124, "--timeout or --not-after ended the run"),
  row("idle_timeout", 124, "--idle-timeout ended the run"),
  row("wrapper_error", 125, "watchdog could not run the command, end it, or write its output"),
  row("not_executable", 126, "the command was found, but cannot be executed"),
  row("not_found", 127, "the command was not found"),
  row("abandoned", "none", "watchdog itself was killed; its guard or the next run says so"),
];
