/**
 * `watchdog tick`: one report of a job, appended to the progress file of the run around it.
 *
 * Always: one write at the end of the file, so that reports of many processes at once stay whole;
 * the file is never made, because nobody would read it. Inside of a run a report that cannot be
 * written is told and is no failure: trouble of watchdog's own must not end a job that stops at the
 * first error. Clock: none. State after a crash: the whole report, or none of it.
 */
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { type ItemReport, renderReport } from "../core/item-report.ts";
import { say } from "../os/say.ts";
import { isProgressPath } from "./place.ts";

const { O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;

export interface TickRequest {
  readonly report: ItemReport;
  /** WATCHDOG_PROGRESS. */
  readonly path: string | undefined;
  /** WATCHDOG_RUN_ID. */
  readonly runId: string | undefined;
}

/** @throws WatchdogError "usage" outside of any run */
export function tickCommand({ report, path, runId }: TickRequest): void {
  if (isSet(path)) return append(path, renderReport(report));
  if (isSet(runId)) return tell("the run has no progress file");
  throw new WatchdogError("usage", "there is no run around tick: WATCHDOG_PROGRESS is not set", {
    hint: "watchdog run -- COMMAND",
  });
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

function append(path: string, text: string): void {
  // A stale or foreign value must not have a line put at the end of just any file.
  if (!isProgressPath(path)) return tell(`${path} is no progress file`);
  try {
    const fd = openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    try {
      if (!fstatSync(fd).isFile()) return tell(`${path} is no file`);
      const bytes = Buffer.from(text);
      if (writeSync(fd, bytes) < bytes.length) tell("no space left on the device");
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    // ENOENT: the run is over. ENOSPC, EACCES (another user), EROFS …
    tell(error instanceof Error ? error.message : String(error));
  }
}

function tell(reason: string): void {
  say(`watchdog: not reported: ${reason}`);
}
