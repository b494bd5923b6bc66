/**
 * The environment of the command: the caller's bytes, untouched and in order, less what stands for
 * options of watchdog's or names another pid, plus the variables of the run.
 */
import { isFaultVariable } from "../os/faults.ts";
import type { WallAt } from "../core/time.ts";

export interface RunVariables {
  readonly runId: string;
  readonly jobName: string;
  readonly stateDirectory: string;
  /** The wall time at which `--timeout` ends the run, as first estimated. */
  readonly deadlineAt: WallAt | undefined;
}

/**
 * systemd's socket hand-over names the pid that it is meant for, and that is not the command's
 * (sd_listen_fds(3)).
 */
const NAMES_ANOTHER_PID = ["LISTEN_PID", "LISTEN_FDS"];
/** Of the run around this one, where they mean something else; this version sets none of them. */
const OF_ANOTHER_RUN = [
  "WATCHDOG_LEASE",
  "WATCHDOG_GENERATION",
  "WATCHDOG_PROGRESS",
  "WATCHDOG_ATTEMPT",
];
/** Ids of one run path; a deeper nesting drops the outermost. */
export const LONGEST_RUN_PATH = 64;
const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @param isOption  whether a variable stands for an option: a nested watchdog starts fresh */
export function makeEnvironment(
  inherited: readonly Uint8Array[],
  isOption: (name: string) => boolean,
  variables: RunVariables,
): Uint8Array[] {
  const own = listVariables(inherited, variables);
  const removed = new Set([...NAMES_ANOTHER_PID, ...OF_ANOTHER_RUN, ...own.keys()]);
  const kept = inherited.filter((entry) => {
    const key = keyOf(entry);
    return !removed.has(key) && !isOption(key) && !isFaultVariable(key);
  });
  const added = [...own].map(([key, value]) => new TextEncoder().encode(`${key}=${value}`));
  return [...kept, ...added];
}

function listVariables(
  inherited: readonly Uint8Array[],
  variables: RunVariables,
): Map<string, string> {
  const own = new Map([
    ["WATCHDOG_RUN_ID", variables.runId],
    ["WATCHDOG_RUN_PATH", extendRunPath(valueOf(inherited, "WATCHDOG_RUN_PATH"), variables.runId)],
    ["WATCHDOG_JOB", variables.jobName],
    ["WATCHDOG_STATE_DIR", variables.stateDirectory],
  ]);
  if (variables.deadlineAt !== undefined) {
    const around = Number(valueOf(inherited, "WATCHDOG_DEADLINE") ?? Number.NaN);
    const ours = Math.ceil(variables.deadlineAt / 1000);
    own.set("WATCHDOG_DEADLINE", String(around > 0 && around < ours ? around : ours));
  }
  return own;
}

/** The path of the runs around this one, as far as it is one, and our own id. */
export function extendRunPath(around: string | undefined, runId: string): string {
  return [...splitRunPath(around), runId].slice(-LONGEST_RUN_PATH).join("/");
}

/** The ids of the runs around us; what is no run id is nobody's. */
export function splitRunPath(path: string | undefined): string[] {
  return (path ?? "").split("/").filter((id) => RUN_ID.test(id));
}

/** The value of the first entry with this key, as getenv(3) would find it. */
export function valueOf(entries: readonly Uint8Array[], key: string): string | undefined {
  const entry = entries.find((one) => keyOf(one) === key);
  return entry === undefined
    ? undefined
    : Buffer.from(entry)
        .toString("utf8")
        .slice(key.length + 1);
}

/** Only keys of plain ASCII are compared, so decoding as latin1 is exact. */
function keyOf(entry: Uint8Array): string {
  const end = entry.indexOf(0x3d);
  return Buffer.from(end === -1 ? entry : entry.subarray(0, end)).toString("latin1");
}
