/**
 * The clocks (clock_gettime(2)). CLOCK_MONOTONIC measures every span: it stands still while the
 * machine is suspended, for the writer and the reader of an instant alike. BOOTTIME minus MONOTONIC
 * is the time spent suspended. The wall clock is for people and for `--not-after`.
 *
 * Without FFI the monotonic clock falls back to `performance.now()`: right for spans within this
 * process, not comparable with another one, and nothing stores it then.
 */
import type { MonotonicAt, WallAt } from "../core/time.ts";
import { injectedSuspendMs } from "./faults.ts";
import { libc } from "./libc.ts";

const CLOCK_MONOTONIC = 1;
const CLOCK_THREAD_CPUTIME_ID = 3;
const CLOCK_REALTIME_COARSE = 5;
const CLOCK_BOOTTIME = 7;
const BOOT_TICK_MS = 10;
const timespec = new BigInt64Array(2);
let hasFfi = true;

function readClock(id: number): number | undefined {
  if (!hasFfi) return undefined;
  try {
    libc().clock_gettime(id, timespec);
  } catch {
    hasFfi = false; // os.no-ffi: the fallback below is documented in the file's opening
    return undefined;
  }
  return Number(timespec[0] ?? 0n) * 1000 + Number(timespec[1] ?? 0n) / 1e6;
}

export function monotonicNow(): MonotonicAt {
  return (readClock(CLOCK_MONOTONIC) ?? performance.now()) as MonotonicAt;
}

export function wallNow(): WallAt {
  return (Date.now() + injectedSuspendMs()) as WallAt;
}

/** Milliseconds that this boot has spent suspended; 0 where it cannot be told. */
export function suspendedMs(): number {
  const boot = readClock(CLOCK_BOOTTIME);
  const monotonic = readClock(CLOCK_MONOTONIC);
  return boot === undefined || monotonic === undefined
    ? 0
    : Math.max(0, boot + injectedSuspendMs() - monotonic);
}

/**
 * CLOCK_BOOTTIME in ticks of 1/100 s, as the start times of proc(5) are counted, without an
 * injected suspend; 0 where it cannot be told.
 */
export function bootTicksNow(): number {
  return Math.floor((readClock(CLOCK_BOOTTIME) ?? 0) / BOOT_TICK_MS);
}

/** CPU time of the calling thread in milliseconds; that of a wall clock without FFI. */
export function threadCpuMs(): number {
  return readClock(CLOCK_THREAD_CPUTIME_ID) ?? performance.now();
}

/**
 * What a file system would write as the time of a change at this moment, in nanoseconds of the wall
 * clock: the kernel takes it from its last tick (inode_set_ctime_current, Linux). Undefined without
 * FFI.
 */
export function fileClockNow(): bigint | undefined {
  if (readClock(CLOCK_REALTIME_COARSE) === undefined) return undefined;
  return (timespec[0] ?? 0n) * 1_000_000_000n + (timespec[1] ?? 0n);
}

/** When this boot began, on today's wall clock; not to be had without FFI: then long ago. */
export function bootedAt(): WallAt {
  const boot = readClock(CLOCK_BOOTTIME);
  return (boot === undefined ? 0 : wallNow() - boot - injectedSuspendMs()) as WallAt;
}

/**
 * The next instant after `from` at which the local wall clock shows this time of the day.
 * Daylight saving: the calendar's answer (a time in the gap is the one right after it).
 */
export function nextWallTime(from: WallAt, hour: number, minute: number, second: number): WallAt {
  const date = new Date(from);
  date.setHours(hour, minute, second, 0);
  if (date.getTime() <= from) date.setDate(date.getDate() + 1);
  return date.getTime() as WallAt;
}
