/**
 * Carries one run from its spawn to its end: turns what happens into events, feeds them to the pure
 * machine, and performs the actions that it answers with. Decides nothing itself.
 *
 * Clock: CLOCK_MONOTONIC. State after a crash of watchdog: the guard ends the tree.
 */
import { BURY_COMMAND, GUARD_DESCRIPTOR, GUARD_MEMORY } from "../core/burial.ts";
import type { ItemsFailure } from "../core/item-counts.ts";
import { decideNext } from "../core/run-machine.ts";
import {
  type DependencyFailure,
  FIRST_STATE,
  type LimitName,
  type RunAction,
  type RunEvent,
  type RunPolicy,
  type RunState,
} from "../core/run-state.ts";
import { SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT } from "../core/signals.ts";
import { type MonotonicAt, spanMs } from "../core/time.ts";
import { monotonicNow } from "../os/clock.ts";
import type { ProcessRow } from "../core/tree-members.ts";
import { faultPoint } from "../os/faults.ts";
import { holdsMemoryFileAt } from "../os/proc-look.ts";
import { readCommand } from "../os/proc.ts";
import { type ChildChange, collectChildren } from "../os/reaper.ts";
import { say } from "../os/say.ts";
import { stopAs } from "../os/signal-handlers.ts";
import { type Timer, wakeAfter } from "../os/timers.ts";
import { KillRounds } from "../tree/kill-rounds.ts";
import type { Tree } from "../tree/tree.ts";
import { messages } from "./messages.ts";
import type { RunLedger } from "./ledger.ts";

/** Members that end by themselves within this span after the main command are no leftovers. */
export const SETTLE_MS = 100;
/** The same where the guard of a nested run is among them: it ends that run's tree by itself. */
const BURIAL_MS = 10_000;
/** How long the handler of a key may run behind the death that the key has brought. */
const KEY_MS = 250;
const KEYS: readonly number[] = [SIGINT, SIGQUIT, SIGHUP];
/** How long a paused tree that a key has let go goes on, whoever wants it to stand still. */
const HEARD_MS = 5_000;
/** How long the output of a command that was made to end may take to reach its reader. */
export const DELIVERY_GRACE_MS = 2_000;

/** The output as the supervisor sees it. */
export interface SupervisedOutput {
  /**
   * Copies what is left, and resolves when it has arrived and the log is finished. Never rejects.
   */
  end(state: RunState): Promise<void>;
  /** Does not wait for readers any more. */
  abandon(): void;
}

/** The pause of the tree as the supervisor sees it. None of these throws. */
export interface SupervisedPause {
  freeze(): void;
  thaw(): void;
  /** Nobody is stopped or continued any more. */
  end(): void;
}

export interface SupervisorContext {
  readonly main: number;
  readonly tree: Tree;
  readonly policy: RunPolicy;
  readonly ledger: RunLedger;
  readonly output: SupervisedOutput;
  readonly pause: SupervisedPause;
  readonly signalMain: (signal: number) => void;
  /** Told of every child that was collected, so that helpers know of their own. */
  readonly onCollected: (change: ChildChange) => void;
  /** Told after each event: where the run stands now. Must not throw. */
  readonly onState: (state: RunState) => void;
}

/** How long the disk of the log may take once nobody waits for a reader. */
export const LOG_GRACE_MS = 2_000;

export class Supervisor {
  readonly #context: SupervisorContext;
  readonly #killRounds: KillRounds;
  readonly #queue: RunEvent[] = [];
  readonly #finished = Promise.withResolvers<RunState>();
  readonly #timers: Timer[] = [];
  #state: RunState = FIRST_STATE;
  #isFeeding = false;
  #hasCollectedMain = false;
  #keyUntil: MonotonicAt | undefined;
  #heardAt: MonotonicAt | undefined;
  #settlingSince: MonotonicAt | undefined;
  readonly #buriers = new Set<string>();
  #collectedCpuMs = 0;

  constructor(context: SupervisorContext) {
    this.#context = context;
    this.#killRounds = new KillRounds(context.tree, {
      collect: () => this.collect(),
      onHit: (count) => context.ledger.countKilled(count),
      onEmpty: () => this.feed({ kind: "tree-empty" }),
      onBug: (error) => context.ledger.noteBug(error),
      onStuck: (rows) => {
        context.ledger.noteUnsignalable(rows);
        this.feed({ kind: "tree-stuck" });
      },
    });
  }

  /** Resolves once, when the run is over. */
  get finished(): Promise<RunState> {
    return this.#finished.promise;
  }

  get state(): RunState {
    return this.#state;
  }

  /** From the end of the command or the first KILL on. */
  get isEnding(): boolean {
    return this.#state.end !== undefined || this.#state.isKilling;
  }

  /** CPU time of the processes that were collected here. */
  get collectedCpuMs(): number {
    return this.#collectedCpuMs;
  }

  /** The record of a lease names another run. */
  loseLease(): void {
    this.feed({ kind: "lease-lost" });
  }

  reachLimit(limit: LimitName): void {
    this.feed({ kind: "limit-reached", limit });
  }

  failDependency(failure: DependencyFailure): void {
    this.feed({ kind: "dependency-failed", failure });
  }

  failItems(failure: ItemsFailure): void {
    this.feed({ kind: "items-failed", failure });
  }

  /** Whoever wants one asks again and again: what has just heard a key is left the time to act. */
  wantPause(): void {
    const heardAt = this.#heardAt;
    if (heardAt !== undefined && spanMs(heardAt, monotonicNow()) < HEARD_MS) return;
    this.feed({ kind: "pause-wanted" });
  }

  endPause(): void {
    this.feed({ kind: "pause-over" });
  }

  /** Events are taken one after the other, also those that an action brings about. */
  feed(event: RunEvent): void {
    this.#queue.push(event);
    if (this.#isFeeding) return;
    this.#isFeeding = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const taken = next;
      this.#attempt(() => this.#take(taken));
    }
    this.#isFeeding = false;
  }

  #take(event: RunEvent): void {
    const step = decideNext(this.#state, event, this.#context.policy);
    const isLetGo = this.#state.isPaused && !step.state.isPaused;
    if (isLetGo && event.kind === "signal-received") this.#heardAt = monotonicNow();
    this.#state = step.state;
    for (const action of step.actions) this.#attempt(() => this.#perform(action));
    this.#attempt(() => this.#context.onState(this.#state));
  }

  /**
   * Collects every child that has changed state; called at SIGCHLD, by the sweep, and between
   * rounds of KILL.
   */
  collect(): void {
    this.#attempt(() => faultPoint("reap", { hasMain: !this.#hasCollectedMain }));
    for (const change of collectChildren()) this.#attempt(() => this.#note(change));
    if (this.#state.end !== undefined) this.#attempt(() => this.#lookAtTree());
  }

  /**
   * Trouble of our own in one action must not cost the others: a TERM that failed is followed by
   * KILL all the same.
   */
  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#context.ledger.noteBug(error);
    }
  }

  #note(change: ChildChange): void {
    const isMain = change.pid === this.#context.main && !this.#hasCollectedMain;
    if (change.kind === "stopped") {
      if (isMain) this.feed({ kind: "main-stopped", signal: change.signal });
      return;
    }
    this.#context.onCollected(change);
    this.#collectedCpuMs += change.usage.cpuMs;
    this.#context.tree.forget(change.pid);
    this.#hasCollectedMain ||= isMain;
    if (!isMain) return this.#context.ledger.noteEnded(change);
    const end =
      change.kind === "exited"
        ? ({ kind: "exited", code: change.code } as const)
        : ({ kind: "signaled", signal: change.signal } as const);
    this.feed({ kind: "main-ended", end });
  }

  #perform(action: RunAction): void {
    const { ledger, signalMain } = this.#context;
    switch (action.kind) {
      case "signal-main":
        ledger.noteSignal(action.signal, "command", 1, action.why);
        return signalMain(action.signal);
      case "signal-tree":
        return this.#ask(action);
      case "kill-tree":
        ledger.noteKilling(action.why);
        this.#context.pause.end();
        return this.#killRounds.begin();
      case "freeze-tree":
        return this.#context.pause.freeze();
      case "thaw-tree":
        return this.#context.pause.thaw();
      case "start-grace":
        return this.#startGrace(action.graceMs);
      case "stop-self":
        return stopAs(action.signal);
      case "tell-interrupt-ignored":
        return say(messages.interruptIgnored());
      case "look-at-tree":
        return this.#lookAtTree();
      case "note-leftovers":
        return ledger.noteLeftovers(this.#context.tree.members());
      case "end-output":
        return this.#endOutput(action.isPatient);
      case "abandon-output":
        return this.#abandonOutput();
      case "finish":
        return this.#finish();
    }
  }

  #ask(action: Extract<RunAction, { kind: "signal-tree" }>): void {
    const { tree, ledger } = this.#context;
    faultPoint("tree.ask", { signal: action.signal, why: action.why });
    const signals = action.continues ? [action.signal, SIGCONT] : [action.signal];
    const tally = tree.ask(signals);
    ledger.noteSignal(action.signal, "tree", tally.sent.length, action.why);
    ledger.noteUnsignalable(tally.refused);
    for (const { error } of tally.faults) ledger.noteBug(error);
    if (action.signal === SIGKILL) this.#killRounds.begin();
  }

  #startGrace(graceMs: number): void {
    const until = (monotonicNow() + graceMs) as MonotonicAt;
    const look = (): void => {
      const remainingMs = spanMs(monotonicNow(), until);
      if (remainingMs <= 0) return this.feed({ kind: "grace-over" });
      this.#timers.push(wakeAfter(remainingMs, look));
    };
    look();
  }

  /**
   * Right after collecting: is anybody of the job left? What ends by itself in a moment is no
   * leftover.
   */
  #lookAtTree(): void {
    if (this.#state.phase !== "running") return;
    if (this.#awaitsKey()) return;
    if (this.#context.tree.isEmpty()) return this.feed({ kind: "tree-empty" });
    if (this.#state.hasLeftovers) return;
    const now = monotonicNow();
    this.#settlingSince ??= now;
    const remainingMs = this.#settleMs() - spanMs(this.#settlingSince, now);
    if (remainingMs <= 0 || this.#state.isKilling) return this.feed({ kind: "members-left" });
    this.#timers.push(wakeAfter(Math.min(remainingMs, SETTLE_MS), () => this.collect()));
  }

  #settleMs(): number {
    // One that stands still comes to no end by itself.
    const moving = this.#context.tree.members().filter(({ state }) => state !== "T");
    const burying = moving.filter((row) => this.#isBurying(row));
    return burying.length > 0 ? BURIAL_MS : SETTLE_MS;
  }

  /**
   * Whether this is the guard of a nested run that was killed, at work on what that run has left.
   * It has no command line while it becomes its program, nor one that may be read in state D: then
   * its memory file tells it. It has neither any more while it ends, so who was once seen stays
   * one. Nobody is signalled or spared by this: it is only waited for.
   */
  #isBurying(row: ProcessRow): boolean {
    const identity = `${row.pid}@${row.startTicks}`;
    const isNamed = readCommand(row.pid).includes(BURY_COMMAND);
    const isGuard = isNamed || holdsMemoryFileAt(row.pid, GUARD_DESCRIPTOR, GUARD_MEMORY);
    if (isGuard) this.#buriers.add(identity);
    return this.#buriers.has(identity);
  }

  /**
   * A command that died of INT, QUIT or HUP at a terminal: the same key is on its way to us, and
   * says whether a person asked for it.
   */
  #awaitsKey(): boolean {
    const { end } = this.#state;
    if (!this.#context.policy.hasTerminal || end?.kind !== "signaled") return false;
    if (!KEYS.includes(end.signal) || this.#state.seen.includes(end.signal)) return false;
    const now = monotonicNow();
    this.#keyUntil ??= (now + KEY_MS) as MonotonicAt;
    if (now >= this.#keyUntil) return false;
    this.#timers.push(wakeAfter(spanMs(now, this.#keyUntil), () => this.collect()));
    return true;
  }

  #endOutput(isPatient: boolean): void {
    const { output, ledger } = this.#context;
    if (!isPatient) this.#timers.push(wakeAfter(DELIVERY_GRACE_MS, () => this.#abandonOutput()));
    void output
      .end(this.#state)
      .catch((error: unknown) => ledger.noteBug(error))
      .then(() => this.feed({ kind: "output-ended" }));
  }

  /** What has not been delivered is lost; the log is finished, if its disk answers in time. */
  #abandonOutput(): void {
    this.#context.output.abandon();
    this.#timers.push(wakeAfter(LOG_GRACE_MS, () => this.feed({ kind: "output-ended" })));
  }

  #finish(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#context.pause.end();
    this.#killRounds.end();
    this.#finished.resolve(this.#state);
  }
}
