/**
 * A session for this test process alone (setsid(2)). A command that was started and not yet written
 * down when its watchdog was killed is looked for by its session: the commands of other test files,
 * which run beside this one, must not come into question. At a terminal it is no more one of those
 * to whom the terminal belongs, as in continuous integration.
 */
import { dlopen } from "bun:ffi";
import { readFileSync } from "node:fs";

/** As a member of another group first: who leads one cannot begin a session. */
export function takeOwnSession(): void {
  const maps = readFileSync("/proc/self/maps", "utf8");
  const library = /\/\S*\/(?:libc\.so\.6|libc-[\d.]+\.so|\S*musl-\S+\.so\.1)$/m.exec(maps)?.[0];
  if (library === undefined) throw new Error("no C library in /proc/self/maps");
  const number = { args: ["i32"], returns: "i32" } as const;
  const { symbols } = dlopen(library, {
    getpgid: number,
    setpgid: { args: ["i32", "i32"], returns: "i32" },
    setsid: { args: [], returns: "i32" },
    getsid: number,
  });
  if (symbols.getsid(0) === process.pid) return;
  symbols.setpgid(0, symbols.getpgid(process.ppid));
  symbols.setsid();
  if (symbols.getsid(0) !== process.pid) throw new Error("no session of its own to be had");
}
