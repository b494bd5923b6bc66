/**
 * System calls as plain functions: a result of 0 or more is success, a negative one is `-errno`,
 * exactly as the kernel returns it. No retries, no policy: whoever calls decides what EINTR or
 * EAGAIN means.
 */
import { ptr } from "bun:ffi";
import { coldLibc, errno, libc, networkLibc, prepareErrno } from "./libc.ts";

export const EPERM = 1;
export const ENOENT = 2;
export const ESRCH = 3;
export const EINTR = 4;
export const ENOEXEC = 8;
export const ECHILD = 10;
export const EAGAIN = 11;
export const EACCES = 13;
export const EEXIST = 17;
export const ENOTDIR = 20;
export const EINVAL = 22;
export const EPIPE = 32;
export const ENOSYS = 38;
export const ENOTEMPTY = 39;
export const ELOOP = 40;

export const POLLIN = 1;
export const POLLOUT = 4;
export const POLLERR = 8;
export const POLLHUP = 16;

export const LOCK_SH = 1;
export const LOCK_EX = 2;
export const LOCK_NB = 4;
export const LOCK_UN = 8;

export const O_NONBLOCK = 0o4000;
export const O_CLOEXEC = 0o2000000;
export const O_NOFOLLOW = 0o400000;

export const F_DUPFD_CLOEXEC = 1030;
export const F_SETFD = 2;
export const F_GETFL = 3;
export const F_SETFL = 4;
export const F_SETPIPE_SZ = 1031;
export const FD_CLOEXEC = 1;

const TCGETS = 0x5401;
const TCSETSW = 0x5403;
const TIOCGWINSZ = 0x5413;
const FIONREAD = 0x541b;
const EFD_CLOEXEC = O_CLOEXEC;
const KCMP_FILE = 0;
const SCHED_IDLE = 5;
const SOCK_STREAM = 1;
/** Of a `struct sockaddr_in6`, the longest of an address. */
const SOCKET_NAME_BYTES = 28;
const MFD_CLOEXEC = 1;
const MFD_NOEXEC_SEAL = 8;

/**
 * Numbers of calls that have no wrapper in every C library; the newer ones are the same on x64 and
 * arm64.
 */
const CALL = {
  gettid: process.arch === "arm64" ? 178 : 186,
  kcmp: process.arch === "arm64" ? 272 : 312,
  memfd_create: process.arch === "arm64" ? 279 : 319,
  pidfd_send_signal: 424,
  sched_setscheduler: process.arch === "arm64" ? 119 : 144,
  pidfd_open: 434,
} as const;

/** One `struct pollfd`: fd, then events and revents. */
const polled = new Int32Array(2);

prepareErrnoQuietly();

/** A negative errno from a C return value of -1. */
function result(value: number): number {
  return value === -1 ? -errno() : value;
}

export const sys = {
  read(fd: number, buffer: Uint8Array, length: number): number {
    return result(Number(libc().read(fd, buffer, length)));
  },
  write(fd: number, buffer: Uint8Array, length: number): number {
    return result(Number(libc().write(fd, buffer, length)));
  },
  close(fd: number): number {
    return result(libc().close(fd));
  },
  fcntl(fd: number, operation: number, argument: number): number {
    return result(libc().fcntl(fd, operation, argument));
  },
  /**
   * @param descriptors  pairs of [fd, events]; the answer's events are written into `ready` by
   * position
   */
  poll(
    descriptors: readonly (readonly [number, number])[],
    waitMs: number,
    ready: number[],
  ): number {
    const view = new DataView(new ArrayBuffer(descriptors.length * 8));
    descriptors.forEach(([fd, events], index) => {
      view.setInt32(index * 8, fd, true);
      view.setInt16(index * 8 + 4, events, true);
    });
    const bytes = new Uint8Array(view.buffer);
    const count = result(libc().poll(bytes, descriptors.length, waitMs));
    descriptors.forEach((_, index) => {
      ready[index] = view.getInt16(index * 8 + 6, true);
    });
    return count;
  },
  /** Whether something can be read, or an end or an error told, within `waitMs`. */
  pollReadable(fd: number, waitMs: number): number {
    polled[0] = fd;
    polled[1] = POLLIN;
    return result(libc().poll(polled, 1, waitMs));
  },
  isTerminal(fd: number): boolean {
    return libc().isatty(fd) === 1;
  },
  kill(pid: number, signal: number): number {
    return result(libc().kill(pid, signal));
  },
  /** A pipe, both ends close-on-exec. */
  pipe(flags: number = O_CLOEXEC): { readEnd: number; writeEnd: number } | number {
    const ends = new Int32Array(2);
    const outcome = result(libc().pipe2(ends, flags));
    if (outcome < 0) return outcome;
    return { readEnd: ends[0] ?? -1, writeEnd: ends[1] ?? -1 };
  },
  eventfd(flags: number = EFD_CLOEXEC): number {
    return result(coldLibc().eventfd(0, flags));
  },
  /**
   * A file that exists in memory only (memfd_create(2)), close-on-exec. Marked as never to be
   * executed, which some machines demand (vm.memfd_noexec) and kernels before 6.3 do not know.
   */
  memoryFile(name: string): number {
    const sealed = createMemoryFile(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return sealed === -EINVAL ? createMemoryFile(name, MFD_CLOEXEC) : sealed;
  },
  flock(fd: number, operation: number): number {
    return result(coldLibc().flock(fd, operation));
  },
  /** Of connections, non-blocking, close-on-exec. */
  streamSocket(family: number): number {
    return result(networkLibc().socket(family, SOCK_STREAM | O_NONBLOCK | O_CLOEXEC, 0));
  },
  /** @param address  a `struct sockaddr` */
  connect(fd: number, address: Uint8Array): number {
    return result(networkLibc().connect(fd, address, address.length));
  },
  /** Of both ends; undefined: it does not stand. */
  endsOfSocket(fd: number): { readonly own: Uint8Array; readonly other: Uint8Array } | undefined {
    const { getsockname, getpeername } = networkLibc();
    const [own, other] = [new Uint8Array(SOCKET_NAME_BYTES), new Uint8Array(SOCKET_NAME_BYTES)];
    const isKnown =
      getsockname(fd, own, Uint32Array.of(own.length)) === 0 &&
      getpeername(fd, other, Uint32Array.of(other.length)) === 0;
    return isKnown ? { own, other } : undefined;
  },
  /** @param into  a `struct termios` of the kernel */
  terminalSettings(fd: number, into: Uint8Array): number {
    return result(coldLibc().ioctl(fd, TCGETS, into));
  },
  /** In force once all that was written is out. */
  setTerminalSettings(fd: number, from: Uint8Array): number {
    return result(coldLibc().ioctl(fd, TCSETSW, from));
  },
  /** @param into  a `struct winsize`: rows and columns first */
  windowSize(fd: number, into: Uint16Array): number {
    return result(coldLibc().ioctl(fd, TIOCGWINSZ, into));
  },
  /** Bytes that wait in a pipe. */
  readableBytes(fd: number): number {
    const count = new Int32Array(1);
    const outcome = result(coldLibc().ioctl(fd, FIONREAD, count));
    return outcome < 0 ? outcome : (count[0] ?? 0);
  },
  pidfdOpen(pid: number): number {
    return result(Number(coldLibc().syscall(CALL.pidfd_open, pid, 0, 0, 0, 0, 0)));
  },
  pidfdSendSignal(pidfd: number, signal: number): number {
    return result(Number(coldLibc().syscall(CALL.pidfd_send_signal, pidfd, signal, 0, 0, 0, 0)));
  },
  /** Of the calling thread. */
  threadId(): number {
    return result(Number(coldLibc().syscall(CALL.gettid, 0, 0, 0, 0, 0, 0)));
  },
  /** From now on this thread runs only where nobody else wants the CPU (sched(7), SCHED_IDLE). */
  makeIdle(threadId: number): number {
    const priority = ptr(new Int32Array(1));
    const { syscall } = coldLibc();
    return result(
      Number(syscall(CALL.sched_setscheduler, threadId, SCHED_IDLE, priority, 0, 0, 0)),
    );
  },
  /**
   * 0: both descriptors are the same open file; above 0: they differ; negative: cannot be told
   * (ENOSYS, EPERM).
   */
  compareFiles(one: number, other: number): number {
    const pid = process.pid;
    return result(Number(coldLibc().syscall(CALL.kcmp, pid, pid, KCMP_FILE, one, other, 0)));
  },
};

function createMemoryFile(name: string, flags: number): number {
  const bytes = new TextEncoder().encode(`${name}\0`);
  const { syscall } = coldLibc();
  return result(Number(syscall(CALL.memfd_create, ptr(bytes), flags, 0, 0, 0, 0)));
}

/** The name of an error number as `strerror` readers know it, for messages. */
export function nameErrno(number: number): string {
  return ERROR_NAMES[Math.abs(number)] ?? `errno ${Math.abs(number)}`;
}

const ERROR_NAMES: Record<number, string> = {
  1: "operation not permitted (EPERM)",
  2: "no such file or directory (ENOENT)",
  3: "no such process (ESRCH)",
  4: "interrupted (EINTR)",
  5: "input/output error (EIO)",
  7: "argument list too long (E2BIG)",
  8: "not an executable format (ENOEXEC)",
  9: "bad file descriptor (EBADF)",
  11: "try again (EAGAIN)",
  12: "out of memory (ENOMEM)",
  13: "permission denied (EACCES)",
  16: "device or resource busy (EBUSY)",
  20: "not a directory (ENOTDIR)",
  21: "is a directory (EISDIR)",
  24: "too many open files (EMFILE)",
  26: "text file busy (ETXTBSY)",
  27: "file too large (EFBIG)",
  28: "no space left on device (ENOSPC)",
  30: "read-only file system (EROFS)",
  32: "broken pipe (EPIPE)",
  36: "file name too long (ENAMETOOLONG)",
  37: "no locks available (ENOLCK)",
  39: "directory not empty (ENOTEMPTY)",
  40: "too many levels of symbolic links (ELOOP)",
  122: "disk quota exceeded (EDQUOT)",
};

function prepareErrnoQuietly(): void {
  try {
    prepareErrno();
  } catch {
    // os.no-ffi: every call of `sys` will say so again where somebody can act on it.
  }
}
