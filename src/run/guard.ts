/**
 * The guard of a run: a tiny shell in a session of its own that waits for a word from watchdog and,
 * where the pipe ends without one, becomes `watchdog __bury` (bury.ts). Started before the command.
 *
 * Refuses to know what a burial is, and who collects children: the one reaper tells it of each end.
 * Always: only watchdog holds the other end of the pipe, so that the kernel itself tells of its
 * death; the program is an open file, so that an upgrade or uninstall takes nothing away; nothing
 * of the caller (variables, descriptors, working directory, terminal) is held by it. Nothing here
 * throws: a run without a guard is a run all the same, and says so.
 *
 * Clock: none. State after a crash of watchdog: that is what the guard is for. After a crash of the
 * guard: a new one, three times at most.
 */
import { constants as fsConstants } from "node:fs";
import { BURY_COMMAND, GUARD_MEMORY } from "../core/burial.ts";
import type { ProcessIdentity } from "../core/lease-record.ts";
import { isFaultVariable } from "../os/faults.ts";
import { close, moveHigh, NONE, openHigh } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { readStat } from "../os/proc.ts";
import { spawnProcess } from "../os/spawn.ts";
import { F_SETFD, FD_CLOEXEC, sys } from "../os/sys.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import {
  type GuardNotes,
  NOTES_DESCRIPTOR,
  PROGRAM_DESCRIPTOR,
  writeNotes,
} from "./guard-notes.ts";

const PROGRAM_PATH = `/proc/self/fd/${PROGRAM_DESCRIPTOR}`;
/** What the shell runs; a newline that comes before the end of the pipe means that all is well. */
const SCRIPT = `cd /; read -r word && exit 0; exec ${PROGRAM_PATH} ${BURY_COMMAND} "$1" "$2"`;
const SHELL = "/bin/sh";
const OURSELVES = "/proc/self/exe";
const BYE = new TextEncoder().encode("bye\n");
/** How long a guard that was told "bye" is waited for. */
export const FAREWELL_MS = 1_000;
/** So often a new guard takes the place of one that died early. */
export const MOST_RESTARTS = 3;
/** A program that needs this to find its libraries needs it as a guard, too (ld.so(8)). */
const NEEDED_VARIABLE = "LD_LIBRARY_PATH";

/** Why there is no guard, or none any more. */
export type GuardTrouble =
  "no-shell" | "no-program" | "no-memory-file" | "not-noted" | "not-started" | "died-too-often";

export interface GuardRequest {
  readonly runId: string;
  readonly stateDirectory: string;
  readonly inherited: Inheritance;
  /** The first note: written before the guard exists. */
  readonly notes: GuardNotes;
  /** A new guard took the place of one that died early: the beat names it. */
  readonly onRestarted: (identity: ProcessIdentity) => void;
  /** From here on nobody guards the run. Called once at most, also from within `startGuard`. */
  readonly onLost: (because: GuardTrouble) => void;
  /** The program that the guard becomes; tests put another one here. */
  readonly program?: string;
}

export interface Guard {
  /** Pid and start of the guard as it is now; undefined once it was lost or has left. */
  readonly identity: ProcessIdentity | undefined;
  /** Changes what it will know. */
  note(changes: Partial<GuardNotes>): void;
  /** Told of every child that the one reaper has collected; others than the guard do not matter. */
  onEnded(pid: number): void;
  /**
   * R4: the guard leaves. Resolves when it was collected (`onEnded` must go on being called), or
   * after FAREWELL_MS. Safe to repeat.
   */
  sayBye(): Promise<void>;
}

/**
 * Starts the guard of a run (0.5 ms: one posix_spawn).
 *
 * @returns undefined where there can be none; `onLost` was called with the reason
 */
export function startGuard(request: GuardRequest): Guard | undefined {
  const guard = new ShellGuard(request);
  const trouble = begin(guard);
  if (trouble === undefined) return guard;
  guard.dispose();
  request.onLost(trouble);
  return undefined;
}

function begin(guard: ShellGuard): GuardTrouble | undefined {
  try {
    return guard.begin();
  } catch {
    return "not-started"; // os.no-ffi: the run itself is degraded then, and says so
  }
}

class ShellGuard implements Guard {
  readonly #request: GuardRequest;
  #notes: GuardNotes;
  #sequence = 0;
  #memory = NONE;
  #program = NONE;
  #pipe = NONE;
  #identity: ProcessIdentity | undefined;
  #restarts = 0;
  #farewell: Farewell | undefined;

  constructor(request: GuardRequest) {
    this.#request = request;
    this.#notes = request.notes;
  }

  get identity(): ProcessIdentity | undefined {
    return this.#identity;
  }

  begin(): GuardTrouble | undefined {
    this.#program = openHigh(this.#request.program ?? OURSELVES, fsConstants.O_RDONLY);
    if (this.#program === NONE) return "no-program";
    this.#memory = moveHigh(sys.memoryFile(GUARD_MEMORY));
    if (this.#memory === NONE) return "no-memory-file";
    if (!this.#write()) return "not-noted";
    return this.#start();
  }

  note(changes: Partial<GuardNotes>): void {
    this.#notes = { ...this.#notes, ...changes };
    if (this.#memory !== NONE) this.#write();
  }

  onEnded(pid: number): void {
    if (pid !== this.#identity?.pid) return;
    this.#identity = undefined;
    this.#pipe = close(this.#pipe);
    if (this.#farewell !== undefined) return this.#farewell.end();
    const trouble = this.#restart();
    if (trouble !== undefined) {
      this.dispose();
      this.#request.onLost(trouble);
    } else if (this.#identity !== undefined) {
      this.#request.onRestarted(this.#identity);
    }
  }

  sayBye(): Promise<void> {
    if (this.#farewell !== undefined) return this.#farewell.over;
    this.#farewell = new Farewell();
    if (this.#identity === undefined) this.#farewell.end();
    // EPIPE: it died a moment ago, and the reaper will tell. A pipe that is empty never blocks.
    else sys.write(this.#pipe, BYE, BYE.length);
    this.dispose();
    return this.#farewell.over;
  }

  dispose(): void {
    this.#pipe = close(this.#pipe);
    this.#memory = close(this.#memory);
    this.#program = close(this.#program);
  }

  /** A note that cannot be written leaves the one before it. */
  #write(): boolean {
    try {
      writeNotes(this.#memory, this.#notes, this.#sequence);
      this.#sequence += 1;
      return true;
    } catch {
      return false; // EFBIG (ulimit -f), ENOMEM: the guard knows what it was told last
    }
  }

  #restart(): GuardTrouble | undefined {
    if (this.#restarts >= MOST_RESTARTS) return "died-too-often";
    this.#restarts += 1;
    return this.#start();
  }

  #start(): GuardTrouble | undefined {
    const ends = sys.pipe();
    if (typeof ends === "number") return "not-started";
    this.#pipe = ends.writeEnd;
    const nothing = openHigh("/dev/null", fsConstants.O_RDWR);
    const readEnd = moveHigh(ends.readEnd);
    try {
      return this.#spawn(readEnd, nothing);
    } catch {
      return "not-started"; // os.no-ffi: the run itself is degraded then, and says so
    } finally {
      close(readEnd);
      close(nothing);
    }
  }

  #spawn(input: number, nothing: number): GuardTrouble | undefined {
    const { runId, stateDirectory, inherited } = this.#request;
    if (input === NONE || nothing === NONE) return "not-started";
    keepFromGuard(inherited.descriptors);
    const words = [SHELL, "-c", SCRIPT, "sh", runId, stateDirectory];
    const spawned = spawnProcess(
      {
        argv: words.map((word) => new TextEncoder().encode(word)),
        environment: inherited.environment.filter(isNeeded),
        group: "own-session",
        redirections: [
          { target: 0, source: input },
          { target: 1, source: nothing },
          { target: 2, source: nothing },
          { target: NOTES_DESCRIPTOR, source: this.#memory },
          { target: PROGRAM_DESCRIPTOR, source: this.#program },
        ],
      },
      // The limit of open files is the caller's wish for the command: it may be below 9.
      { ...inherited, descriptors: [], openFilesLimit: undefined },
    );
    if (spawned.kind === "refused")
      return spawned.because === "system" ? "not-started" : "no-shell";
    const stat = readStat(spawned.pid);
    this.#identity = { pid: spawned.pid, start_time: stat?.startTicks ?? 0 };
    return undefined;
  }
}

/** The wait for a guard that was told to leave. */
class Farewell {
  readonly #ended = Promise.withResolvers<void>();
  readonly #timer: Timer = wakeAfter(FAREWELL_MS, () => this.#ended.resolve());

  get over(): Promise<void> {
    return this.#ended.promise;
  }

  end(): void {
    this.#timer.cancel();
    this.#ended.resolve();
  }
}

/**
 * The caller's descriptors are for the command alone: one of them in the guard would hold a pipe
 * open that somebody waits for. Bun marks all but number 3 at its start.
 */
function keepFromGuard(descriptors: readonly number[]): void {
  for (const fd of descriptors) sys.fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/** Never the cookie: the guard is no member of the run that it guards, nor of one around it. */
function isNeeded(entry: Uint8Array): boolean {
  const name = Buffer.from(entry).toString("latin1").split("=", 1)[0] ?? "";
  return name === NEEDED_VARIABLE || isFaultVariable(name);
}
