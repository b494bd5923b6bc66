/**
 * Gives back what the start has left in memory: the pages of the program's own code. They are clean
 * and come from the file, so the kernel reads them again where they are needed (madvise(2),
 * MADV_DONTNEED); what is needed is a small part of what the start has touched.
 *
 * Only mappings that are executable and not writable: nothing was ever written there, so nothing
 * can be lost. Clock: none. State after a crash: none.
 */
import { readFileSync } from "node:fs";
import { coldLibc } from "./libc.ts";
import { readProgram } from "./proc.ts";

const MADV_DONTNEED = 4;
const CODE = /^([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ \S+\s+(\/.*)$/;

/** @throws WatchdogError "os.no-ffi"; the error of reading /proc */
export function releaseProgramPages(): void {
  const program = readProgram("self");
  for (const line of readFileSync("/proc/self/maps", "utf8").split("\n")) {
    const [, from, to, path] = CODE.exec(line) ?? [];
    if (from === undefined || to === undefined || path?.replace(/ \(deleted\)$/, "") !== program) {
      continue;
    }
    const length = BigInt(`0x${to}`) - BigInt(`0x${from}`);
    coldLibc().madvise(BigInt(`0x${from}`), length, MADV_DONTNEED);
  }
}
