/**
 * The one way to start a process: `posix_spawn(3)` by FFI, because `Bun.spawn` is not transparent
 * (it resets every signal to default, closes descriptors above 2, turns arguments that are not
 * UTF-8 into U+FFFD).
 *
 * What the new process gets: the caller's bytes, signal mask and ignored signals, descriptors and
 * limit of open files. SIGPIPE and SIGXFSZ are set to default, because Bun ignores them and nobody
 * can know any more what the caller had.
 *
 * State after a crash: none; the call returns with a process that exists, or with none.
 */
import { ptr } from "bun:ffi";
import { accessSync, constants as fsConstants, statSync } from "node:fs";
import { SIGPIPE, SIGXFSZ } from "../core/signals.ts";
import { type Inheritance, SIGSET_BYTES } from "./inheritance.ts";
import { changeDirectoryLibc, libc } from "./libc.ts";
import { EACCES, ENOENT, ENOEXEC, ENOTDIR, F_SETFD, FD_CLOEXEC } from "./sys.ts";

/**
 * How a descriptor of the new process is made: the descriptor there, and the one of ours that it
 * copies.
 */
export interface Redirection {
  readonly target: number;
  readonly source: number;
}

export interface SpawnRequest {
  /** Program and arguments as bytes, without NUL. Looked up in PATH as execvp(3) does. */
  readonly argv: readonly Uint8Array[];
  readonly environment: readonly Uint8Array[];
  readonly group: "shared" | "own-group" | "own-session";
  readonly redirections: readonly Redirection[];
  /** Its working directory, where the C library can set it; undefined: our own. */
  readonly directory?: string | undefined;
}

export type SpawnResult =
  | { readonly kind: "started"; readonly pid: number }
  | {
      readonly kind: "refused";
      readonly because: "not-found" | "not-executable" | "system";
      readonly errorNumber: number;
    };

const FLAG = {
  setProcessGroup: 2,
  setSignalDefault: 4,
  setSignalMask: 8,
  setSession: 0x80,
} as const;
/**
 * The C library's own signals: it would leave them ignored in the new process unless told
 * otherwise.
 */
const LIBRARY_SIGNALS = [32, 33];
const ATTRIBUTES_BYTES = 512;
const ACTIONS_BYTES = 256;
const RLIMIT_NOFILE = 7;

/**
 * Starts a process. Blocks until its exec has succeeded or failed (0.1–0.9 ms).
 *
 * @returns "started", or "refused" with the reason: 127 and 126 of a shell, or trouble of the
 *   system (EAGAIN, ENOMEM,
 *   E2BIG …)
 * @throws WatchdogError "os.no-ffi"
 */
export function spawnProcess(request: SpawnRequest, inherited: Inheritance): SpawnResult {
  const native = new NativeRequest(request, inherited);
  const limit = lowerOpenFilesLimit(inherited.openFilesLimit);
  setCloseOnExec(inherited.descriptors, 0);
  try {
    const errorNumber = native.spawn(request.argv);
    if (errorNumber === 0) return { kind: "started", pid: native.pid };
    if (errorNumber !== ENOEXEC) return refuse(errorNumber);
    return spawnScript(native, request);
  } finally {
    setCloseOnExec(inherited.descriptors, FD_CLOEXEC);
    limit?.restore();
  }
}

/**
 * The caller's descriptors go to this one process and to none that is started later. By fcntl(2),
 * not by a dup2 in the new process: that would refuse numbers above the soft limit of open files,
 * which may be held all the same.
 */
function setCloseOnExec(descriptors: readonly number[], flag: number): void {
  for (const fd of descriptors) libc().fcntl(fd, F_SETFD, BigInt(flag));
}

/** A text file without `#!` is run by `/bin/sh`, as every shell and execvp(3) do. */
function spawnScript(native: NativeRequest, request: SpawnRequest): SpawnResult {
  const script = native.findInPath(request.argv[0] ?? new Uint8Array());
  const shell = new TextEncoder().encode("/bin/sh");
  const errorNumber = native.spawn([shell, script, ...request.argv.slice(1)]);
  return errorNumber === 0 ? { kind: "started", pid: native.pid } : refuse(ENOEXEC);
}

function refuse(errorNumber: number): SpawnResult {
  if (errorNumber === ENOENT || errorNumber === ENOTDIR) {
    return { kind: "refused", because: "not-found", errorNumber };
  }
  const isFile =
    errorNumber === EACCES || errorNumber === ENOEXEC || NOT_A_PROGRAM.has(errorNumber);
  return { kind: "refused", because: isFile ? "not-executable" : "system", errorNumber };
}

/**
 * ELIBBAD, ELOOP, EISDIR, ETXTBSY, EPERM, ENAMETOOLONG: the file is the trouble, as a shell sees it
 * (126).
 */
const NOT_A_PROGRAM = new Set([80, 40, 21, 26, 1, 36]);

/** The request in the C library's memory; the arrays live as long as the object. */
class NativeRequest {
  readonly #kept: Uint8Array[] = [];
  readonly #attributes = new Uint8Array(ATTRIBUTES_BYTES);
  readonly #actions = new Uint8Array(ACTIONS_BYTES);
  readonly #environment: BigUint64Array;
  readonly #pid = new Int32Array(1);

  constructor(request: SpawnRequest, inherited: Inheritance) {
    this.#environment = this.#pointers(request.environment);
    this.#setAttributes(request.group, inherited.blockedSignals);
    libc().posix_spawn_file_actions_init(this.#actions);
    for (const { target, source } of request.redirections) {
      libc().posix_spawn_file_actions_adddup2(this.#actions, source, target);
    }
    if (request.directory !== undefined) this.#workIn(request.directory);
  }

  #workIn(directory: string): void {
    const terminated = new TextEncoder().encode(`${directory}\0`);
    this.#kept.push(terminated);
    changeDirectoryLibc()?.posix_spawn_file_actions_addchdir_np(this.#actions, terminated);
  }

  get pid(): number {
    return this.#pid[0] ?? 0;
  }

  /** @returns 0 or an error number */
  spawn(argv: readonly Uint8Array[]): number {
    const words = this.#pointers(argv);
    const program = this.#kept[this.#kept.length - argv.length] ?? new Uint8Array(1);
    return libc().posix_spawnp(
      this.#pid,
      program,
      this.#actions,
      this.#attributes,
      words,
      this.#environment,
    );
  }

  /** The path under which execvp(3) found a program that has no slash in its name. */
  findInPath(name: Uint8Array): Uint8Array {
    if (name.includes(0x2f)) return name;
    const path = process.env["PATH"] ?? "/bin:/usr/bin";
    for (const directory of path.split(":")) {
      const candidate = Buffer.concat([
        Buffer.from(directory === "" ? "." : directory),
        SLASH,
        name,
      ]);
      if (isExecutableFile(candidate)) return candidate;
    }
    return name;
  }

  #setAttributes(group: SpawnRequest["group"], mask: Uint8Array | undefined): void {
    const defaults = new Uint8Array(SIGSET_BYTES);
    for (const signal of [SIGPIPE, SIGXFSZ, ...LIBRARY_SIGNALS]) {
      const bit = signal - 1;
      defaults[bit >> 3] = (defaults[bit >> 3] ?? 0) | (1 << (bit & 7));
    }
    let flags: number = FLAG.setSignalDefault;
    libc().posix_spawnattr_init(this.#attributes);
    libc().posix_spawnattr_setsigdefault(this.#attributes, defaults);
    if (mask !== undefined) {
      flags |= FLAG.setSignalMask;
      libc().posix_spawnattr_setsigmask(this.#attributes, mask);
    }
    if (group === "own-session") flags |= FLAG.setSession;
    if (group === "own-group") {
      flags |= FLAG.setProcessGroup;
      libc().posix_spawnattr_setpgroup(this.#attributes, 0);
    }
    libc().posix_spawnattr_setflags(this.#attributes, flags);
  }

  #pointers(strings: readonly Uint8Array[]): BigUint64Array {
    const addresses = new BigUint64Array(strings.length + 1);
    strings.forEach((bytes, index) => {
      const terminated = new Uint8Array(bytes.length + 1);
      terminated.set(bytes);
      this.#kept.push(terminated);
      addresses[index] = BigInt(ptr(terminated));
    });
    return addresses;
  }
}

const SLASH = Buffer.from("/");

function isExecutableFile(path: Buffer): boolean {
  try {
    accessSync(path, fsConstants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // ENOENT, EACCES, ENOTDIR: not here, the next directory of PATH may have it
  }
}

/**
 * The soft limit is the process's own while it spawns, because a new process inherits what is in
 * force then.
 */
function lowerOpenFilesLimit(soft: bigint | undefined): { restore(): void } | undefined {
  if (soft === undefined) return undefined;
  const current = new BigUint64Array(2);
  libc().getrlimit(RLIMIT_NOFILE, current);
  const [ours, hard] = [current[0] ?? 0n, current[1] ?? 0n];
  if (soft >= ours || soft > hard) return undefined;
  libc().setrlimit(RLIMIT_NOFILE, new BigUint64Array([soft, hard]));
  return {
    restore: () => {
      libc().setrlimit(RLIMIT_NOFILE, new BigUint64Array([ours, hard]));
    },
  };
}
