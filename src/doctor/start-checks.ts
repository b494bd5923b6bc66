/**
 * Whether what a run starts beside its command can be started here: calls into the C library, the
 * guard, a thread. Each is tried; what is started is ended.
 *
 * Clock: MONOTONIC, for limits. State after a crash: none.
 */
import { constants, readFileSync } from "node:fs";
import { GUARD_MEMORY } from "../core/burial.ts";
import { close, NONE, openHigh } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { findFfiTrouble } from "../os/libc.ts";
import { nameErrno, sys } from "../os/sys.ts";
import { scanInWorker } from "../tree/scan-handle.ts";
import { awaitChild, hearChild, makePipe, startChild } from "./children.ts";
import { type Finding, finding, ok } from "./request.ts";

export function checkFfi(): Finding {
  const trouble = findFfiTrouble();
  if (trouble === undefined) return ok("the C library can be called");
  return finding(trouble.message, trouble.hint ?? "watchdog help run");
}

const SHELL = "/bin/sh";
/** The descriptor under which a guard has the program that it becomes. */
const PROGRAM = 9;
const BECOME = `cd /; exec /proc/self/fd/${PROGRAM} --version`;

/** As run/guard.ts starts it: a shell that becomes this very program by an open descriptor. */
export function checkGuard(inherited: Inheritance): Finding {
  const memory = sys.memoryFile(GUARD_MEMORY);
  if (memory < 0) return noGuard(`no memory file can be made: ${nameErrno(memory)}`);
  sys.close(memory);
  const program = openHigh("/proc/self/exe", constants.O_RDONLY);
  if (program === NONE) return noGuard("this program cannot be opened");
  try {
    return tryGuard(program, inherited);
  } finally {
    close(program);
  }
}

/** A shell that ends well without having become the program would not do. */
function tryGuard(program: number, inherited: Inheritance): Finding {
  const output = makePipe();
  try {
    const redirections = [
      { target: 1, source: output.writeEnd },
      { target: PROGRAM, source: program },
    ];
    const started = startChild({ argv: [SHELL, "-c", BECOME], redirections }, inherited);
    output.writeEnd = close(output.writeEnd);
    if (started.kind === "refused") {
      return noGuard(`${SHELL} cannot be started: ${nameErrno(started.errorNumber)}`);
    }
    const said = hearChild(output.readEnd, OWN_NAME.length);
    const ended = awaitChild(started.pid);
    const isWell = ended !== "late" && ended.kind === "exited" && ended.code === 0;
    if (isWell && said === OWN_NAME) return ok(`${SHELL} becomes this program`);
    return noGuard(`${SHELL} does not become this program`);
  } finally {
    close(output.writeEnd);
    close(output.readEnd);
  }
}

/** How its `--version` begins. */
const OWN_NAME = "watchdog";

function noGuard(seen: string): Finding {
  return finding(
    `${seen}: when watchdog is killed, nobody ends its processes until the next start`,
    `make ${SHELL} a shell that can be started`,
  );
}

/** Below about 33 there is no guard, as the README tells; each further key needs three. */
const LEAST_DESCRIPTORS = 64;
/** Threads count, and a run has about ten of its own (pthread_create(3)). */
const LEAST_PROCESSES = 64;

/** What may be open and started by this user; Bun has raised the first to its hard limit. */
export function checkLimits(): Finding {
  const text = readFileSync("/proc/self/limits", "latin1");
  const open = readLimit(text, "Max open files");
  const processes = readLimit(text, "Max processes");
  const seen = `${describe(open)} open files, ${describe(processes)} processes of this user`;
  if (open < LEAST_DESCRIPTORS) {
    return finding(`${seen}: first the guard is missing, then the lease`, "raise ulimit -Hn");
  }
  const isRoot = process.geteuid?.() === 0; // whom this limit does not hold (getrlimit(2))
  if (processes < LEAST_PROCESSES && !isRoot) {
    return finding(`${seen}: a watchdog without room for a thread dies`, "raise ulimit -u");
  }
  return ok(seen);
}

/** The soft one; Infinity where there is none. */
function readLimit(text: string, name: string): number {
  const word = new RegExp(`^${name}\\s+(\\d+|unlimited)`, "m").exec(text)?.[1];
  return word === undefined || word === "unlimited" ? Infinity : Number(word);
}

function describe(limit: number): string {
  return limit === Infinity ? "any number of" : String(limit);
}

/** A loaded machine is given more time than a run takes. */
const WORKER_LIMIT_MS = 20_000;

export async function checkWorkers(scanUrl: string | URL): Promise<Finding> {
  const result = await scanInWorker(scanUrl, WORKER_LIMIT_MS);
  if (result === "unread") {
    return finding("no thread has looked over all processes in time", "ulimit -u; ulimit -n");
  }
  const unread = result.filter((one) => one.runPath === "unread").length;
  const hidden = unread === 0 ? "none hidden" : `${unread} hidden`;
  return ok(`a thread has looked at ${result.length} processes, ${hidden}`);
}
