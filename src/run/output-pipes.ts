/**
 * The pipes of a run's output, made before anything is started: what is copied (the decision is
 * `core/output-plan.ts`), through which pipe, and the descriptors that the copy will need.
 */
import { fstatSync, openSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { needsOutput } from "../core/expectations.ts";
import { decideOutputPlan, type OutputPlan, type StreamName } from "../core/output-plan.ts";
import type { RunOptions } from "../core/run-options.ts";
import { nameErrno, sys } from "../os/sys.ts";

export const STDOUT = 1;
export const STDERR = 2;

export interface Pipe {
  readonly name: StreamName;
  readonly descriptors: readonly number[];
  readonly readEnd: number;
  readonly writeEnd: number;
}

export function planOutput(options: RunOptions): OutputPlan {
  const isChecked = needsOutput(options);
  const needsNothing = options.log === "off" && !options.isQuiet && !isChecked;
  return decideOutputPlan({
    log: options.log,
    isQuiet: options.isQuiet,
    isChecked,
    watchesIdle: options.idleTimeoutMs !== undefined,
    isStdoutTerminal: sys.isTerminal(STDOUT),
    isStderrTerminal: sys.isTerminal(STDERR),
    isOneFile: needsNothing && options.idleTimeoutMs === undefined ? false : isOneFile(),
  });
}

/** kcmp(2) tells exactly; where it may not be called, the same inode has to do. */
function isOneFile(): boolean {
  const compared = sys.compareFiles(STDOUT, STDERR);
  if (compared >= 0) return compared === 0;
  return identifyFile(STDOUT) === identifyFile(STDERR);
}

function identifyFile(fd: number): string {
  try {
    const found = fstatSync(fd);
    return `${found.dev}:${found.ino}:${found.rdev}`;
  } catch {
    return `closed ${fd}`; // EBADF
  }
}

/**
 * Descriptors for the Workers, held from before the spawn: one that finds none takes the whole
 * process with it, when the command runs already. Measured: three Workers need no
 * more than this.
 */
const WORKER_DESCRIPTORS = 12;
/** The one that looks at the output. */
const MATCH_DESCRIPTORS = 4;

export function reserveDescriptors(isMatching: boolean): number[] {
  const length = WORKER_DESCRIPTORS + (isMatching ? MATCH_DESCRIPTORS : 0);
  try {
    return Array.from({ length }, () => openSync("/dev/null", "r"));
  } catch (cause) {
    throw noDescriptors(cause instanceof Error ? cause.message : String(cause));
  }
}

/** @throws WatchdogError "spawn.failed" where none are to be had (EMFILE, ENFILE) */
export function makePipes(plan: OutputPlan): Pipe[] {
  return plan.copied.map((stream) => ({ ...stream, ...makePipe() }));
}

function makePipe(): { readEnd: number; writeEnd: number } {
  const ends = sys.pipe();
  if (typeof ends === "number") throw noDescriptors(nameErrno(ends));
  return ends;
}

function noDescriptors(reason: string): WatchdogError {
  return new WatchdogError("spawn.failed", `no descriptors for the output: ${reason}`, {
    hint: "watchdog run --log off -- COMMAND",
  });
}
