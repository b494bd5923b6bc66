/**
 * Starts this very program anew in this very process: same pid, same words, same environment, same
 * descriptors but those that are closed on exec (execve(2)). For what goes on for ever: memory that
 * the runtime does not give back is the kernel's again. Decides nothing.
 *
 * Guarantees: the program is the one that runs, also where its file was replaced meanwhile.
 * Non-guarantees: handlers of signals; threads of ours end with it. State after a crash: none.
 */
import { ptr } from "bun:ffi";
import { readFileSync } from "node:fs";
import { splitAtNul } from "./inheritance.ts";
import { coldLibc } from "./libc.ts";

const OURSELVES = "/proc/self/exe";
/** syscalls(2): it stands in no table of the C library that could be asked. */
const EXECVE = process.arch === "arm64" ? 221 : 59;

/** Comes back only where it was not to be had. */
export function renewProcess(): void {
  const kept: Uint8Array[] = [];
  const program = terminate(Buffer.from(OURSELVES), kept);
  const words = pointersTo(splitAtNul(readFileSync("/proc/self/cmdline")), kept);
  const environment = pointersTo(splitAtNul(readFileSync("/proc/self/environ")), kept);
  coldLibc().syscall(EXECVE, ptr(program), ptr(words), ptr(environment), 0, 0, 0);
}

function pointersTo(strings: readonly Uint8Array[], kept: Uint8Array[]): BigUint64Array {
  const addresses = new BigUint64Array(strings.length + 1);
  for (const [index, bytes] of strings.entries()) {
    addresses[index] = BigInt(ptr(terminate(bytes, kept)));
  }
  return addresses;
}

/** As C wants it, and not collected meanwhile. */
function terminate(bytes: Uint8Array, kept: Uint8Array[]): Uint8Array {
  const terminated = new Uint8Array(bytes.length + 1);
  terminated.set(bytes);
  kept.push(terminated);
  return terminated;
}
