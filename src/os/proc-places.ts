/**
 * Where a process works: its working directory and the files that it has open for writing (proc(5),
 * `cwd`, `fd`, `fdinfo`). What is gone and what may not be read are no places; nothing is decided.
 *
 * Always: nothing is opened but files of /proc. An error of our own (EMFILE, ENFILE, ENOMEM) is
 * thrown: a part of the answer would be a wrong one. Clock: none.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** The access mode of fcntl(2); 0 is O_RDONLY. */
const O_ACCMODE = 0o3;
const OUT_OF_ROOM: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

/** As the kernel names it for us, with ` (deleted)` behind a directory that is gone. */
export function readWorkingDirectory(pid: number): string | undefined {
  return unlessRefused(() => readlinkSync(`/proc/${pid}/cwd`));
}

/** The mount namespace of a process, to be compared with ours. */
export function readMountNamespace(pid: number | "self"): string | undefined {
  return unlessRefused(() => readlinkSync(`/proc/${pid}/ns/mnt`));
}

export interface OpenFile {
  readonly fd: number;
  readonly path: string;
}

/** Descriptors that lead to something with a path; none where the process may not be looked at. */
export function listOpenFiles(pid: number): OpenFile[] {
  const names = unlessRefused(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
  return names.flatMap((name) => {
    const path = unlessRefused(() => readlinkSync(`/proc/${pid}/fd/${name}`));
    return path?.startsWith("/") === true ? [{ fd: Number(name), path }] : [];
  });
}

/** `/proc/PID/fdinfo/FD`: flags, and the locks of this open file. */
export function readDescriptorFacts(pid: number, fd: number): string | undefined {
  return unlessRefused(() => readFileSync(`/proc/${pid}/fdinfo/${fd}`, "latin1"));
}

/** A regular file that can be written through this descriptor. */
export function isWritableFile(pid: number, fd: number): boolean {
  const flags = /^flags:\s*([0-7]+)$/m.exec(readDescriptorFacts(pid, fd) ?? "")?.[1];
  if (flags === undefined || (Number.parseInt(flags, 8) & O_ACCMODE) === 0) return false;
  return unlessRefused(() => statSync(`/proc/${pid}/fd/${fd}`).isFile()) ?? false;
}

/** `device:inode`; undefined: nothing there that we may see. Waits for a file server that hangs. */
export function identifyPath(path: string): string | undefined {
  const found = unlessRefused(() => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}

/** ENOENT, ESRCH: gone. EACCES, EPERM: not ours to see. ESTALE, EIO: a file server is. */
function unlessRefused<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (OUT_OF_ROOM.has((error as NodeJS.ErrnoException).code)) throw error;
    return undefined; // as above
  }
}
