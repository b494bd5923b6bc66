/**
 * What this process was given by the one that started it, read before anything changes it:
 * arguments and environment as bytes, ignored and blocked signals, open descriptors, the limit of
 * open files, children that it had already.
 *
 * Bun has changed two things before the first line of ours runs: it ignores SIGPIPE and SIGXFSZ,
 * and it raised the soft limit of open files. The first cannot be known any more (the command gets
 * the default); the second is read from the parent, which is right unless watchdog was exec'ed in
 * place of a shell that had set it.
 */
import {
  closeSync,
  openSync,
  constants as fsConstants,
  readdirSync,
  readFileSync,
  readlinkSync,
} from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { libc } from "./libc.ts";
import { readChildren, readOpenFilesLimit, readSignalMasks } from "./proc.ts";

export interface Inheritance {
  /** The words after the program's own name, as bytes. */
  readonly words: readonly Uint8Array[];
  /** `KEY=value` entries as bytes, duplicates and all. */
  readonly environment: readonly Uint8Array[];
  readonly ignoredSignals: bigint;
  /** The signal mask as a C `sigset_t`; undefined without FFI. */
  readonly blockedSignals: Uint8Array | undefined;
  /** Descriptors above 2 that are the caller's. */
  readonly descriptors: readonly number[];
  readonly openFilesLimit: bigint | undefined;
  /**
   * Children from before our start: `tail … & exec watchdog`, `<(producer)`. Never part of the job.
   */
  readonly inbornChildren: readonly number[];
  readonly hasTerminal: boolean;
}

const SIG_SETMASK = 2;
export const SIGSET_BYTES = 128;

/** Reads everything. Must run before the first signal handler, pipe, file or thread of ours. */
export function readInheritance(): Inheritance {
  try {
    return readAll();
  } catch (cause) {
    // EMFILE, ENFILE, ENOMEM: not even our own surroundings can be read.
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new WatchdogError("spawn.failed", `the system refuses its services: ${text}`, {
      hint: "ulimit -a",
      cause,
    });
  }
}

function readAll(): Inheritance {
  const descriptors = listDescriptors();
  return {
    words: splitAtNul(readFileSync("/proc/self/cmdline")).slice(1),
    environment: splitAtNul(readFileSync("/proc/self/environ")),
    ignoredSignals: readSignalMasks("self")?.ignored ?? 0n,
    blockedSignals: takeSignalMask(),
    descriptors,
    openFilesLimit: readOpenFilesLimit(process.ppid),
    inbornChildren: readChildren("self"),
    hasTerminal: canOpenTerminal(),
  };
}

/** Every entry ends with NUL; an empty last argument is an argument. */
export function splitAtNul(bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, start)) {
    parts.push(bytes.subarray(start, end));
    start = end + 1;
  }
  if (start < bytes.length) parts.push(bytes.subarray(start));
  return parts;
}

/**
 * Unblocks everything for us and remembers what was blocked, because the command must get it back.
 */
function takeSignalMask(): Uint8Array | undefined {
  const before = new Uint8Array(SIGSET_BYTES);
  try {
    libc().pthread_sigmask(SIG_SETMASK, new Uint8Array(SIGSET_BYTES), before);
    return before;
  } catch {
    return undefined; // os.no-ffi: the degraded way of starting keeps the mask as it is
  }
}

/** Whether `/dev/tty` can be opened: the terminal of the session, whatever standard input is. */
export function canOpenTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", fsConstants.O_RDWR | fsConstants.O_NOCTTY));
    return true;
  } catch {
    return false; // ENXIO: no controlling terminal. EIO: it was hung up.
  }
}

/**
 * The caller's descriptors above 2. Bun has opened two of its own before us, an epoll and the
 * eventfd that it watches; they are told from a caller's by that link (`tfd:` in fdinfo), not by
 * their kind.
 */
function listDescriptors(): number[] {
  const open = readdirSync("/proc/self/fd").map(Number);
  const kinds = new Map<number, string>();
  for (const fd of open) {
    const kind = fd > 2 ? readDescriptor(fd) : undefined;
    if (kind !== undefined) kinds.set(fd, kind);
  }
  const ours = findOwnPair(kinds);
  return [...kinds.keys()].filter((fd) => !ours.has(fd)).sort((a, b) => a - b);
}

function readDescriptor(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return undefined; // ENOENT: it was the descriptor of this very listing
  }
}

/**
 * Bun's loop: an epoll that watches an event descriptor, and whose note beside it
 * (epoll_event.data, `data:` in fdinfo) is an address in this very process. A caller's was noted in
 * another one.
 */
function findOwnPair(kinds: ReadonlyMap<number, string>): Set<number> {
  const polls = [...kinds].filter(([, kind]) => kind === "anon_inode:[eventpoll]");
  const pairs = polls.flatMap(([poll]) => {
    const info = readFileSync(`/proc/self/fdinfo/${poll}`, "latin1");
    const watched = /^tfd:\s*(\d+)\s+events:\s*[0-9a-f]+\s+data:\s*([0-9a-f]+)/m.exec(info);
    const event = Number(watched?.[1]);
    const isEvent = kinds.get(event) === "anon_inode:[eventfd]";
    return isEvent ? [{ poll, event, note: BigInt(`0x${watched?.[2] ?? "0"}`) }] : [];
  });
  const own = pairs.length < 2 ? pairs[0] : pairs.find((pair) => isMapped(pair.note));
  return new Set(own === undefined ? [] : [own.poll, own.event]);
}

/** Whether an address (its upper 16 bits are a tag) lies in our memory. */
function isMapped(address: bigint): boolean {
  const plain = address & 0xffff_ffff_ffffn;
  return readFileSync("/proc/self/maps", "latin1")
    .split("\n")
    .some((line) => {
      const range = /^([0-9a-f]+)-([0-9a-f]+) /.exec(line);
      if (range === null) return false;
      return BigInt(`0x${range[1]}`) <= plain && plain < BigInt(`0x${range[2]}`);
    });
}
