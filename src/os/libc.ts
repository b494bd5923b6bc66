/**
 * The C library by FFI: which functions, and nothing about what they are used for.
 *
 * The library is opened by the absolute path under which the process already has it mapped: a bare
 * name that the loader cannot find would be looked for in the working directory, and a hostile file
 * there would be loaded. Opened in groups, because every symbol costs start time: `hot` is what
 * each run needs, `network` what a probe does, `cold` the rest.
 *
 * Not to be had under W^X (systemd MemoryDenyWriteExecute), without JIT, or with little address
 * space (`ulimit -v`): then `libc()` throws "os.no-ffi" and a run goes on degraded.
 */
import { dlopen, type FFIFunction, FFIType, type Pointer, toArrayBuffer } from "bun:ffi";
import { readFileSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";

const HOT = {
  __errno_location: { args: [], returns: "ptr" },
  _exit: { args: ["i32"], returns: "void" },
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  fcntl: { args: ["i32", "i32", "u64"], returns: "i32" },
  getrlimit: { args: ["i32", "ptr"], returns: "i32" },
  isatty: { args: ["i32"], returns: "i32" },
  kill: { args: ["i32", "i32"], returns: "i32" },
  pipe2: { args: ["ptr", "i32"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  posix_spawn: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  posix_spawnp: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  posix_spawnattr_init: { args: ["ptr"], returns: "i32" },
  posix_spawnattr_setflags: { args: ["ptr", "i16"], returns: "i32" },
  posix_spawnattr_setpgroup: { args: ["ptr", "i32"], returns: "i32" },
  posix_spawnattr_setsigdefault: { args: ["ptr", "ptr"], returns: "i32" },
  posix_spawnattr_setsigmask: { args: ["ptr", "ptr"], returns: "i32" },
  posix_spawn_file_actions_init: { args: ["ptr"], returns: "i32" },
  posix_spawn_file_actions_adddup2: { args: ["ptr", "i32", "i32"], returns: "i32" },
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  pthread_sigmask: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  raise: { args: ["i32"], returns: "i32" },
  read: { args: ["i32", "ptr", "u64"], returns: FFIType.i64_fast },
  setrlimit: { args: ["i32", "ptr"], returns: "i32" },
  signal: { args: ["i32", "ptr"], returns: "ptr" },
  wait4: { args: ["i32", "ptr", "i32", "ptr"], returns: "i32" },
  write: { args: ["i32", "ptr", "u64"], returns: FFIType.i64_fast },
} as const satisfies Record<string, FFIFunction>;

const COLD = {
  eventfd: { args: ["u32", "i32"], returns: "i32" },
  flock: { args: ["i32", "i32"], returns: "i32" },
  madvise: { args: ["u64", "u64", "i32"], returns: "i32" },
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  syscall: { args: ["i64", "i64", "i64", "i64", "i64", "i64", "i64"], returns: FFIType.i64_fast },
} as const satisfies Record<string, FFIFunction>;

const NETWORK = {
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
} as const satisfies Record<string, FFIFunction>;

/** glibc 2.29, musl 1.1.24. */
const CHANGE_DIRECTORY = {
  posix_spawn_file_actions_addchdir_np: { args: ["ptr", "ptr"], returns: "i32" },
} as const satisfies Record<string, FFIFunction>;

type Hot = ReturnType<typeof dlopen<typeof HOT>>["symbols"];
type Cold = ReturnType<typeof dlopen<typeof COLD>>["symbols"];

type Network = ReturnType<typeof dlopen<typeof NETWORK>>["symbols"];

let hot: Hot | undefined;
let cold: Cold | undefined;
let network: Network | undefined;
let errnoView: Int32Array | undefined;

/**
 * Functions that every run needs. Opens the library at the first call.
 * @throws WatchdogError "os.no-ffi" where code cannot be made executable
 */
export function libc(): Hot {
  hot ??= openLibrary(HOT);
  return hot;
}

/** Whether the C library can be called at all; a run goes on degraded where it cannot. */
export function findFfiTrouble(): WatchdogError | undefined {
  try {
    libc();
    return undefined;
  } catch (error) {
    if (error instanceof WatchdogError) return error;
    throw error;
  }
}

/** Functions that only some runs need. Same errors as `libc`. */
export function coldLibc(): Cold {
  cold ??= openLibrary(COLD);
  return cold;
}

/** Functions for connections of our own. Same errors as `libc`. */
export function networkLibc(): Network {
  network ??= openLibrary(NETWORK);
  return network;
}

/** Undefined: the library is too old to start a process in another directory. */
export function changeDirectoryLibc() {
  try {
    return openLibrary(CHANGE_DIRECTORY);
  } catch {
    return undefined; // os.no-ffi: no such symbol
  }
}

/**
 * The error number of the call made just before, on this thread. Anything between the two makes it
 * wrong.
 */
export function errno(): number {
  errnoView ??= viewErrno(libc().__errno_location());
  return errnoView[0] ?? 0;
}

/**
 * Makes `errno()` safe to call right after a failing call: the view exists before the first one.
 */
export function prepareErrno(): void {
  errno();
}

function viewErrno(address: Pointer | bigint | null): Int32Array {
  if (address === null) throw new WatchdogError("os.no-ffi", "the C library has no errno");
  return new Int32Array(toArrayBuffer(address as Pointer, 0, 4));
}

function openLibrary<T extends Record<string, FFIFunction>>(symbols: T) {
  const path = findLibrary();
  if (path === undefined) {
    throw new WatchdogError("os.no-ffi", "no C library found in /proc/self/maps");
  }
  try {
    return dlopen(path, symbols).symbols;
  } catch (cause) {
    throw new WatchdogError("os.no-ffi", `the C library cannot be called: ${describe(cause)}`, {
      hint: "look for MemoryDenyWriteExecute in the unit, BUN_JSC_useJIT, or ulimit -v",
      cause,
    });
  }
}

function findLibrary(): string | undefined {
  const maps = readFileSync("/proc/self/maps", "latin1");
  return /\/\S*\/(?:libc\.so\.6|libc-[\d.]+\.so|ld-musl-\S+\.so\.1|libc\.musl-\S+\.so\.1)$/m.exec(
    maps,
  )?.[0];
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
