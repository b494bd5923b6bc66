/**
 * `/proc` of any process of the machine (proc(5)), as far as a proof is built on it: what is gone,
 * what is empty and what cannot be read are three different answers here. Knows no run.
 *
 * Always: an error of our own (EMFILE, ENFILE, ENOMEM, EIO) is thrown, never taken for an absent
 * process: a list that is short by one would prove a tree empty that lives. Clock: none.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { parseStat, type ProcessStat } from "./proc.ts";

/** What one line of `stat` tells beside the fields of ProcessStat. */
export interface ProcessLook {
  /** Where the first thread has ended while others live on: the state of one that lives. */
  readonly stat: ProcessStat;
  readonly isKernelThread: boolean;
  /**
   * `none`: there is none, for sure (dead, a kernel thread, or started with an empty one).
   * `in-exec`: not set up yet. `may-hang`: state D, whoever reads may wait with it for ever.
   */
  readonly environment: "readable" | "none" | "in-exec" | "may-hang";
  /** Below /proc; the thread that lives where the first has ended. */
  readonly directory: string;
}

/** PF_KTHREAD of include/linux/sched.h, in field 9 of `stat`. */
const KERNEL_THREAD = 0x0020_0000;
/** Positions behind the name in brackets; field 3 of proc(5) is 0. */
const FLAGS = 6;
const THREADS = 17;
const ENVIRONMENT_START = 47;
const ENVIRONMENT_END = 48;
/** The process is gone, or never was. */
const GONE: ReadonlySet<string | undefined> = new Set(["ENOENT", "ESRCH"]);
/** Not ours to read; with a `hidepid` mount of /proc (proc(5)) not even `stat` of others is. */
const HIDDEN: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM"]);

/** All pids. @throws where /proc cannot be read; a list without ourselves is none */
export function listProcesses(): number[] {
  const pids = listNumbers("/proc");
  if (!pids.includes(process.pid)) throw new Error("/proc does not show this process");
  return pids;
}

/** One process; undefined: gone, or hidden from us altogether. */
export function lookAtProcess(pid: number): ProcessLook | undefined {
  const look = lookAtTask(pid, `/proc/${pid}`);
  if (look?.stat.state !== "Z" || look.threads <= 1) return look;
  return lookAtLivingThread(pid) ?? look;
}

/** pthread_exit(3) in main: the process is no more dead than its other threads. */
function lookAtLivingThread(pid: number): ProcessLook | undefined {
  for (const task of listTasks(pid)) {
    const look = lookAtTask(pid, `/proc/${pid}/task/${task}`);
    if (look !== undefined && !isDeadState(look.stat.state)) return look;
  }
  return undefined;
}

export function isDeadState(state: string): boolean {
  return state === "Z" || state === "X";
}

function lookAtTask(
  pid: number,
  directory: string,
): (ProcessLook & { readonly threads: number }) | undefined {
  const line = readOrGone(`${directory}/stat`);
  const stat = line === undefined ? undefined : parseStat(pid, line);
  if (line === undefined || stat === undefined) return undefined;
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const isKernelThread = (Number(fields[FLAGS]) & KERNEL_THREAD) !== 0;
  return {
    stat,
    isKernelThread,
    environment: judgeEnvironment(stat, isKernelThread, {
      start: fields[ENVIRONMENT_START],
      end: fields[ENVIRONMENT_END],
    }),
    directory,
    threads: Number(fields[THREADS]),
  };
}

/**
 * Both addresses are 0 where we may not see them (then `environ` refuses, too) and while exec has
 * not set the new program up (fs/binfmt_elf.c, create_elf_tables); equal and not 0: started with
 * none. A program that was overwriting its title still has its addresses.
 */
function judgeEnvironment(
  stat: ProcessStat,
  isKernelThread: boolean,
  at: { readonly start: string | undefined; readonly end: string | undefined },
): ProcessLook["environment"] {
  if (isKernelThread || isDeadState(stat.state)) return "none";
  if (at.start === at.end && at.end !== "0") return "none";
  return stat.state === "D" ? "may-hang" : "readable";
}

/**
 * The environment as one text, entries ended by NUL.
 *
 * May wait for ever where the other's memory lock is stuck (a page fault on a dead file server):
 * call it in a Worker, or where `environment` is `readable` and a wait can be afforded.
 *
 * @returns `in-exec` if it is empty at this moment, `hidden` if it is not ours, undefined: gone
 */
export function readEnvironmentText(
  look: ProcessLook,
): { readonly text: string } | "in-exec" | "hidden" | undefined {
  try {
    const text = readFileSync(`${look.directory}/environ`, "latin1");
    return text === "" ? "in-exec" : { text };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (GONE.has(code)) return undefined;
    if (HIDDEN.has(code)) return "hidden";
    throw error;
  }
}

/** Whether it is process 1 of its own pid namespace: the last number of NSpid. */
export function readIsNamespaceInit(pid: number): boolean {
  const ids = /^NSpid:\s*(.*)$/m.exec(readOrGone(`/proc/${pid}/status`) ?? "")?.[1];
  return ids?.split(/\s+/).at(-1) === "1";
}

/** Real, effective, saved and file system user; undefined: gone, or hidden from us altogether. */
export function readUserIds(pid: number): readonly number[] | undefined {
  const ids = /^Uid:\s*(.*)$/m.exec(readOrGone(`/proc/${pid}/status`) ?? "")?.[1];
  return ids?.split(/\s+/).map(Number);
}

/** Whether that descriptor of it is the memory file of this name (memfd_create(2)). */
export function holdsMemoryFileAt(pid: number, fd: number, name: string): boolean {
  return readLinkOrGone(`/proc/${pid}/fd/${fd}`)?.startsWith(`/memfd:${name} `) === true;
}

/** How a process is numbered in its pid namespace and in those around it, ours first. */
export interface NamespaceNumbers {
  /** Its own pid namespace: the inode, in digits; undefined: not ours to read. */
  readonly pidNamespace: string | undefined;
  readonly pids: readonly number[];
  /** 0 where the leader of the group is outside of that namespace. */
  readonly groups: readonly number[];
  readonly sessions: readonly number[];
}

/** @returns undefined: gone, or hidden from us altogether */
export function readNamespaceNumbers(pid: number): NamespaceNumbers | undefined {
  const status = readOrGone(`/proc/${pid}/status`);
  const link = readLinkOrGone(`/proc/${pid}/ns/pid`);
  const numbers = (name: string): number[] => {
    const line = new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status ?? "")?.[1];
    return line === undefined ? [] : line.trim().split(/\s+/).map(Number);
  };
  if (status === undefined) return undefined;
  return {
    pidNamespace: /\[(\d+)\]$/.exec(link ?? "")?.[1],
    pids: numbers("NSpid"),
    groups: numbers("NSpgid"),
    sessions: numbers("NSsid"),
  };
}

function readLinkOrGone(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (GONE.has(code) || HIDDEN.has(code)) return undefined;
    throw error;
  }
}

function listTasks(pid: number): number[] {
  try {
    return listNumbers(`/proc/${pid}/task`);
  } catch (error) {
    if (GONE.has((error as NodeJS.ErrnoException).code)) return [];
    throw error;
  }
}

function listNumbers(path: string): number[] {
  return readdirSync(path)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function readOrGone(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (GONE.has(code) || HIDDEN.has(code)) return undefined;
    throw error;
  }
}
