/**
 * Opening and reading the small files of a lease: regular files of our own user, or of those who
 * share the directory (os/state-sharing.ts), reached by no link and by nothing that could hang
 * (FIFO, device). Knows no format.
 *
 * Guarantees: a file that is a link, no regular file or somebody else's is never read or written;
 * no open blocks. Non-guarantees: the directories above it; whoever may write there may replace the
 * file. Clock: none. Crash behaviour: nothing is written here, but an empty file where `O_CREAT`
 * was asked for.
 */
import { WatchdogError } from "../../core/errors.ts";
import { fileModeAt, refusalOfOwner, sharingAround } from "../../os/state-sharing.ts";
import { pauseThread } from "../../os/timers.ts";
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** In a shared directory a file may be made at this moment, and not be opened to the group yet. */
const MOST_OPENS = 5;
const PAUSE_MS = 2;

/** Why a file cannot be used, for a union of the caller. */
export type FileTrouble =
  | { readonly kind: "missing" }
  /** A link, no regular file, another owner: a person must act. */
  | { readonly kind: "refused"; readonly reason: string }
  /** EACCES, ENOSPC, EMFILE …: the system says no. */
  | { readonly kind: "unusable"; readonly reason: string; readonly code: string };

export type OpenedFile =
  { readonly kind: "open"; readonly fd: number; readonly found: BigIntStats } | FileTrouble;

/**
 * Opens with O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK (open(2); the first is set by `fs` itself).
 * @param flags  access mode, O_CREAT; a file that is made gets the mode of its place, less umask
 * @throws WatchdogError "lease.unusable" where this process has no room to open anything
 */
export function openOwnFile(path: string, flags: number): OpenedFile {
  let fd: number;
  try {
    fd = openPatiently(path, flags | O_NOFOLLOW | O_NONBLOCK);
  } catch (cause) {
    return troubleOf(cause);
  }
  try {
    const found = fstatSync(fd, { bigint: true });
    const reason = refusalOf(path, found);
    if (reason === undefined) return { kind: "open", fd, found };
    closeSync(fd);
    return { kind: "refused", reason };
  } catch (cause) {
    closeSync(fd);
    return troubleOf(cause);
  }
}

function openPatiently(path: string, flags: number): number {
  const mode = (flags & O_CREAT) === 0 ? 0 : fileModeAt(path);
  for (let opens = 1; ; opens += 1) {
    try {
      return openSync(path, flags, mode);
    } catch (cause) {
      const isShared = codeOf(cause) === "EACCES" && sharingAround(path).gid !== undefined;
      if (!isShared || opens >= MOST_OPENS) throw cause;
    }
    pauseThread(PAUSE_MS);
  }
}

/** Error codes of open(2) that tell what kind of thing stands in the place of the file. */
const WRONG_KINDS: Readonly<Record<string, string>> = {
  ELOOP: "it is a symbolic link",
  EISDIR: "it is a directory",
  ENOTDIR: "what is above it is not a directory",
  ENXIO: "it is not a regular file",
};

function troubleOf(cause: unknown): FileTrouble {
  const code = codeOf(cause);
  if (code === "ENOENT") return { kind: "missing" };
  const wrongKind = WRONG_KINDS[code];
  if (wrongKind !== undefined) return { kind: "refused", reason: wrongKind };
  // It is we who have no room to look: that says nothing about the file.
  if (isOutOfRoom(cause)) throw new WatchdogError("lease.unusable", textOf(cause), NO_ROOM_HINT);
  return { kind: "unusable", code, reason: textOf(cause) };
}

const NO_ROOM_HINT = { hint: "ulimit -n" };

/** This process or the machine has no descriptor or memory left for a look. */
export function isOutOfRoom(cause: unknown): boolean {
  return ["EMFILE", "ENFILE", "ENOMEM"].includes(codeOf(cause));
}

function refusalOf(path: string, found: BigIntStats): string | undefined {
  return found.isFile() ? refusalOfOwner(path, found) : "it is not a regular file";
}

/**
 * The bytes of a file.
 * @param limitBytes  a longer file is refused
 */
export function readOwnFile(
  path: string,
  limitBytes: number,
): { readonly kind: "read"; readonly bytes: Uint8Array } | FileTrouble {
  const opened = openOwnFile(path, O_RDONLY);
  if (opened.kind !== "open") return opened;
  try {
    const bytes = readUpTo(opened.fd, limitBytes + 1);
    if (bytes.length <= limitBytes) return { kind: "read", bytes };
    return { kind: "refused", reason: `it is longer than ${limitBytes} bytes` };
  } catch (cause) {
    return troubleOf(cause);
  } finally {
    closeSync(opened.fd);
  }
}

function readUpTo(fd: number, limitBytes: number): Uint8Array {
  const bytes = new Uint8Array(limitBytes);
  let length = 0;
  while (length < limitBytes) {
    const count = readSync(fd, bytes, length, limitBytes - length, length);
    if (count === 0) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

/** `device:inode`: which file it is, however it is reached (stat(2)). */
export function nameInode(found: BigIntStats): string {
  return `${found.dev}:${found.ino}`;
}

/** The code of a system error (`ENOSPC`), or "unknown". */
export function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
}

export function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
