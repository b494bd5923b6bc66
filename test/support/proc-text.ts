/**
 * Words and environment of a process, as the kernel shows them. A process inside exec(2) shows
 * neither for a moment, under load for milliseconds: whoever looks then takes it for gone.
 */
import { readFileSync, readlinkSync } from "node:fs";

const MOST_LOOKS = 200;

/**
 * NUL behind each entry, as proc(5) has it.
 * @throws ENOENT, ESRCH: it is gone; EACCES: it is of another user
 */
export function readProcText(pid: number | string, name: "cmdline" | "environ"): string {
  for (let look = 1; ; look += 1) {
    const text = readFileSync(`/proc/${pid}/${name}`, "latin1");
    if (text !== "" || look >= MOST_LOOKS || !isInExec(pid)) return text;
    Bun.sleepSync(1);
  }
}

/** It has a program and no words. A zombie or a thread of the kernel has no program either. */
function isInExec(pid: number | string): boolean {
  try {
    readlinkSync(`/proc/${pid}/exe`);
    return readFileSync(`/proc/${pid}/cmdline`, "latin1") === "";
  } catch {
    return false; // ENOENT; EACCES: of another user
  }
}
