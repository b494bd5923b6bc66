/**
 * What stands in the way of a lease, as the failure that it is: 78 where a person must change
 * something, 125 where the machine says no. Pure.
 */
import { WatchdogError } from "../../core/errors.ts";
import { codeOf, type FileTrouble, textOf } from "./own-file.ts";
import type { LeasePlace } from "./places.ts";

/** What is replaced more often between two looks of ours is replaced on purpose (A3). */
export const MOST_REPLACEMENTS = 5;

export function replacedTooOften(place: LeasePlace): WatchdogError {
  return new WatchdogError(
    "lease.unusable",
    `${place.lock} was replaced ${MOST_REPLACEMENTS} times while it was looked at`,
    { hint: `ls -ld ${place.directory}` },
  );
}

export function troubleWith(
  path: string,
  trouble: Exclude<FileTrouble, { kind: "missing" }>,
): WatchdogError {
  const code = trouble.kind === "refused" ? "lease.refused" : "lease.unusable";
  return new WatchdogError(code, `${path}: ${trouble.reason}`, { hint: `ls -ld ${path}` });
}

/** An error of a system call is a failure of the machine; anything else is a bug of ours. */
export function asFailure(error: unknown): unknown {
  if (error instanceof WatchdogError || codeOf(error) === "unknown") return error;
  return new WatchdogError("lease.unusable", `the lease cannot be had: ${textOf(error)}`, {
    hint: "watchdog run --no-lease -- COMMAND",
    cause: error,
  });
}
