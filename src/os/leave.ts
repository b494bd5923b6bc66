/**
 * The only ways out of the process. Never `process.exit`: Bun's clean-up writes the terminal
 * settings of its start back, also from the background, and would undo the command's `stty -echo`
 * or break a full-screen program.
 */
import { nameSignal } from "../core/signals.ts";
import { libc } from "./libc.ts";

const RLIMIT_CORE = 4;

/**
 * Ends at once with this status; nothing runs after it, no buffer is flushed. Without FFI: Bun's
 * own way.
 */
export function leaveWithStatus(code: number): never {
  try {
    libc()._exit(code);
  } catch {
    process.exitCode = code; // os.no-ffi: the documented degraded way
  }
  return process.reallyExit(code) as never;
}

/**
 * Dies of the signal that ended the command, so that our own parent sees exactly what it would have
 * seen; without a core file of watchdog's. As process 1 the kernel delivers no default action:
 * there 128 + N.
 */
export function leaveBySignal(signal: number): never {
  if (process.pid !== 1) {
    try {
      libc().setrlimit(RLIMIT_CORE, new BigUint64Array(2));
      libc().signal(signal, null);
      unblockAll();
      libc().kill(process.pid, signal);
    } catch {
      dieWithoutFfi(signal);
    }
  }
  return leaveWithStatus(128 + signal);
}

/**
 * os.no-ffi: a listener that is taken away leaves the default action behind (measured for every
 * named signal).
 */
function dieWithoutFfi(signal: number): void {
  const name = `SIG${nameSignal(signal)}` as NodeJS.Signals;
  try {
    process.on(name, () => undefined);
    process.removeAllListeners(name);
  } catch {
    // KILL and STOP take no listener, and need none.
  }
  process.kill(process.pid, signal);
}

/** A signal that is blocked would not kill us. */
function unblockAll(): void {
  const SIG_SETMASK = 2;
  libc().pthread_sigmask(SIG_SETMASK, new Uint8Array(128), null);
}

/**
 * Sends this thread a signal whose default action is in force: stops here, before the call returns,
 * until somebody continues us. (By kill(2) another thread might take it, and this one would go on
 * for a moment.)
 */
export function stopBySignal(signal: number): void {
  libc().raise(signal);
}
