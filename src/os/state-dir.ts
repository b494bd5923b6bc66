/**
 * Where the state lives, and whether it may be trusted: absolute, a directory of our own, no link,
 * nobody else may write into it, on a local file system; or one that a group shares which we are in
 * (2770). Decides nothing about what is stored there.
 *
 * The default depends on the user alone, whatever HOME and XDG say: cron's and the shell's differ,
 * and two directories would exclude nobody. State after a crash: a directory that is empty.
 */
import { chmodSync, lstatSync, mkdirSync, readFileSync, type Stats } from "node:fs";
import { statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { WatchdogError } from "../core/errors.ts";
import { findOwnGroup, isOpenToRoot, isShared, isSharedWithUs } from "./state-group.ts";
import { nameSharingWords, shareWith, sharingHint } from "./state-group.ts";
import { findUser, nameGroup } from "./users.ts";

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
  if (asked !== undefined && !isOfAnotherUsersRun(asked)) return resolveAsked(asked);
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) return "/var/lib/watchdog";
  const home = findHome(uid);
  return home !== undefined && isLocalDirectory(home)
    ? `${home}/.local/state/watchdog`
    : `/var/tmp/watchdog-${uid}`;
}

/**
 * `su postgres -c 'watchdog run …'` within a run of root's: the variable was set by the run around,
 * whose state this user may not write. His own runs of that job use his own directory, so that is
 * where they exclude each other.
 */
export function isOfAnotherUsersRun(asked: string): boolean {
  const { WATCHDOG_STATE_DIR: variable, WATCHDOG_RUN_ID: around } = process.env;
  if (asked !== variable || around === undefined) return false;
  try {
    const found = lstatSync(asked);
    return found.uid !== process.getuid?.() && !isSharedWithUs(found);
  } catch (cause) {
    return codeOf(cause) === "EACCES"; // below a directory that only the other user may enter
  }
}

/** A relative path needs the working directory, and that must have a name that text can hold. */
function resolveAsked(asked: string): string {
  const path = resolve(asked);
  if (!path.includes("\ufffd")) return path;
  throw refuse(asked, "the name of the working directory is not UTF-8, expected an absolute path");
}

/** The home of the password database (passwd(5)); never HOME. */
export function findHome(uid: number): string | undefined {
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
    return statSync(path).isDirectory() && nameRemoteFileSystem(path) === undefined;
  } catch {
    return false; // ENOENT, EACCES: a home that is not there is on no local file system
  }
}

function nameRemoteFileSystem(path: string): string | undefined {
  return REMOTE_FILE_SYSTEMS[statfsSync(path).type >>> 0];
}

/** What was asked for on the line or in the configuration. */
export interface StateAsked {
  /** `--assume-local-state`: the kind of file system is not asked. */
  readonly assumesLocal?: boolean;
  /** `--state-group`; undefined: private where it is made, and as it is where it is there. */
  readonly group?: string | undefined;
}

/**
 * Checks the directory, and creates it if it is not there: 0700, or 2770 and of the group that was
 * asked for. A private one of ours that is still empty is opened to that group too.
 *
 * @throws WatchdogError "state.refused" where a person must change something (78): a link, no
 *   directory, somebody else's, writable by others, not on a local file system, not shared by the
 *   group that was asked for
 * @throws WatchdogError "state.unusable" where the system says no (125): EACCES, ENOSPC, EROFS …
 * Blocks: up to a second while somebody else is making it for that group.
 */
export function openStateDirectory(path: string, asked: StateAsked = {}): void {
  const gid = asked.group === undefined ? undefined : findGroupAsked(path, asked.group);
  if (inspect(path) === undefined) create(path);
  if (gid !== undefined) openToGroup(path, gid);
  const found = inspect(path);
  if (found === undefined) throw unusable(path, new Error("it was removed at this moment"));
  const reason = refusalOf(found, gid) ?? (asked.assumesLocal ? undefined : refusalOfRemote(path));
  if (reason === undefined) return;
  throw refuse(path, reason, gid === undefined ? hintFor(found) : sharingHint(path, found, gid));
}

function findGroupAsked(path: string, group: string): number {
  const found = findOwnGroup(group);
  if (found.kind === "found") return found.gid;
  throw refuse(path, found.reason, found.hint);
}

function openToGroup(path: string, gid: number): void {
  try {
    shareWith(path, gid);
  } catch (cause) {
    throw unusable(path, cause);
  }
}

/**
 * Whether the directory is there, for whoever only reads in it: nothing is created. The kind of its
 * file system is not asked, because a reader promises nothing about locks. Root looks into every
 * one that a group shares.
 *
 * @throws WatchdogError "state.refused", "state.unusable" as `openStateDirectory`
 */
export function findStateDirectory(path: string): boolean {
  const found = inspect(path);
  if (found !== undefined && isOpenToRoot(found)) return true;
  const reason = found === undefined ? undefined : refusalOf(found);
  if (reason !== undefined) throw refuse(path, reason, hintFor(found));
  return found !== undefined;
}

/** What helps against an owner or a group; undefined: nothing special does. */
function hintFor(found: Stats | undefined): string | undefined {
  if (found === undefined || !found.isDirectory()) return undefined;
  const uid = process.getuid?.() ?? 0;
  if (found.uid === uid) return undefined;
  if (isShared(found, found.gid)) {
    return uid === 0 ? `watchdog run --state-group ${nameGroup(found.gid)} -- COMMAND` : "id";
  }
  const owner = findUser(found.uid);
  return uid === 0 && owner !== undefined ? `su -s /bin/sh ${owner}` : undefined;
}

function inspect(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw unusable(path, cause);
  }
}

function refusalOf(found: Stats, askedGid?: number): string | undefined {
  const uid = process.getuid?.() ?? 0;
  if (found.isSymbolicLink()) return "it is a symbolic link";
  if (!found.isDirectory()) return "it is not a directory";
  if (askedGid !== undefined) {
    if (isShared(found, askedGid)) return undefined;
    return `it has ${nameSharingWords(found)}, expected ${nameSharingWords(askedGid)}`;
  }
  if (isSharedWithUs(found)) return undefined;
  if (found.uid !== uid && isShared(found, found.gid)) {
    return `it has ${nameSharingWords(found)}, which we are not in`;
  }
  if (found.uid !== uid) return `it belongs to uid ${found.uid}, expected uid ${uid}`;
  if ((found.mode & OTHERS_MAY_WRITE) === 0) return undefined;
  return `others may write into it (mode ${(found.mode & 0o7777).toString(8)})`;
}

function refusalOfRemote(path: string): string | undefined {
  const remote = nameRemoteFileSystem(path);
  return remote === undefined
    ? undefined
    : `it is on ${remote}, expected a local file system (or --assume-local-state)`;
}

function create(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    mkdirSync(path, { mode: PRIVATE_DIRECTORY });
    chmodSync(path, PRIVATE_DIRECTORY); // a umask may have taken away our own rights
  } catch (cause) {
    // A run beside us was faster; the same user, the same mode.
    if (codeOf(cause) !== "EEXIST") throw unusable(path, cause);
  }
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

function refuse(path: string, reason: string, hint = "watchdog help run"): WatchdogError {
  return new WatchdogError("state.refused", `state directory ${path}: ${reason}`, { hint });
}

function unusable(path: string, cause: unknown): WatchdogError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new WatchdogError("state.unusable", `state directory ${path} cannot be used: ${text}`, {
    hint: "watchdog run --state-dir DIR -- COMMAND",
    cause,
  });
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
}
