/**
 * One command with its tree, carried to its end: what `fence`, `retry` and the `cmd:` probe run.
 * While it runs this process is the subreaper, so that a limit can end everything that the command
 * has started. Refuses to know why it is run, and what its status means.
 *
 * Always: the caller's descriptors, signals, arguments and environment are what they would be
 * without us. In the shared group it stays in the caller's own process group (a member of the run
 * stays where its watchdog can prove it). Nobody is signalled but what descends from the command;
 * who was there before us, what `watchdog keep` has started, and what has outlived the end of an
 * earlier operation, is not. What it leaves behind when it ends by itself is left alone, or ended,
 * as the request says. Clock: CLOCK_MONOTONIC. State after a crash of this process: the command
 * goes on.
 */
import type { CommandEnd } from "../core/run-state.ts";
import { HANDLED_SIGNALS } from "../core/run-state.ts";
import {
  SIGCONT,
  SIGINT,
  SIGQUIT,
  SIGTERM,
  SIGTSTP,
  SIGTTIN,
  SIGTTOU,
  SIGWINCH,
  SIGXCPU,
} from "../core/signals.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { identify, type ProcessRow } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { becomeReaper, type ChildChange, collectChildren, watchChildren } from "../os/reaper.ts";
import { afterQueuedSignals, handleSignals } from "../os/signal-handlers.ts";
import { type Redirection, type SpawnResult, spawnProcess } from "../os/spawn.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { KillRounds } from "./kill-rounds.ts";
import { nameProcesses, type NamedProcess, Tree } from "./tree.ts";

/** Between TERM and KILL at the limit, where the request names no other span. */
export const OPERATION_GRACE_MS = 10_000;

/** How long a signal that may have come with the end is waited for (os/signal-handlers.ts). */
const LISTEN_MS = 20;
const LISTEN_AT_TERMINAL_MS = 2;

/** Members that end by themselves within this span after the main process are no leftovers. */
const SETTLE_MS = 100;

/** The kernel stops and continues us with the whole group; nothing is to be passed on. */
const JOB_CONTROL: readonly number[] = [SIGTSTP, SIGTTIN, SIGTTOU];
/** At a terminal the kernel tells the whole group by itself. */
const OF_TERMINAL: readonly number[] = [SIGINT, SIGQUIT, SIGCONT, SIGWINCH];
/** For everybody, as a nested watchdog is trusted to tell its own tree. */
const TO_ALL: readonly number[] = [SIGTERM, SIGINT, SIGQUIT];

export interface OperationRequest {
  /** Program and arguments as bytes. */
  readonly argv: readonly Uint8Array[];
  readonly environment: readonly Uint8Array[];
  readonly inherited: Inheritance;
  /** Beside the caller's: of a fence, for one. The operation inherits them. */
  readonly descriptors: readonly number[];
  /** On CLOCK_MONOTONIC; undefined: no limit. */
  readonly timeoutMs: number | undefined;
  /** Between TERM and KILL at the limit; OPERATION_GRACE_MS unless given. */
  readonly graceMs?: number;
  /** `shared` unless given. In a session of its own it hears of no key but through us. */
  readonly group?: "shared" | "own-session";
  /**
   * What becomes of those that are left when the main process has ended by itself: they go on
   * (`leave`, unless given); they get KILL until nobody is left, at once (`end`), when the grace
   * after TERM is over (`ask`), or where they have not ended by themselves up to the limit, as a
   * program that works on behind its own status wants it (`await`). The end stays that of the main
   * process.
   */
  readonly leftovers?: "leave" | "end" | "ask" | "await";
  /** Told before leftovers are ended, but for `await`. */
  readonly onLeftovers?: (rows: readonly NamedProcess[]) => void;
  /** Descriptors of the operation that are not the caller's: an answer that we read. */
  readonly redirections?: readonly Redirection[];
  /** What `watchdog keep` has started, out of what is there now. */
  readonly findKept: (rows: readonly ProcessRow[]) => ReadonlySet<number>;
  /** Told when the limit is reached, before anybody is signalled. */
  readonly onTimeout: () => void;
  readonly onBug: (error: unknown) => void;
}

export type OperationEnd =
  | Extract<SpawnResult, { kind: "refused" }>
  | {
      readonly kind: "ended";
      /** Undefined: it outlived even KILL. */
      readonly end: CommandEnd | undefined;
      readonly isTimedOut: boolean;
      /** Those that came to us meanwhile and were passed on, each named once. */
      readonly signals: ReadonlySet<number>;
      /** Members that outlived KILL: what they have inherited (a fence) they keep. */
      readonly unended: readonly NamedProcess[];
      /** What goes on after an operation that has ended by itself, with what it has inherited. */
      readonly left: readonly NamedProcess[];
    };

/**
 * Starts the operation and resolves when it has ended: its main process, or after the limit
 * everything that it has started. Operations may follow each other, and several may run at the same
 * time where each is a watchdog of its own, below which stays what its command leaves.
 * @throws WatchdogError "os.no-ffi"
 */
export function runOperation(request: OperationRequest): Promise<OperationEnd> {
  // Before the spawn: a signal that comes in between waits for the main loop, and then for us.
  attendProcess(request.inherited);
  const spawned = spawn(request);
  if (spawned.kind === "refused") return Promise.resolve(spawned);
  const operation = new Operation(request, spawned.pid);
  attended.operations.add(operation);
  return operation.attend(attended.missed.splice(0));
}

/**
 * Signals that come while no operation runs are told to `onSignal` from now on, with those that
 * have come since the last one ended; they would wait for the next one otherwise.
 * @returns ends it
 */
export function listenBetween(
  inherited: Inheritance,
  onSignal: (signal: number) => void,
): () => void {
  attendProcess(inherited);
  attended.between = onSignal;
  for (const signal of attended.missed.splice(0)) onSignal(signal);
  return () => {
    if (attended.between === onSignal) attended.between = undefined;
  };
}

/** Of this process there is one; who is collected here is told to all operations of now. */
const attended: {
  readonly operations: Set<Operation>;
  /** Members of operations that are over, by pid and start: told as theirs, and nobody else's. */
  readonly outlived: Set<string>;
  isAttending?: true;
  between?: ((signal: number) => void) | undefined;
  missed: number[];
} = { operations: new Set(), outlived: new Set(), missed: [] };

/** Once for all operations: of two listeners one would collect the other's children. */
function attendProcess({ ignoredSignals }: Inheritance): void {
  if (attended.isAttending) return;
  attended.isAttending = true;
  becomeReaper();
  const passed = HANDLED_SIGNALS.filter((signal) => !JOB_CONTROL.includes(signal));
  handleSignals(passed, ignoredSignals, (signal) => {
    for (const operation of attended.operations) operation.pass(signal);
    if (attended.operations.size > 0) return;
    // Between two operations it is for who listens, or for the next one.
    if (attended.between === undefined) attended.missed.push(signal);
    else attended.between(signal);
  });
  watchChildren(lookAtChildren);
}

/** One reaper for all: who is collected by one operation may be the main process of another. */
function collectAll(): void {
  for (const change of collectChildren()) {
    for (const operation of attended.operations) operation.note(change);
  }
}

function lookAtChildren(): void {
  for (const operation of attended.operations) operation.lookAtChildren();
}

/** The main processes of the other operations: spared, with everything below them. */
function findOthers(own: Operation): ReadonlySet<number> {
  if (attended.operations.size < 2) return NOBODY;
  const others = [...attended.operations].filter((one) => one !== own);
  return new Set(others.flatMap(({ living }) => living ?? []));
}

function findOutlived(rows: readonly ProcessRow[]): readonly number[] {
  if (attended.outlived.size === 0) return [];
  return rows.filter((row) => attended.outlived.has(identify(row))).map(({ pid }) => pid);
}

function spawn(request: OperationRequest): SpawnResult {
  const { argv, environment, inherited, descriptors, redirections = [] } = request;
  const { group = "shared" } = request;
  return spawnProcess(
    { argv, environment, group, redirections },
    { ...inherited, descriptors: [...inherited.descriptors, ...descriptors] },
  );
}

class Operation {
  readonly #request: OperationRequest;
  readonly #main: number;
  readonly #tree: Tree;
  readonly #killRounds: KillRounds;
  readonly #began = monotonicNow();
  readonly #signals = new Set<number>();
  readonly #finished = Promise.withResolvers<OperationEnd>();
  #timer: Timer | undefined;
  #end: CommandEnd | undefined;
  #isTimedOut = false;
  #isEndingLeftovers = false;
  #settlingSince: MonotonicAt | undefined;
  #isOver = false;

  constructor(request: OperationRequest, main: number) {
    this.#request = request;
    this.#main = main;
    this.#tree = new Tree({
      main,
      inborn: request.inherited.inbornChildren,
      // No cookie proves anything here: others of the same run carry it, too.
      runId: crypto.randomUUID(),
      findHelpers: () => findOthers(this),
      findKept: (rows) => new Set([...request.findKept(rows), ...findOutlived(rows)]),
    });
    this.#killRounds = new KillRounds(this.#tree, {
      collect: () => collectAll(),
      onHit: () => undefined,
      onEmpty: () => this.#finish([]),
      onBug: request.onBug,
      onStuck: (rows) => this.#finish(rows),
    });
  }

  /** Its main process; undefined: it was collected, and its pid may be somebody else's. */
  get living(): number | undefined {
    return this.#end === undefined ? this.#main : undefined;
  }

  /** @param missed  signals that came before it was there */
  attend(missed: readonly number[]): Promise<OperationEnd> {
    for (const signal of missed) {
      this.#signals.add(signal);
      this.#tell(signal);
    }
    this.#attempt(() => this.#arm());
    this.lookAtChildren();
    return this.#finished.promise;
  }

  lookAtChildren(): void {
    this.#attempt(() => this.#collect());
  }

  /** Each signal that comes to us is passed on once, as long as there is somebody to tell. */
  pass(signal: number): void {
    this.#signals.add(signal);
    if (this.#isOver) return;
    const { inherited, group = "shared" } = this.#request;
    const isTold = group === "shared" && inherited.hasTerminal && OF_TERMINAL.includes(signal);
    if (!isTold) this.#tell(signal);
  }

  #tell(signal: number): void {
    if (signal === SIGXCPU) return;
    this.#attempt(() => {
      if (TO_ALL.includes(signal)) this.#ask([signal]);
      else this.#tree.signalMain(signal);
    });
  }

  #ask(signals: readonly number[]): void {
    for (const { error } of this.#tree.ask(signals).faults) this.#request.onBug(error);
  }

  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#request.onBug(error);
    }
  }

  #collect(): void {
    collectAll();
    if (this.#isOver) return;
    if (this.#isTimedOut) {
      if (this.#tree.isEmpty()) this.#finish([]);
    } else if (this.#end !== undefined) {
      this.#finishByItself();
    }
  }

  #finishByItself(): void {
    const { leftovers = "leave", onLeftovers } = this.#request;
    if (leftovers === "leave" || this.#tree.isEmpty()) return this.#finish([]);
    if (leftovers === "await" || this.#isEndingLeftovers) return;
    if (leftovers === "ask" && this.#isSettling()) return;
    this.#isEndingLeftovers = true;
    this.#timer?.cancel();
    onLeftovers?.(nameProcesses(this.#tree.members()));
    if (leftovers === "end") return this.#killRounds.begin();
    this.#armKill(monotonicNow());
    this.#ask([SIGTERM, SIGCONT]);
  }

  /** What ends by itself in a moment is no leftover. */
  #isSettling(): boolean {
    const now = monotonicNow();
    this.#settlingSince ??= now;
    const leftMs = SETTLE_MS - spanMs(this.#settlingSince, now);
    if (leftMs <= 0) return false;
    this.#timer?.cancel();
    this.#timer = wakeAfter(leftMs, () => this.lookAtChildren());
    return true;
  }

  /** A child of this process was collected: its own, or that of another operation. */
  note(change: ChildChange): void {
    if (change.kind === "stopped") return;
    this.#tree.forget(change.pid);
    if (change.pid !== this.#main || this.#end !== undefined) return;
    this.#end =
      change.kind === "exited"
        ? { kind: "exited", code: change.code }
        : { kind: "signaled", signal: change.signal };
  }

  /** A timer is cut at 30 s and may come early: the clock decides. */
  #arm(): void {
    const { timeoutMs } = this.#request;
    if (timeoutMs === undefined || this.#isOver || this.#isEndingLeftovers) return;
    const leftMs = timeoutMs - spanMs(this.#began, monotonicNow());
    if (leftMs > 0) this.#timer = wakeAfter(leftMs, () => this.#attempt(() => this.#arm()));
    else this.#reachLimit();
  }

  #reachLimit(): void {
    this.#collect();
    if (this.#isOver || this.#isEndingLeftovers) return;
    this.#isEndingLeftovers = this.#end !== undefined;
    this.#isTimedOut = this.#end === undefined;
    this.#armKill(monotonicNow());
    if (this.#isTimedOut) this.#request.onTimeout();
    // A stopped process hears of TERM only when it goes on.
    this.#ask([SIGTERM, SIGCONT]);
    this.#collect();
  }

  #armKill(askedAt: MonotonicAt): void {
    const { graceMs = OPERATION_GRACE_MS } = this.#request;
    const leftMs = graceMs - spanMs(askedAt, monotonicNow());
    this.#timer = wakeAfter(leftMs, () => {
      if (spanMs(askedAt, monotonicNow()) < graceMs) this.#armKill(askedAt);
      else this.#killRounds.begin();
    });
  }

  /** Whoever dies of a signal may have got it with us; keys are for the whole group. */
  #listenMs(): number {
    if (this.#end?.kind === "signaled") return LISTEN_MS;
    return this.#request.inherited.hasTerminal ? LISTEN_AT_TERMINAL_MS : 0;
  }

  #finish(unended: readonly ProcessRow[]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const row of unended) attended.outlived.add(identify(row));
    this.#timer?.cancel();
    this.#killRounds.end();
    const isTimedOut = this.#isTimedOut;
    const hasLeft = !isTimedOut && !this.#isEndingLeftovers && this.#tree.hasChildren();
    const end: OperationEnd = {
      kind: "ended",
      end: this.#end,
      isTimedOut,
      signals: this.#signals,
      unended: nameProcesses(unended),
      left: hasLeft ? nameProcesses(this.#tree.members()) : [],
    };
    // What Ctrl-C has told the whole group may be heard of after the death that it has caused.
    afterQueuedSignals(this.#listenMs(), () => {
      attended.operations.delete(this);
      this.#finished.resolve(end);
    });
  }
}

const NOBODY: ReadonlySet<number> = new Set();
