/**
 * What can be seen of processes from here: /proc, pidfds, namespaces, cgroup; and the clocks.
 * Signals nobody and keeps nothing.
 *
 * Always: each answer was read or tried at this moment; what is hidden is told, not guessed. Clock:
 * all of them are compared. State after a crash: none.
 */
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { bootedAt, monotonicNow, suspendedMs, wallNow } from "../os/clock.ts";
import { readMachine } from "../os/machine.ts";
import { findMount } from "../os/mounts.ts";
import { readPidfdInode } from "../os/pidfd-inode.ts";
import { hasChildrenFiles, readProgram } from "../os/proc.ts";
import { listProcesses } from "../os/proc-look.ts";
import { nameErrno, sys } from "../os/sys.ts";
import { isMember } from "../os/users.ts";
import { type Finding, finding, note, ok, textOf } from "./request.ts";

const OWN_PROC = "mount /proc anew inside of this pid namespace";

export function checkProcesses(): Finding {
  if (!readMachine().seesOwnProc) {
    return finding("/proc is that of another pid namespace: no pid can be looked up", OWN_PROC);
  }
  const pids = listProcesses();
  const hidden = findHiding();
  if (hidden !== undefined) {
    const advice = "mount /proc without hidepid, or with gid= of a group of this user (proc(5))";
    return finding(`/proc hides processes of other users (${hidden})`, advice);
  }
  const seen = `/proc shows ${pids.length} processes`;
  if (hasChildrenFiles()) return ok(seen);
  return note(
    `${seen}, and has no children files: a tree is found by a walk, which is no snapshot`,
  );
}

/** By the word of the mount; and by process 1, which is always there and seldom ours. */
function findHiding(): string | undefined {
  const options = findMount("/proc")?.options ?? [];
  const hidepid = options.find((option) => /^hidepid=(?!0$|off$)/.test(option));
  const gid = options.find((option) => option.startsWith("gid="))?.slice("gid=".length);
  const isExempt = process.geteuid?.() === 0 || (gid !== undefined && isMember(Number(gid)));
  if (hidepid !== undefined && !isExempt) return hidepid;
  try {
    closeSync(openSync("/proc/1/stat", "r"));
    return undefined;
  } catch (error) {
    return `process 1 is not to be seen: ${textOf(error)}`;
  }
}

export function checkPidfd(): Finding {
  const pidfd = sys.pidfdOpen(process.pid);
  if (pidfd < 0) {
    const seen = `there are no pidfds (${nameErrno(pidfd)}): a check and its signal are two steps`;
    return note(seen, "Linux 5.3 has them");
  }
  sys.close(pidfd);
  if (readPidfdInode(process.pid) !== 0) return ok("pidfds, each process with an inode of its own");
  const seen = "pidfds without pidfs: after a crash a process is known by pid and start time alone";
  return note(seen, "Linux 6.9 has it");
}

export function checkNamespaces(): Finding {
  const { isInitialPidNamespace, pidNamespace } = readMachine();
  const one = `process 1 is ${describeProcessOne()}`;
  if (readLink("/proc/self/ns/time") !== readLink("/proc/self/ns/time_for_children")) {
    return note(`${one}; what is started here gets another time namespace, and beats have no age`);
  }
  if (isInitialPidNamespace) return ok(`the pid namespace of the machine; ${one}`);
  return note(
    `a pid namespace of its own (${pidNamespace}): the end of processes outside of it cannot be ` +
      `proven; ${one}`,
    "let runs of one key start in one pid namespace",
  );
}

function describeProcessOne(): string {
  const program = readProgram(1);
  if (program !== undefined) return program;
  try {
    return readFileSync("/proc/1/comm", "utf8").trim();
  } catch {
    return "not to be seen"; // ENOENT, EACCES: hidepid, which has a check of its own
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // ENOENT: this kernel has no time namespaces (before 5.6)
  }
}

export function checkCgroup(): Finding {
  const { cgroup } = readMachine();
  if (cgroup !== null) return ok(cgroup);
  return note(
    "no unified cgroup hierarchy: a process that only carries the name of a run cannot be proven " +
      "to be of it, and is never ended",
    "boot with cgroup v2",
  );
}

/** The day on which this was written, more or less: no clock is right that is before it. */
const EARLIEST_WALL = Date.UTC(2025, 0, 1);
/** Of a file: beyond it the clock was set back, or it is far behind. */
const MOST_AHEAD_MS = 3_600_000;

/** @param stateDirectory  undefined: there are no files to compare with */
export function checkClocks(stateDirectory: string | undefined): Finding {
  const before = monotonicNow();
  const wall = wallNow();
  const set = "set the clock (timedatectl)";
  if (wall < EARLIEST_WALL) return finding(`the clock says ${renderDay(wall)}`, set);
  if (monotonicNow() < before) return finding("CLOCK_MONOTONIC goes backwards", "report it");
  if (bootedAt() > wall) return finding("this boot began in the future", set);
  const ahead = stateDirectory === undefined ? undefined : findAhead(stateDirectory, wall);
  if (ahead !== undefined) {
    return finding(`the clock says ${renderDay(wall)}, and ${ahead} is newer than that`, set);
  }
  const asleep = Math.floor(suspendedMs() / 60_000);
  const slept = asleep === 0 ? "" : `, ${asleep} min of this boot suspended`;
  return ok(`wall and boot agree${slept}; whether it is synchronized is not asked`);
}

function findAhead(stateDirectory: string, wall: number): string | undefined {
  return readdirSync(stateDirectory).find((name) => {
    const found = lstatSync(`${stateDirectory}/${name}`, { throwIfNoEntry: false });
    return found !== undefined && found.mtimeMs > wall + MOST_AHEAD_MS;
  });
}

function renderDay(at: number): string {
  return new Date(at).toISOString().slice(0, 16);
}
