/**
 * The least that a wrapper on Bun can do: start the command by posix_spawnp, wait for it, leave
 * with its status. What `watchdog run` costs above this is watchdog's own. Compiled with the same
 * flags. Refuses everything else: no signal, no terminal, no environment bytes.
 */
import { dlopen, ptr } from "bun:ffi";
import type { Pointer } from "bun:ffi";
import { readFileSync } from "node:fs";

const { symbols: libc } = dlopen("libc.so.6", {
  posix_spawnp: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  wait4: { args: ["i32", "ptr", "i32", "ptr"], returns: "i32" },
  _exit: { args: ["i32"], returns: "void" },
});

/** Keeps the bytes alive that native code is given the addresses of. */
const kept: Uint8Array[] = [];

/**
 * A NULL-terminated vector of C strings from a file of `/proc`, whose strings end in NUL already.
 */
function readVector(path: string, skipped: number): BigUint64Array {
  const bytes = new Uint8Array(readFileSync(path));
  kept.push(bytes);
  const addresses: bigint[] = [];
  let isStart = true;
  for (let at = 0; at < bytes.length; at += 1) {
    if (isStart) addresses.push(BigInt(ptr(bytes, at)));
    isStart = bytes[at] === 0;
  }
  return new BigUint64Array([...addresses.slice(skipped), 0n]);
}

const words = readVector("/proc/self/cmdline", 1);
const environment = readVector("/proc/self/environ", 0);
const pid = new Int32Array(1);
const status = new Int32Array(1);
const failed = libc.posix_spawnp(pid, Number(words[0]) as Pointer, null, null, words, environment);
if (failed === 0) libc.wait4(pid[0] ?? 0, status, 0, null);
libc._exit(failed === 0 ? ((status[0] ?? 0) >> 8) & 255 : 127);
