/**
 * The names of watchdog's environment variables: those that stand for options, and those that the
 * command finds in its environment.
 *
 * Reads no environment. Always: no name is in both lists but WATCHDOG_STATE_DIR, so that a watchdog
 * inside a command starts fresh.
 */

import { laterFlagOf, listLaterFlags } from "./later-names.ts";
import { variableOf } from "./option-row.ts";
import { RUN_COMMAND } from "./options-table.ts";

export interface ChildVariable {
  readonly name: string;
  readonly help: string;
  /** False: the name is kept free for a later version and not set by this one. */
  readonly isSet: boolean;
}

export const STATE_DIR_VARIABLE = "WATCHDOG_STATE_DIR";

/** What the command finds in its environment. */
export const CHILD_VARIABLES: readonly ChildVariable[] = [
  { name: "WATCHDOG_RUN_ID", isSet: true, help: "The id of the run (UUIDv7)." },
  {
    name: "WATCHDOG_RUN_PATH",
    isSet: true,
    help:
      "The ids of all runs around the command, outermost first, with / between them, " +
      "the own id last.",
  },
  { name: "WATCHDOG_JOB", isSet: true, help: "The name of the run." },
  { name: STATE_DIR_VARIABLE, isSet: true, help: "The state directory, as an absolute path." },
  {
    name: "WATCHDOG_DEADLINE",
    isSet: true,
    help:
      "Where --timeout is given to the run or to one around it, or its step of a job has a " +
      "timeout: the first time at which it ends one of them, in seconds since 1970, as of the " +
      "start; a pause puts it off.",
  },
  {
    name: "WATCHDOG_LEASE",
    isSet: true,
    help:
      "The keys of the leases that the run holds, each percent-encoded, with blanks between " +
      "them. Not there with --no-lease; a step of a job finds those of the job.",
  },
  {
    name: "WATCHDOG_GENERATION",
    isSet: true,
    help: "The generations of these leases, in the same order.",
  },
  {
    name: "WATCHDOG_PROGRESS",
    isSet: true,
    help:
      "The file to which the command reports its items, a line for each. Not there where none " +
      "can be made.",
  },
  {
    name: "WATCHDOG_PAUSES_ON",
    isSet: true,
    help:
      "The names of the circuits for which the run, or one around it, pauses the tree, each " +
      "percent-encoded, with blanks between them. Not there where there are none.",
  },
  {
    name: "WATCHDOG_ATTEMPT",
    isSet: true,
    help: "Within watchdog retry, and in a step of a job: the number of the attempt, from 1 on.",
  },
];

/**
 * Whether a variable stands for an option, of a later version too: then it is taken away from the
 * command. WATCHDOG_STATE_DIR is not such a one, because the command is given it on purpose.
 */
export function isOptionVariable(name: string): boolean {
  if (!name.startsWith("WATCHDOG_") || name === STATE_DIR_VARIABLE) return false;
  return RUN_COMMAND.rows.some((row) => row.variable === name) || laterFlagOf(name) !== undefined;
}

/** Every name that `isOptionVariable` says yes to. */
export function listOptionVariables(): readonly string[] {
  const here = RUN_COMMAND.rows.flatMap((row) => row.variable ?? []);
  return [...here, ...listLaterFlags().map(variableOf)].filter(isOptionVariable);
}
