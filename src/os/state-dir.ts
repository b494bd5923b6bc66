/**
 * Where the state lives, and whether it may be trusted: absolute, a directory of our own, no link,
 * nobody else may write into it, on a local file system. Decides nothing about what is stored
 * there.
 *
 * The default depends on the user alone, whatever HOME and XDG say: cron's and the shell's differ,
 * and two directories would exclude nobody. State after a crash: a directory that is empty.
 */
import { chmodSync, lstatSync, mkdirSync, readFileSync, statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { WatchdogError } from "../core/errors.ts";

const OTHERS_MAY_WRITE = 0o022;
const PRIVATE_DIRECTORY = 0o700;

/**
 * Magic numbers of statfs(2) for file systems whose locks and renames are not this kernel's alone.
 */
const REMOTE_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0x6969: "NFS",
  0xff534d42: "SMB",
  0xfe534d42: "SMB",
  0x517b: "SMB",
  0x65735546: "FUSE",
  0x01021997: "9p",
  0x5346414f: "AFS",
  0x00c36400: "Ceph",
};

/** The absolute path of the state directory; nothing is created or checked. */
export function resolveStateDirectory(asked: string | undefined): string {
  if (asked !== undefined) return resolveAsked(asked);
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) return "/var/lib/watchdog";
  const home = findHome(uid);
  return home !== undefined && isLocalDirectory(home)
    ? `${home}/.local/state/watchdog`
    : `/var/tmp/watchdog-${uid}`;
}

/** A relative path needs the working directory, and that must have a name that text can hold. */
function resolveAsked(asked: string): string {
  const path = resolve(asked);
  if (!path.includes("\ufffd")) return path;
  throw refuse(asked, "the name of the working directory is not UTF-8, expected an absolute path");
}

/** The home of the password database (passwd(5)); never HOME. */
function findHome(uid: number): string | undefined {
  try {
    for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
      const fields = line.split(":");
      if (fields[2] === String(uid) && fields[5]?.startsWith("/")) return fields[5];
    }
  } catch {
    return undefined; // ENOENT, EACCES: no entry can be had; the place in /var/tmp serves
  }
  return undefined;
}

function isLocalDirectory(path: string): boolean {
  try {
    return lstatSync(path).isDirectory() && nameRemoteFileSystem(path) === undefined;
  } catch {
    return false; // ENOENT, EACCES: a home that is not there is on no local file system
  }
}

function nameRemoteFileSystem(path: string): string | undefined {
  return REMOTE_FILE_SYSTEMS[statfsSync(path).type >>> 0];
}

/**
 * Checks the directory, and creates it (0700) if it is not there.
 *
 * @throws WatchdogError "state.refused" where a person must change something (78): a link, no
 *   directory, somebody
 *   else's, writable by others, not on a local file system
 * @throws WatchdogError "state.unusable" where the system says no (125): EACCES, ENOSPC, EROFS …
 */
export function openStateDirectory(path: string): void {
  const found = inspect(path);
  if (found === undefined) return createStateDirectory(path);
  const reason = refusalOf(found, path);
  if (reason !== undefined) throw refuse(path, reason);
}

function inspect(path: string): ReturnType<typeof lstatSync> | undefined {
  try {
    return lstatSync(path);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw unusable(path, cause);
  }
}

function refusalOf(
  found: NonNullable<ReturnType<typeof lstatSync>>,
  path: string,
): string | undefined {
  const uid = process.getuid?.() ?? 0;
  if (found.isSymbolicLink()) return "it is a symbolic link";
  if (!found.isDirectory()) return "it is not a directory";
  if (Number(found.uid) !== uid) return `it belongs to uid ${found.uid}, expected uid ${uid}`;
  if ((Number(found.mode) & OTHERS_MAY_WRITE) !== 0) {
    return `others may write into it (mode ${(Number(found.mode) & 0o7777).toString(8)})`;
  }
  const remote = nameRemoteFileSystem(path);
  return remote === undefined ? undefined : `it is on ${remote}, expected a local file system`;
}

function createStateDirectory(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    mkdirSync(path, { mode: PRIVATE_DIRECTORY });
    chmodSync(path, PRIVATE_DIRECTORY); // a umask may have taken away our own rights
  } catch (cause) {
    // A run beside us was faster; the same user, the same mode.
    if (codeOf(cause) === "EEXIST") return;
    throw unusable(path, cause);
  }
  const remote = nameRemoteFileSystem(path);
  if (remote !== undefined) throw refuse(path, `it is on ${remote}, expected a local file system`);
}

/**
 * A directory of our own with all that is missing above it, 0700 whatever the umask; fine if it is
 * there. @throws the error of mkdir(2)
 */
export function makePrivateDirectory(path: string): void {
  const made = mkdirSync(path, { recursive: true, mode: PRIVATE_DIRECTORY });
  if (made !== undefined) chmodSync(path, PRIVATE_DIRECTORY);
}

/**
 * A file or folder name for any text: letters, digits and `._-` stay, the rest is percent-encoded
 * as UTF-8; a leading dot too. Names that would be too long are cut and end in a hash, so that two
 * long names stay two.
 */
export function encodeName(name: string): string {
  const bytes = new TextEncoder().encode(name);
  let encoded = "";
  for (const [index, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte);
    const isPlain = /[A-Za-z0-9_-]/.test(character) || (character === "." && index > 0);
    encoded += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  if (encoded.length <= LONGEST_NAME) return encoded;
  const hash = new Bun.CryptoHasher("sha256").update(name).digest("hex").slice(0, 16);
  return `${encoded.slice(0, LONGEST_NAME - 17)}~${hash}`;
}

const LONGEST_NAME = 150;

function refuse(path: string, reason: string): WatchdogError {
  return new WatchdogError("state.refused", `state directory ${path}: ${reason}`, {
    hint: "watchdog help run",
  });
}

function unusable(path: string, cause: unknown): WatchdogError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new WatchdogError("state.unusable", `state directory ${path} cannot be used: ${text}`, {
    hint: "watchdog help run",
    cause,
  });
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
}
