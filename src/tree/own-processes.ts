/**
 * Helper processes of watchdog's own, from the side of whoever wants something of them: each is
 * watchdog itself in a session of its own, runs one command with everything that it starts, and
 * leaves its answer in a file in memory. Refuses to know what the command is for, what an answer
 * means, and who collects children: the one reaper tells of each end, and where there is none
 * `collectOwn` looks after our own alone.
 *
 * Guarantees: each order has an end within its limit and ANSWER_LIMIT_MS; nothing rejects or
 * throws; only a helper that was not collected yet is signalled, so that its pid is still its own;
 * nothing of the caller but its environment, working directory, signals and umask reaches the
 * command. What an order says beside its words stands in memory, and on no command line. Several at
 * a time are possible. Non-guarantees: that nobody writes into the answer of a helper (its own
 * command may, through /proc). The soft limit of open files is ours (the helper's own runtime
 * raises it).
 *
 * Clock: MONOTONIC, by timers. State after a crash of ours: each helper hears of it by its pipe,
 * and ends its command.
 */
import { constants, readSync, statSync, writeSync } from "node:fs";
import { LONGEST_ANSWER_BYTES } from "../core/command-probe.ts";
import { ORDER_DESCRIPTOR } from "../core/hook-order.ts";
import { nameSignal, SIGCONT, SIGKILL } from "../core/signals.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import { close, moveHigh, NONE, openHigh } from "../os/high-descriptors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { type ChildChange, collectChild } from "../os/reaper.ts";
import { type Redirection, spawnProcess, type SpawnResult } from "../os/spawn.ts";
import { F_SETFD, FD_CLOEXEC, nameErrno, sys } from "../os/sys.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { signalChild } from "./signal.ts";

const OURSELVES = "/proc/self/exe";
const ANSWER_MEMORY = "watchdog-answer";
const ORDER_MEMORY = "watchdog-order";
/** Beyond the limit of the command: for the start of the helper, and for its tree to be ended. */
export const ANSWER_LIMIT_MS = 3_000;
/** Between the end of the pipe, which tells the helper to leave, and KILL. */
export const LEAVING_MS = 1_000;

export interface HelpersRequest {
  readonly inherited: Inheritance;
  /** Of the command: as bytes, with the cookie of the run, so that a burial finds it. */
  readonly environment: () => readonly Uint8Array[];
  /** Of the command; undefined: our own. */
  readonly umask?: number;
  /** The program that the helper is; tests put another one here. */
  readonly program?: string;
}

export interface HelperOrder {
  /** The command line of the helper behind its own name: no secrets. */
  readonly words: readonly string[];
  /** What is not to be seen on a command line: the helper reads it from ORDER_DESCRIPTOR. */
  readonly order?: Uint8Array;
  /** Of the command, with its grace. */
  readonly timeoutMs: number;
  /** Ends it: `stopped`, at once; the helper is gone a moment later. */
  readonly signal?: AbortSignal | undefined;
}

export type HelperEnd =
  /** With what it has left as its answer, and how it went in words. */
  | { readonly kind: "ended"; readonly answer: string; readonly found: string }
  | { readonly kind: "not-started"; readonly found: string }
  /** It gave no answer in time. */
  | { readonly kind: "late"; readonly found: string }
  | { readonly kind: "stopped" };

export class Helpers {
  readonly #request: HelpersRequest;
  readonly #helpers = new Map<number, Helper>();
  readonly #pids = new Set<number>();

  constructor(request: HelpersRequest) {
    this.#request = request;
  }

  /** Children of ours that are no members of any job. As of now, each time. */
  get pids(): ReadonlySet<number> {
    return this.#pids;
  }

  run(order: HelperOrder): Promise<HelperEnd> {
    if (order.signal?.aborted === true) return Promise.resolve(STOPPED);
    const place = Place.open(order.order);
    if (place === undefined) return Promise.resolve(notStarted("no descriptors are left"));
    const spawned = this.#spawn(order.words, place);
    if (typeof spawned === "string") {
      place.close();
      return Promise.resolve(notStarted(spawned));
    }
    const helper = new Helper({ ...order, pid: spawned, place });
    this.#helpers.set(spawned, helper);
    this.#pids.add(spawned);
    return helper.ended;
  }

  /** Told of every child that the one reaper has collected; others do not matter. */
  onEnded(change: ChildChange): void {
    if (change.kind === "stopped") return;
    this.#end(change.pid, change);
  }

  /** While there is no reaper: whether one of ours has ended. Never blocks. */
  collectOwn(): void {
    for (const pid of this.#pids) {
      const change = collectChild(pid);
      if (change !== "running" && change !== "gone") this.onEnded(change);
      if (change === "gone") this.#end(pid, undefined);
    }
  }

  #end(pid: number, change: Collected | undefined): void {
    const helper = this.#helpers.get(pid);
    this.#helpers.delete(pid);
    this.#pids.delete(pid);
    helper?.end(change);
  }

  /** @returns its pid, or what is in the way, for people */
  #spawn(words: readonly string[], place: Place): number | string {
    const { inherited, environment, umask, program = OURSELVES } = this.#request;
    const ours = umask === undefined ? undefined : process.umask(umask);
    try {
      // Bun marks all of the caller's but number 3 at its start.
      for (const fd of inherited.descriptors) sys.fcntl(fd, F_SETFD, FD_CLOEXEC);
      const spawned: SpawnResult = spawnProcess(
        {
          argv: [program, ...words].map((word) => new TextEncoder().encode(word)),
          environment: environment(),
          group: "own-session",
          redirections: place.redirections(),
          // Bun does not start in a directory that was removed, and a job may remove its own.
          directory: isOwnDirectoryGone() ? "/" : undefined,
        },
        { ...inherited, descriptors: [], openFilesLimit: undefined },
      );
      if (spawned.kind === "started") return spawned.pid;
      return `${program}: ${nameErrno(spawned.errorNumber)}`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      if (ours !== undefined) process.umask(ours);
      place.closeTheirs();
    }
  }
}

/** Also where another one has its name by now. */
function isOwnDirectoryGone(): boolean {
  try {
    return statSync("/proc/self/cwd").nlink === 0;
  } catch {
    return false; // EACCES, EIO: whoever starts there sees what is the matter
  }
}

type Collected = Exclude<ChildChange, { kind: "stopped" }>;

/** The descriptors between a helper and us; all of them high, so that no one overwrites another. */
class Place {
  memory = moveHigh(sys.memoryFile(ANSWER_MEMORY));
  nowhere = openHigh("/dev/null", constants.O_RDWR);
  readEnd = NONE;
  writeEnd = NONE;
  /** Undefined: the order is all on the command line. */
  order: number | undefined;

  static open(order: Uint8Array | undefined): Place | undefined {
    try {
      const place = new Place();
      if (order !== undefined) place.order = keepInMemory(order);
      const ends = sys.pipe();
      if (typeof ends !== "number") {
        place.readEnd = moveHigh(ends.readEnd);
        place.writeEnd = moveHigh(ends.writeEnd);
      }
      const all = [place.memory, place.nowhere, place.readEnd, place.writeEnd, place.order];
      if (!all.includes(NONE)) return place;
      place.close();
      return undefined;
    } catch {
      return undefined; // os.no-ffi: nothing can be started then, and the run has said so
    }
  }

  redirections(): readonly Redirection[] {
    const standard = [this.readEnd, this.memory, this.nowhere];
    const all = standard.map((source, target) => ({ target, source }));
    return this.order === undefined
      ? all
      : [...all, { target: ORDER_DESCRIPTOR, source: this.order }];
  }

  closeTheirs(): void {
    this.readEnd = close(this.readEnd);
    this.nowhere = close(this.nowhere);
    if (this.order !== undefined) this.order = close(this.order);
  }

  /** Tells the helper to leave. */
  hangUp(): void {
    this.writeEnd = close(this.writeEnd);
  }

  close(): void {
    this.closeTheirs();
    this.hangUp();
    this.memory = close(this.memory);
  }

  /** Without moving the place at which the helper writes. */
  read(): string {
    const bytes = new Uint8Array(LONGEST_ANSWER_BYTES);
    try {
      return new TextDecoder().decode(
        bytes.subarray(0, readSync(this.memory, bytes, { position: 0 })),
      );
    } catch {
      return ""; // EIO, ENOMEM: there is no answer then
    }
  }
}

/** @returns NONE where there is no room for it (ENOMEM, EFBIG) */
function keepInMemory(bytes: Uint8Array): number {
  const fd = moveHigh(sys.memoryFile(ORDER_MEMORY));
  if (fd === NONE) return NONE;
  try {
    for (let done = 0; done < bytes.length;) {
      done += writeSync(fd, bytes, done, bytes.length - done, done);
    }
    return fd;
  } catch {
    return close(fd); // EFBIG: the caller's limit for files holds in memory, too
  }
}

interface HelperRequest extends HelperOrder {
  readonly pid: number;
  readonly place: Place;
}

class Helper {
  readonly #request: HelperRequest;
  readonly #ended = Promise.withResolvers<HelperEnd>();
  readonly #began = monotonicNow();
  readonly #onAbort = (): void => this.#dismiss(STOPPED);
  #timer: Timer | undefined;
  #isDismissed = false;

  constructor(request: HelperRequest) {
    this.#request = request;
    request.signal?.addEventListener("abort", this.#onAbort);
    this.#wait(request.timeoutMs + ANSWER_LIMIT_MS, this.#began, () => this.#dismiss(this.#late()));
  }

  get ended(): Promise<HelperEnd> {
    return this.#ended.promise;
  }

  /** @param change  undefined: somebody else has collected it */
  end(change: Collected | undefined): void {
    this.#timer?.cancel();
    const answer = this.#request.place.read();
    this.#settle({ kind: "ended", answer, found: describeEnd(change) });
    this.#request.place.close();
  }

  #settle(end: HelperEnd): void {
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
    this.#ended.resolve(end);
  }

  /** It is not waited for any more: it leaves by itself, or it is killed. */
  #dismiss(end: HelperEnd): void {
    if (this.#isDismissed) return;
    this.#isDismissed = true;
    this.#timer?.cancel();
    this.#settle(end);
    this.#request.place.hangUp();
    this.#wait(LEAVING_MS, monotonicNow(), () => this.#kill());
    // Its own command may have stopped it, and we may be gone before KILL comes.
    signalChild(this.#request.pid, SIGCONT, PROTECTED_NOBODY);
  }

  /** Not collected yet, or the timer would not be there: the pid is its own. */
  #kill(): void {
    signalChild(this.#request.pid, SIGKILL, PROTECTED_NOBODY);
  }

  /** A timer is cut at 30 s and may come early: the clock decides. */
  #wait(limitMs: number, began: MonotonicAt, act: () => void): void {
    const leftMs = limitMs - spanMs(began, monotonicNow());
    if (leftMs <= 0) return act();
    this.#timer = wakeAfter(leftMs, () => this.#wait(limitMs, began, act));
  }

  #late(): HelperEnd {
    const { timeoutMs } = this.#request;
    const found = `no answer about the command within ${timeoutMs + ANSWER_LIMIT_MS} ms`;
    return { kind: "late", found };
  }
}

const PROTECTED_NOBODY = {
  self: process.pid,
  pids: new Set<number>(),
  verified: new Set<string>(),
};

function describeEnd(change: Collected | undefined): string {
  if (change === undefined) return "its helper is gone without an answer";
  if (change.kind === "signaled") return `its helper died of ${nameSignal(change.signal)}`;
  return `its helper left with status ${change.code} and without an answer`;
}

function notStarted(found: string): HelperEnd {
  return { kind: "not-started", found };
}

const STOPPED: HelperEnd = { kind: "stopped" };
