/**
 * Who and where we are, as far as leases need it: boot, machine, namespaces, user, cgroup; and
 * whether a process of this boot lives. Reads /proc and /etc, keeps nothing, decides nothing.
 *
 * What cannot be read is null or `unread`, never a guess. Clock: none. State after a crash: none.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Fact } from "../core/evidence.ts";
import { WatchdogError } from "../core/errors.ts";
import type { ProcessIdentity } from "../core/lease-record.ts";
import { parseStat, readProgram, readStat } from "./proc.ts";
import { EPERM, ESRCH, sys } from "./sys.ts";

export interface Machine {
  /** /proc/sys/kernel/random/boot_id (random(4)). */
  readonly bootId: string;
  /** Of /etc/machine-id (machine-id(5)); null: none, or not set up yet. */
  readonly machineId: string | null;
  readonly host: string;
  /** The inode of /proc/self/ns/pid, in digits (namespaces(7)). */
  readonly pidNamespace: string;
  /** The same of /proc/self/ns/time; null: this kernel has none (before Linux 5.6). */
  readonly timeNamespace: string | null;
  /** The namespace that contains all others of this kernel. */
  readonly isInitialPidNamespace: boolean;
  /**
   * Whether /proc counts pids as we do: no where it was mounted for another pid namespace, and then
   * no pid can be looked up in it.
   */
  readonly seesOwnProc: boolean;
  readonly uid: number;
  /** The name in /etc/passwd, else the uid in digits. */
  readonly user: string;
  /** Our path in the unified cgroup hierarchy; null: none. */
  readonly cgroup: string | null;
}

/** PROC_PID_INIT_INO (include/linux/proc_ns.h, 0xEFFFFFFC): fixed since Linux 3.8. */
const INITIAL_PID_NAMESPACE = "4026531836";

/**
 * @throws WatchdogError "lease.unusable" where /proc does not tell the boot or the pid namespace:
 *   no lease can then be told from one of another boot
 */
export function readMachine(): Machine {
  const bootId = readLine("/proc/sys/kernel/random/boot_id");
  const pidNamespace = readNamespace("pid");
  if (bootId === undefined || pidNamespace === undefined) {
    throw new WatchdogError("lease.unusable", "/proc does not tell the boot and the namespace", {
      hint: "watchdog run --no-lease -- COMMAND",
    });
  }
  const uid = process.getuid?.() ?? 0;
  return {
    bootId,
    machineId: readMachineId(),
    host: readLine("/proc/sys/kernel/hostname") ?? "localhost",
    pidNamespace,
    timeNamespace: readNamespace("time") ?? null,
    isInitialPidNamespace: pidNamespace === INITIAL_PID_NAMESPACE,
    seesOwnProc: readLink("/proc/self") === String(process.pid),
    uid,
    user: findUser(uid) ?? String(uid),
    cgroup: readCgroup("self") ?? null,
  };
}

/** Empty where /proc does not tell it. */
export function readBootId(): string {
  return readLine("/proc/sys/kernel/random/boot_id") ?? "";
}

/** The first line of a file, trimmed; undefined where it is missing, unreadable or empty. */
function readLine(path: string): string | undefined {
  const line = readWhole(path)?.split("\n", 1)[0]?.trim();
  return line === "" ? undefined : line;
}

function readWhole(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // ENOENT, ESRCH: it is not there (any more). EACCES: not ours to read.
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // ENOENT: no /proc, or this kernel has no such namespace
  }
}

/** `pid:[4026531836]` → its digits. */
function readNamespace(kind: "pid" | "time"): string | undefined {
  return /\[(\d+)\]$/.exec(readLink(`/proc/self/ns/${kind}`) ?? "")?.[1];
}

/** An image that has not been started yet says `uninitialized` there (machine-id(5)). */
function readMachineId(): string | null {
  const line = readLine("/etc/machine-id");
  return line !== undefined && /^[0-9a-f]{32}$/.test(line) ? line : null;
}

function findUser(uid: number): string | undefined {
  for (const line of (readWhole("/etc/passwd") ?? "").split("\n")) {
    const fields = line.split(":");
    if (fields[2] === String(uid) && fields[0] !== "") return fields[0];
  }
  return undefined;
}

/**
 * The path of a process in the unified hierarchy (cgroups(7)); undefined: it is gone, not ours to
 * read, or there is no unified hierarchy.
 */
export function readCgroup(pid: number | "self"): string | undefined {
  return /^0::(\/.*)$/m.exec(readWhole(`/proc/${pid}/cgroup`) ?? "")?.[1];
}

/** Pid and start time; undefined: there is no such process. */
export function readProcessIdentity(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat === undefined ? undefined : { pid, start_time: stat.startTicks };
}

/**
 * Whether this very process lives. One whose first thread has ended while others go on shows as a
 * zombie and lives; one that only waits to be collected is dead. Stopped ones live.
 *
 * Only for pids of our own pid and time namespace.
 */
export function isAlive(identity: ProcessIdentity): Fact {
  let line: string;
  try {
    line = readFileSync(`/proc/${identity.pid}/stat`, "latin1");
  } catch {
    return isHidden(identity.pid) ? "unread" : "no"; // which of the two is asked there
  }
  const stat = parseStat(identity.pid, line);
  if (stat === undefined) return "unread";
  if (stat.startTicks !== identity.start_time) return "no";
  if (stat.state === "X") return "no";
  return stat.state !== "Z" || countThreads(identity.pid) > 1 ? "yes" : "no";
}

/**
 * A mount of /proc with `hidepid` shows the processes of others as missing (proc(5)); the null
 * signal tells that there is one.
 */
function isHidden(pid: number): boolean {
  try {
    const answer = sys.kill(pid, 0);
    return answer !== -ESRCH && (answer === 0 || answer === -EPERM);
  } catch {
    return true; // os.no-ffi: it cannot be told
  }
}

function countThreads(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0; // ENOENT: collected meanwhile
  }
}

/**
 * Programs that are known to set PR_SET_CHILD_SUBREAPER (prctl(2)), by the name of the program
 * file. The flag of another process cannot be read anywhere, so that there is only a list; a name
 * that is missing here makes suspects of this run's orphans, which is safe, and 75.
 */
const SUBREAPERS: ReadonlySet<string> = new Set([
  "systemd", // its user manager, and the system's where it is not process 1
  "tini", // with -s
  "tini-static",
  "docker-init", // tini under another name
  "catatonit",
  "conmon", // the monitor of podman and CRI-O
  "containerd-shim", // also the short name of the next two: cut to 15 characters (proc(5), comm)
  "containerd-shim-runc-v1",
  "containerd-shim-runc-v2",
  "runc", // in the foreground
]);

/**
 * Our own ancestors that adopt orphans, process 1 left out: watchdogs around this one, and the
 * known programs of the list above.
 */
export function readAdopters(): ProcessIdentity[] {
  const own = readProgram("self");
  const adopters: ProcessIdentity[] = [];
  let stat = readStat(process.pid);
  for (let step = 0; stat !== undefined && stat.ppid > 1 && step < MOST_ANCESTORS; step += 1) {
    stat = readStat(stat.ppid);
    if (stat !== undefined && adopts(stat.pid, own)) {
      adopters.push({ pid: stat.pid, start_time: stat.startTicks });
    }
  }
  return adopters;
}

/** More than this is a circle in what was read. */
const MOST_ANCESTORS = 10_000;

function adopts(pid: number, own: string | undefined): boolean {
  const program = readProgram(pid);
  if (program !== undefined && program === own) return true;
  return isKnownSubreaper({ program, comm: readLine(`/proc/${pid}/comm`) });
}

/**
 * Whether a program is in the list above. Where its file is not ours to see (another user's) the
 * short name stands for it, which a process may choose: a false one can only make a proven member
 * of a bearer that is in the run's cgroup and younger than the run.
 */
export function isKnownSubreaper(named: {
  readonly program: string | undefined;
  readonly comm: string | undefined;
}): boolean {
  const { program, comm } = named;
  if (program === undefined) return comm !== undefined && SUBREAPERS.has(comm);
  return SUBREAPERS.has(program.slice(program.lastIndexOf("/") + 1));
}
