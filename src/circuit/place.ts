/**
 * The lock of a circuit: `circuits/<name>/lock` in the state directory, an empty file that whoever
 * probes holds by flock(2) for as long as he does. `wanted` beside it is locked in the same way by
 * one of those who watch and wait for that lock. Knows nothing of states and answers.
 *
 * Guarantees: of those who lock the file that the path leads to, one has it; the kernel frees it
 * when he is dead; a link, no regular file or somebody else's file is never locked; no call waits
 * or throws. Non-guarantees: that the path still leads there; each `tryLock` and `isLocked` asks,
 * and a file that was replaced or removed is locked anew. It is replaced by whoever takes it from
 * one that gives no sign, because a process that was stopped keeps what it has locked. Clock: none.
 * Crash behaviour: an empty file in its directory remains, and is nobody's.
 */
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  unlinkSync,
} from "node:fs";
import { circuitsDirectoryOf } from "../os/circuits-directory.ts";
import { encodeName } from "../os/state-dir.ts";
import {
  fileModeAt,
  makeOneStateDirectory,
  refusalOfOwner,
  settleMode,
} from "../os/state-sharing.ts";
import { EAGAIN, EINTR, LOCK_EX, LOCK_NB, LOCK_SH, nameErrno, sys } from "../os/sys.ts";

export interface Unusable {
  readonly kind: "unusable";
  /** For people. */
  readonly reason: string;
}

/** While it is held nobody can begin to probe. */
export interface LockWatch {
  /** Somebody else has the lock. */
  readonly isInUse: boolean;
  release(): void;
}

/** What a circuit needs of its lock; the file below is one, a test has another. */
export interface ProberLock {
  /** Never waits. Asked again while it is had, it is had still, or it is locked anew. */
  tryLock(): "locked" | "busy" | Unusable;
  readonly isLocked: boolean;
  /** Of whoever has it, changed where another one has it; undefined: nobody was seen to. */
  readonly other: string | undefined;
  /**
   * Takes it from the one that was last seen to have it, who gives no sign: at his next look he
   * finds that it is his no more. "busy": somebody else has done so.
   */
  takeFromOther(): "locked" | "busy" | Unusable;
  unlock(): void;
  /** Whether anybody probes; a lock of our own is nobody's use. */
  watchUse(): LockWatch;
}

const { O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
/** A file that is replaced more often while it is locked is being played with. */
const MOST_REPLACEMENTS = 5;
/** With LOCK_NB flock(2) does not wait; EINTR is tried again at most so often. */
const MOST_INTERRUPTIONS = 100;

/** Of an open file neither number ever changes. */
interface FileId {
  readonly dev: bigint;
  readonly ino: bigint;
}

interface Held {
  readonly fd: number;
  readonly found: FileId;
}

type Locked = ({ readonly kind: "locked" } & Held) | { readonly kind: "busy" };

export class CircuitPlace implements ProberLock {
  readonly #above: string;
  readonly #directory: string;
  readonly #path: string;
  #held: Held | undefined;
  #other: string | undefined;

  get other(): string | undefined {
    return this.#other;
  }

  /** Nothing is made or opened yet. @param name  of the circuit, not empty */
  constructor(stateDirectory: string, name: string, file: "lock" | "wanted" = "lock") {
    this.#above = circuitsDirectoryOf(stateDirectory);
    this.#directory = `${this.#above}/${encodeName(name)}`;
    this.#path = `${this.#directory}/${file}`;
  }

  get isLocked(): boolean {
    return this.#held !== undefined && isAt(this.#held.found, this.#path);
  }

  tryLock(): "locked" | "busy" | Unusable {
    if (this.isLocked) return "locked";
    this.unlock();
    const had = this.#try(LOCK_EX);
    if (had.kind === "locked") this.#held = had;
    return had.kind === "unusable" ? had : had.kind;
  }

  /** The lock of the directory is held meanwhile, so that of many one does it. */
  takeFromOther(): "locked" | "busy" | Unusable {
    let above: number | undefined;
    try {
      above = openSync(this.#directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (lock(above, LOCK_EX) < 0) return "busy";
      const found = lstatSync(this.#path, { bigint: true });
      if (this.#other === undefined || nameFile(found) !== this.#other) return "busy";
      unlinkSync(this.#path);
      return this.tryLock();
    } catch (cause) {
      return codeOf(cause) === "ENOENT" ? this.tryLock() : unusable(this.#path, cause);
    } finally {
      if (above !== undefined) closeSync(above);
    }
  }

  unlock(): void {
    if (this.#held !== undefined) closeSync(this.#held.fd);
    this.#held = undefined;
  }

  /**
   * Shared, so that two who ask at the same time do not take each other for somebody who probes.
   */
  watchUse(): LockWatch {
    if (this.isLocked) return { isInUse: false, release: () => undefined };
    const had = this.#try(LOCK_SH);
    return {
      isInUse: had.kind === "busy",
      release: () => {
        if (had.kind === "locked") closeSync(had.fd);
      },
    };
  }

  #try(mode: number): Locked | Unusable {
    try {
      for (let replacements = 0; replacements < MOST_REPLACEMENTS; replacements += 1) {
        const had = this.#tryOnce(mode);
        if (had !== "replaced") return had;
      }
      return unusable(this.#path, "it is replaced again and again");
    } catch (cause) {
      return unusable(this.#path, cause); // EACCES, ENOSPC, EROFS, EMFILE; no FFI
    }
  }

  #tryOnce(mode: number): Locked | Unusable | "replaced" {
    const wrong = makeDirectory(this.#above) ?? makeDirectory(this.#directory);
    if (wrong !== undefined) return wrong;
    const fd = openLock(this.#path);
    if (fd === undefined) return "replaced";
    let isKept = false;
    try {
      const found = fstatSync(fd, { bigint: true });
      const reason = refusalOf(this.#path, found);
      if (reason !== undefined) return unusable(this.#path, reason);
      settleMode(fd, found, fileModeAt(this.#path));
      const result = lock(fd, mode);
      if (result === -EAGAIN) {
        this.#other = nameFile(found);
        return isAt(found, this.#path) ? { kind: "busy" } : "replaced";
      }
      if (result < 0) return unusable(this.#path, nameErrno(result));
      isKept = isAt(found, this.#path);
      return isKept ? { kind: "locked", fd, found } : "replaced";
    } finally {
      if (!isKept) closeSync(fd);
    }
  }
}

/** One of the two levels, as the state directory is. @throws the error of mkdir(2) or lstat(2) */
function makeDirectory(path: string): Unusable | undefined {
  let found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    makeOneStateDirectory(path);
    found = lstatSync(path, { throwIfNoEntry: false });
  }
  if (found === undefined) return undefined; // removed just now: the next round makes it
  if (!found.isDirectory()) return unusable(path, "it is not a directory");
  const reason = refusalOfOwner(path, found);
  return reason === undefined ? undefined : unusable(path, reason);
}

/**
 * Close-on-exec (open(2); `fs` sets it itself), through no link, and nothing that could hang.
 * @returns undefined: the directory was removed just now
 * @throws the error of open(2)
 */
function openLock(path: string): number | undefined {
  try {
    return openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, fileModeAt(path));
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw cause;
  }
}

function lock(fd: number, mode: number): number {
  for (let interruptions = 0; ; interruptions += 1) {
    const result = sys.flock(fd, mode | LOCK_NB);
    if (result !== -EINTR || interruptions >= MOST_INTERRUPTIONS) return result;
  }
}

function refusalOf(path: string, found: BigIntStats): string | undefined {
  return found.isFile() ? refusalOfOwner(path, found) : "it is not a regular file";
}

/** Its number is no other file's as long as whoever has the lock has it open. */
function nameFile({ dev, ino }: FileId): string {
  return `${dev}:${ino}`;
}

function isAt({ dev, ino }: FileId, path: string): boolean {
  try {
    const atPath = lstatSync(path, { bigint: true });
    return dev === atPath.dev && ino === atPath.ino;
  } catch {
    return false; // ENOENT: removed. Anything else: not known to be the same.
  }
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
}

function unusable(path: string, cause: unknown): Unusable {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return { kind: "unusable", reason: `${path}: ${reason}` };
}
