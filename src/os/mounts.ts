/**
 * On which mount a path lies: kind and options, by /proc/self/mountinfo (proc(5)). Reads only; what
 * cannot be told is undefined. Clock: none. State after a crash: none.
 */
import { readFileSync, realpathSync } from "node:fs";

export interface Mount {
  readonly path: string;
  /** `ext4`, `tmpfs`, `nfs4`. */
  readonly fileSystem: string;
  /** Those of the mount and of its file system: `ro`, `hidepid=invisible`. */
  readonly options: readonly string[];
}

/** The mount that a path which is there lies on; of several at one place the last one is seen. */
export function findMount(path: string): Mount | undefined {
  try {
    const real = realpathSync(path);
    const around = readMounts().filter((mount) => isBelow(real, mount.path));
    const longest = Math.max(...around.map((mount) => mount.path.length));
    return around.findLast((mount) => mount.path.length === longest);
  } catch {
    return undefined; // ENOENT, EACCES: neither the path nor /proc can be read
  }
}

/**
 * The number of the mount that an open file lies on, as statx(2) tells it since Linux 5.8, by
 * /proc/self/fdinfo (since 3.15); undefined: it cannot be told.
 */
export function readMountNumber(fd: number): number | undefined {
  try {
    const number = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
    return number === undefined ? undefined : Number(number);
  } catch {
    return undefined; // ENOENT: no such descriptor, or no /proc
  }
}

function isBelow(path: string, mount: string): boolean {
  return mount === "/" || path === mount || path.startsWith(`${mount}/`);
}

function readMounts(): Mount[] {
  return readFileSync("/proc/self/mountinfo", "utf8").split("\n").flatMap(parseMount);
}

/** `36 35 98:0 /root /mount options optional… - type source options`. */
function parseMount(line: string): Mount[] {
  const [head = "", tail = ""] = line.split(" - ", 2);
  const [, , , , path, options = ""] = head.split(" ");
  const [fileSystem, , ofFileSystem = ""] = tail.split(" ");
  if (path === undefined || fileSystem === undefined) return [];
  const all = [...options.split(","), ...ofFileSystem.split(",")];
  return [{ path: unescape(path), fileSystem, options: all }];
}

/** Blanks, tabs, line ends and backslashes stand as `\040` (proc(5)). */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
