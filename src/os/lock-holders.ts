/**
 * Who holds a lock of flock(2) on a file, by name, for people: from `/proc/locks` (proc_locks(5)),
 * and where the process that has taken it is dead, from the descriptors that were inherited of it.
 * Nothing is decided by this.
 *
 * Always: whoever is named has the file open; the kernel alone knows whether it is locked. Refuses
 * to know processes of other pid namespaces, which nobody here could look up. Clock: MONOTONIC, for
 * the limit of the look. State after a crash: none.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import type { NamedProcess } from "../core/run-record.ts";
import { monotonicNow } from "./clock.ts";
import { readCommand, readStat } from "./proc.ts";
import { listProcesses } from "./proc-look.ts";
import { identifyPath, listOpenFiles, readDescriptorFacts } from "./proc-places.ts";

/** So many are named, and for so long it is looked for them: a look at all descriptors costs. */
const MOST_HOLDERS = 20;
export const HOLDERS_LIMIT_MS = 300;
/** `1: FLOCK  ADVISORY  WRITE 359 08:01:131 0 EOF`; who only waits has `->` before FLOCK. */
const FLOCK = /^\d+: FLOCK +\S+ +\S+ +(\d+) +\S+:(\d+) /;
/** The same line in `/proc/PID/fdinfo/FD`, of the open file itself: inherited ones have it too. */
const LOCK_OF_DESCRIPTOR = /^lock:\s+\d+: FLOCK /m;

/** Best first; none where nothing can be told. Never ourselves. Throws nothing. */
export function findLockHolders(path: string, limitMs: number = HOLDERS_LIMIT_MS): NamedProcess[] {
  try {
    return find(path, limitMs).map((pid) => ({ pid, command: readCommand(pid) }));
  } catch {
    return []; // no /proc, EMFILE: then nobody is named
  }
}

/**
 * Who has taken the lock, of those that have the file open still, if they also have the other file
 * open; heirs are not looked for. Undefined: nobody was seen to. Throws nothing.
 */
export function findLockTakerWith(path: string, otherPath: string): number | undefined {
  try {
    const [identity, other] = [identifyPath(path), identifyPath(otherPath)];
    const inode = identity?.split(":")[1];
    if (identity === undefined || inode === undefined || other === undefined) return undefined;
    if (!seesOwnProc()) return undefined;
    const file = { identity, name: `/${basename(path)}` };
    const beside = { identity: other, name: `/${basename(otherPath)}` };
    return listTakers(inode).find(
      (pid) => isOpenIn(pid, file, () => true) && isOpenIn(pid, beside, () => true),
    );
  } catch {
    return undefined; // no /proc, EMFILE
  }
}

function find(path: string, limitMs: number): number[] {
  const identity = identifyPath(path);
  const inode = identity?.split(":")[1];
  if (identity === undefined || inode === undefined || !seesOwnProc()) return [];
  const file = { identity, name: `/${basename(path)}` };
  const takers = listTakers(inode).filter((pid) => isOpenIn(pid, file, () => true));
  if (takers.length > 0) return takers.slice(0, MOST_HOLDERS);
  return findHeirs(file, monotonicNow() + limitMs);
}

/**
 * Who of this process and those above it has the file open with a lock on it: whoever waits for
 * them waits for itself. Undefined: nobody, or nothing can be told. Throws nothing.
 */
export function findHolderAround(path: string): NamedProcess | undefined {
  try {
    const identity = identifyPath(path);
    if (identity === undefined || !seesOwnProc()) return undefined;
    const file = { identity, name: `/${basename(path)}` };
    const holder = listAround().find((pid) => isOpenIn(pid, file, (fd) => hasLock(pid, fd)));
    return holder === undefined ? undefined : { pid: holder, command: readCommand(holder) };
  } catch {
    return undefined; // no /proc, EMFILE: then it is waited for in vain
  }
}

/** Ourselves first. */
function listAround(): number[] {
  const around = [process.pid];
  for (let pid = process.ppid; pid > 1 && !around.includes(pid); pid = readStat(pid)?.ppid ?? 0) {
    around.push(pid);
  }
  return around;
}

function hasLock(pid: number, fd: number): boolean {
  return LOCK_OF_DESCRIPTOR.test(readDescriptorFacts(pid, fd) ?? "");
}

function seesOwnProc(): boolean {
  return readlinkSync("/proc/self") === String(process.pid);
}

/** Who has taken a lock of an inode of this number: dead ones too, whose pid is free again. */
function listTakers(inode: string): number[] {
  const lines = readFileSync("/proc/locks", "latin1").split("\n");
  const pids = lines.flatMap((line) => {
    const [, pid, ofInode] = FLOCK.exec(line) ?? [];
    return ofInode === inode ? [Number(pid)] : [];
  });
  return [...new Set(pids)].filter((pid) => pid > 0 && pid !== process.pid);
}

interface WantedFile {
  /** `device:inode` */
  readonly identity: string;
  /** How its path ends, so that nothing else is looked at: a file server might hang. */
  readonly name: string;
}

/** Who has inherited the open file with its lock. */
function findHeirs(file: WantedFile, until: number): number[] {
  const heirs: number[] = [];
  for (const pid of listProcesses()) {
    if (heirs.length >= MOST_HOLDERS || monotonicNow() >= until) break;
    const isHeld = pid !== process.pid && isOpenIn(pid, file, (fd) => hasLock(pid, fd));
    if (isHeld) heirs.push(pid);
  }
  return heirs;
}

function isOpenIn(pid: number, file: WantedFile, isWanted: (fd: number) => boolean): boolean {
  return listOpenFiles(pid).some(
    ({ fd, path }) =>
      path.endsWith(file.name) &&
      identifyPath(`/proc/${pid}/fd/${fd}`) === file.identity &&
      isWanted(fd),
  );
}
