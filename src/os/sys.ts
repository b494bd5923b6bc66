/**
 * System calls as plain functions: a result of 0 or more is success, a negative one is `-errno`,
 * exactly as the kernel returns it. No retries, no policy: whoever calls decides what EINTR or
 * EAGAIN means.
 */
import { coldLibc, errno, libc, prepareErrno } from "./libc.ts";

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

export const POLLIN = 1;
export const POLLOUT = 4;
export const POLLERR = 8;

export const LOCK_EX = 2;
export const LOCK_NB = 4;

export const O_NONBLOCK = 0o4000;
export const O_CLOEXEC = 0o2000000;
export const O_NOFOLLOW = 0o400000;

export const F_SETFD = 2;
export const F_GETFL = 3;
export const F_SETFL = 4;
export const FD_CLOEXEC = 1;

const FIONREAD = 0x541b;
const EFD_CLOEXEC = O_CLOEXEC;
const KCMP_FILE = 0;

/**
 * Numbers of calls that have no wrapper in every C library; the newer ones are the same on x64 and
 * arm64.
 */
const CALL = {
  kcmp: process.arch === "arm64" ? 272 : 312,
  pidfd_send_signal: 424,
  pidfd_open: 434,
} as const;

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
  flock(fd: number, operation: number): number {
    return result(coldLibc().flock(fd, operation));
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
  /**
   * 0: both descriptors are the same open file; above 0: they differ; negative: cannot be told
   * (ENOSYS, EPERM).
   */
  compareFiles(one: number, other: number): number {
    const pid = process.pid;
    return result(Number(coldLibc().syscall(CALL.kcmp, pid, pid, KCMP_FILE, one, other, 0)));
  },
};

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
  20: "not a directory (ENOTDIR)",
  21: "is a directory (EISDIR)",
  24: "too many open files (EMFILE)",
  26: "text file busy (ETXTBSY)",
  27: "file too large (EFBIG)",
  28: "no space left on device (ENOSPC)",
  30: "read-only file system (EROFS)",
  32: "broken pipe (EPIPE)",
  36: "file name too long (ENAMETOOLONG)",
  40: "too many levels of symbolic links (ELOOP)",
};

function prepareErrnoQuietly(): void {
  try {
    prepareErrno();
  } catch {
    // os.no-ffi: every call of `sys` will say so again where somebody can act on it.
  }
}
