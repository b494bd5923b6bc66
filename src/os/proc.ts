/**
 * `/proc` of one process (proc(5)), read and nothing more. A process that is gone reads as
 * `undefined`; so does what may not be read. Nothing here reads `/proc/PID/environ` or `cmdline` of
 * others on the hot path: those take the other's memory lock and can hang.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { ownMask } from "./mask.ts";

/** One line of `/proc/PID/stat`, the fields that are used. Ticks are of 1/100 s. */
export interface ProcessStat {
  readonly pid: number;
  /** The state letter: R S D T t Z X I. */
  readonly state: string;
  readonly ppid: number;
  readonly groupId: number;
  readonly sessionId: number;
  /** utime + stime of the process itself. */
  readonly ownTicks: number;
  /** The same of its children that it has waited for. */
  readonly waitedTicks: number;
  /** Those that live, and the first one until the last has ended. */
  readonly threads: number;
  /** Since boot; with the pid the identity of a process, as far as 10 ms allow. */
  readonly startTicks: number;
}

/** Length of a clock tick, in milliseconds: USER_HZ is 100 on every Linux that Bun runs on. */
export const TICK_MS = 10;

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined; // ENOENT, ESRCH: the process is gone. EACCES: not ours to read.
  }
}

/**
 * Parses a stat line. The name in brackets may hold anything, brackets and newlines too: cut at the
 * last one.
 */
export function parseStat(pid: number, line: string): ProcessStat | undefined {
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  if (fields.length < 20) return undefined;
  const field = (index: number): number => Number(fields[index]);
  return {
    pid,
    state: fields[0] ?? "?",
    ppid: field(1),
    groupId: field(2),
    sessionId: field(3),
    ownTicks: field(11) + field(12),
    waitedTicks: field(13) + field(14),
    threads: field(17),
    startTicks: field(19),
  };
}

export function readStat(pid: number): ProcessStat | undefined {
  const line = readText(`/proc/${pid}/stat`);
  return line === undefined ? undefined : parseStat(pid, line);
}

/** The state letters of the threads that a process has at this moment. */
export function readThreadStates(pid: number): string[] {
  return listNumbers(`/proc/${pid}/task`).flatMap((task) => {
    const line = readText(`/proc/${pid}/task/${task}/stat`);
    return line === undefined ? [] : (parseStat(task, line)?.state ?? []);
  });
}

/**
 * The direct children of a process, from `/proc/PID/task/TID/children`; where this kernel has no
 * such files (CONFIG_PROC_CHILDREN), by a walk over all processes, which is no snapshot.
 */
export function readChildren(pid: number | "self"): number[] {
  if (!hasChildrenFiles()) return scanForChildren(pid === "self" ? process.pid : pid);
  const children: number[] = [];
  for (const task of listNumbers(`/proc/${pid}/task`)) {
    for (const word of (readText(`/proc/${pid}/task/${task}/children`) ?? "").split(" ")) {
      if (word !== "") children.push(Number(word));
    }
  }
  return children;
}

/**
 * The children of our main thread: those that were started and, as a rule, those that were adopted
 * (the kernel gives an orphan to the first living thread). Quicker than all of them, and no proof.
 */
export function readMainChildren(): number[] {
  const words = readText(`/proc/self/task/${process.pid}/children`)?.split(" ") ?? [];
  return words.filter((word) => word !== "").map(Number);
}

let childrenFiles: boolean | undefined;

/**
 * Whether this kernel has `children` files; without them a list of children is no proof of
 * anything.
 */
export function hasChildrenFiles(): boolean {
  childrenFiles ??= readText(`/proc/self/task/${process.pid}/children`) !== undefined;
  return childrenFiles;
}

/**
 * The same answer by reading the parent of every process; exported to be compared with the other
 * way.
 */
export function scanForChildren(pid: number): number[] {
  return listNumbers("/proc").filter((one) => readStat(one)?.ppid === pid);
}

function listNumbers(path: string): number[] {
  try {
    return readdirSync(path)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return []; // ENOENT: gone; its children belong to somebody else now
  }
}

/**
 * The command line for people: arguments joined by blanks, without secrets, cut to `limit`
 * characters. A process in
 * state D keeps its short name: its memory lock may be stuck, and `cmdline` would wait for it.
 */
export function readCommand(pid: number, limit = 200): string {
  const isStuck = readStat(pid)?.state === "D";
  const raw = (isStuck ? undefined : readText(`/proc/${pid}/cmdline`))
    ?.replace(/\0+$/, "")
    .replaceAll("\0", " ");
  const name = raw === undefined || raw === "" ? `[${readName(pid)}]` : raw;
  const text = ownMask().text(Buffer.from(name, "latin1").toString("utf8"));
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

function readName(pid: number): string {
  return readText(`/proc/${pid}/comm`)?.trimEnd() ?? "gone";
}

/** Masks of ignored, blocked and caught signals; undefined if the process is gone. */
export interface SignalMasks {
  readonly ignored: bigint;
  readonly blocked: bigint;
  readonly caught: bigint;
}

export function readSignalMasks(pid: number | "self"): SignalMasks | undefined {
  const status = readText(`/proc/${pid}/status`);
  if (status === undefined) return undefined;
  const mask = (name: string): bigint =>
    BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)`, "m").exec(status)?.[1] ?? "0"}`);
  return { ignored: mask("SigIgn"), blocked: mask("SigBlk"), caught: mask("SigCgt") };
}

/**
 * Bytes read and written by system calls (`rchar` + `wchar`), of the process and of children it
 * waited for.
 */
export function readIoBytes(pid: number): number | undefined {
  const text = readText(`/proc/${pid}/io`);
  if (text === undefined) return undefined;
  const field = (name: string): number =>
    Number(new RegExp(`^${name}: (\\d+)`, "m").exec(text)?.[1] ?? 0);
  return field("rchar") + field("wchar");
}

/**
 * The path of the program that a process runs; undefined if gone or not ours to see. The mark of a
 * file that was replaced while it runs is cut off: an upgrade does not make a stranger of it.
 */
export function readProgram(pid: number | "self"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, "");
  } catch {
    return undefined; // ENOENT: gone or a kernel thread. EACCES: not ours to read.
  }
}

/** Whether a process has a memory file of this name open (memfd_create(2)). */
export function holdsMemoryFile(pid: number, name: string): boolean {
  return listNumbers(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(`/memfd:${name} `);
    } catch {
      return false; // ENOENT: closed or gone meanwhile. EACCES: not ours to see.
    }
  });
}

/**
 * The environment as its raw entries. Empty while the process is inside exec, and overwritten by
 * programs that set their title, so an absent variable proves nothing.
 */
export function readEnvironment(pid: number): string[] | undefined {
  const text = readText(`/proc/${pid}/environ`);
  return text === undefined || text === "" ? undefined : text.split("\0");
}

/** The soft limit of open files of a process; undefined if it cannot be read. */
export function readOpenFilesLimit(pid: number): bigint | undefined {
  const text = readText(`/proc/${pid}/limits`);
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(text ?? "")?.[1];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? 0xffff_ffff_ffff_ffffn : BigInt(soft);
}
