/**
 * `watchdog keep -- COMMAND`: starts something that is meant to outlive the job, registers it with
 * every run around it, and returns at once. The command gets a session of its own, `/dev/null` as
 * standard input, and none of the run's cookies, so that nobody ever takes it for a leftover or a
 * survivor.
 *
 * Its output goes to `--output FILE`; without that, a descriptor that is a pipe or a terminal
 * becomes `/dev/null`, because its other end goes away with the run; a file stays as it is. The
 * fence of an operation that it is started in is not passed on.
 */
import { constants, fstatSync, openSync } from "node:fs";
import { splitRunPath, valueOf } from "../core/environment-entries.ts";
import { WatchdogError } from "../core/errors.ts";
import { closeFences } from "../lease/fence-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { readStat } from "../os/proc.ts";
import { type Redirection, spawnProcess } from "../os/spawn.ts";
import { openStateDirectory, resolveStateDirectory } from "../os/state-dir.ts";
import { takeUmaskOf } from "../os/state-sharing.ts";
import { F_SETFL, nameErrno, sys } from "../os/sys.ts";
import { KEPT_VARIABLE, registerKept } from "./kept-registry.ts";

export interface KeepRequest {
  readonly argv: readonly Uint8Array[];
  readonly inherited: Inheritance;
  readonly output: string | undefined;
  readonly stateDir: string | undefined;
}

const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = constants;

/** Variables that tie a process to its run. */
const TIES = [
  "WATCHDOG_RUN_ID",
  "WATCHDOG_RUN_PATH",
  "WATCHDOG_JOB",
  "WATCHDOG_DEADLINE",
  "WATCHDOG_ATTEMPT",
  "WATCHDOG_LEASE",
  "WATCHDOG_GENERATION",
  "WATCHDOG_PROGRESS",
  KEPT_VARIABLE,
];

/**
 * @returns when the command has started
 * @throws WatchdogError spawn.* if it cannot be started, keep.unregistered if the run could not be
 *   told
 */
export function keepCommand(request: KeepRequest): void {
  const descriptors = closeFences(request.inherited.descriptors);
  const inherited = { ...request.inherited, descriptors };
  const runIds = splitRunPath(valueOf(inherited.environment, "WATCHDOG_RUN_PATH"));
  const asked = request.stateDir ?? valueOf(inherited.environment, "WATCHDOG_STATE_DIR");
  const stateDirectory = resolveStateDirectory(asked);
  const token = crypto.randomUUID().replaceAll("-", "");
  register(stateDirectory, runIds, { token, identity: "" });
  const result = spawnProcess(
    {
      argv: request.argv,
      environment: untie(inherited.environment, token),
      group: "own-session",
      redirections: redirect(request.output),
    },
    inherited,
  );
  if (result.kind === "refused") throw refuse(request.argv, result.because, result.errorNumber);
  const startTicks = readStat(result.pid)?.startTicks;
  register(stateDirectory, runIds, { token, identity: `${result.pid}@${startTicks ?? 0}` });
}

function register(
  stateDirectory: string,
  runIds: readonly string[],
  entry: { token: string; identity: string },
): void {
  if (runIds.length === 0) return; // outside any run there is nobody to tell
  try {
    openStateDirectory(stateDirectory);
    const giveBack = takeUmaskOf(stateDirectory);
    try {
      for (const runId of runIds) registerKept(stateDirectory, runId, entry);
    } finally {
      giveBack();
    }
  } catch (cause) {
    if (cause instanceof WatchdogError) throw cause;
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new WatchdogError("keep.unregistered", `the run could not be told: ${text}`, { cause });
  }
}

function untie(environment: readonly Uint8Array[], token: string): Uint8Array[] {
  const ties = TIES.map((name) => `${name}=`);
  const free = environment.filter((entry) => {
    const text = Buffer.from(entry).toString("latin1");
    return !ties.some((tie) => text.startsWith(tie));
  });
  return [...free, new TextEncoder().encode(`${KEPT_VARIABLE}=${token}`)];
}

function redirect(output: string | undefined): Redirection[] {
  const nowhere = openSync("/dev/null", constants.O_RDWR);
  const sink = output === undefined ? undefined : openOutput(output);
  const targets = [1, 2].flatMap((target): Redirection[] => {
    if (sink !== undefined) return [{ target, source: sink }];
    return endsWithRun(target) ? [{ target, source: nowhere }] : [];
  });
  return [{ target: 0, source: nowhere }, ...targets];
}

function openOutput(path: string): number {
  try {
    const fd = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0o666);
    // Only for the open, which would wait for the reader of a FIFO; the command writes as ever.
    sys.fcntl(fd, F_SETFL, O_APPEND);
    return fd;
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new WatchdogError("keep.unregistered", `--output ${path} cannot be opened: ${text}`, {
      cause,
    });
  }
}

function endsWithRun(fd: number): boolean {
  try {
    const kind = fstatSync(fd);
    return kind.isFIFO() || kind.isCharacterDevice() || kind.isSocket();
  } catch {
    return true; // EBADF: closed; the command gets /dev/null there
  }
}

function refuse(
  argv: readonly Uint8Array[],
  because: "not-found" | "not-executable" | "system",
  errorNumber: number,
): WatchdogError {
  const name = Buffer.from(argv[0] ?? "").toString("utf8");
  const code = {
    "not-found": "spawn.not-found",
    "not-executable": "spawn.not-executable",
  } as const;
  return new WatchdogError(
    because === "system" ? "spawn.failed" : code[because],
    `${name}: ${nameErrno(errorNumber)}`,
  );
}
