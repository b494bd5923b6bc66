/** What this process has open; the runtime opens and closes files of its own beside that. */
import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";

/** What the open descriptors of this process lead to, with `(deleted)` behind what has no name. */
export function openTargets(): string[] {
  return readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ""; // ENOENT: the one that listed them
    }
  });
}

/** Those that lead to something at or below a place. */
export function openBelow(place: string): string[] {
  return openTargets().filter((target) => target.startsWith(place));
}

/** How many of them lead to files that the tests of this process have made. */
export function countOpen(): number {
  return openBelow(`${realpathSync(tmpdir())}/`).length;
}
