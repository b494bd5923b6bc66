/**
 * The words of a run's machine: what can happen (events), what can be done (actions), what a person
 * has asked for (policy), and where a run stands (state). Plain data.
 */
import type { ItemsFailure } from "./item-counts.ts";
import type { LeftoverPolicy } from "./run-options.ts";
import {
  SIGALRM,
  SIGCONT,
  SIGHUP,
  SIGINT,
  SIGIO,
  SIGPROF,
  SIGQUIT,
  SIGTERM,
  SIGTSTP,
  SIGTTIN,
  SIGTTOU,
  SIGUSR1,
  SIGUSR2,
  SIGVTALRM,
  SIGWINCH,
  SIGXCPU,
} from "./signals.ts";

export type CommandEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signaled"; readonly signal: number };

export type LimitName = "timeout" | "idle" | "not-after";

/** What the main command does about INT, read from `/proc` at the moment of the keystroke. */
export type InterruptHandling = "default" | "caught" | "ignored" | "unread";

export type RunEvent =
  | { readonly kind: "main-ended"; readonly end: CommandEnd }
  | { readonly kind: "main-stopped"; readonly signal: number }
  | {
      readonly kind: "signal-received";
      readonly signal: number;
      readonly interrupt: InterruptHandling;
      readonly isTerminalGone: boolean;
    }
  | { readonly kind: "limit-reached"; readonly limit: LimitName }
  /** The record names another run: somebody else may be working under the key already. */
  | { readonly kind: "lease-lost" }
  /** A dependency without which the job must not go on: its circuit has opened, or for good. */
  | { readonly kind: "dependency-failed"; readonly failure: DependencyFailure }
  /** So many of the job's items have failed that it must not go on. */
  | { readonly kind: "items-failed"; readonly failure: ItemsFailure }
  /** A dependency is away, and the job is to stand still until it is back. */
  | { readonly kind: "pause-wanted" }
  /** None of them is away any more. */
  | { readonly kind: "pause-over" }
  | { readonly kind: "grace-over" }
  | { readonly kind: "members-left" }
  | { readonly kind: "tree-empty" }
  | { readonly kind: "tree-stuck" }
  | { readonly kind: "output-ended" };

/** Why a signal was sent; stored in the record. */
export type SignalReason =
  | "forwarded"
  | "hung-up"
  | "limit"
  | "leftover"
  | "grace-over"
  | "second-request"
  | "lease-lost"
  | "dependency-down"
  | "items-failed";

/** Which dependency has ended the run, and why it counts as down. */
export interface DependencyFailure {
  /** Of its circuit. */
  readonly name: string;
  /** `circuit-opened` where the job is stopped at once, else the bound that was reached. */
  readonly because: "circuit-opened" | "max-attempts" | "max-elapsed";
}

export type RunAction =
  | { readonly kind: "signal-main"; readonly signal: number; readonly why: SignalReason }
  | {
      readonly kind: "signal-tree";
      readonly signal: number;
      readonly why: SignalReason;
      /** CONT afterwards, so that a stopped process can act on it. */
      readonly continues: boolean;
    }
  | { readonly kind: "kill-tree"; readonly why: SignalReason }
  | { readonly kind: "start-grace"; readonly graceMs: number }
  | { readonly kind: "stop-self"; readonly signal: number }
  | { readonly kind: "tell-interrupt-ignored" }
  | { readonly kind: "look-at-tree" }
  /** STOP to every member that is not stopped already, until all of them stand still. */
  | { readonly kind: "freeze-tree" }
  /** CONT to those that were stopped by `freeze-tree`, and to nobody else. */
  | { readonly kind: "thaw-tree" }
  | { readonly kind: "note-leftovers" }
  | { readonly kind: "end-output"; readonly isPatient: boolean }
  | { readonly kind: "abandon-output" }
  | { readonly kind: "finish" };

export interface RunPolicy {
  readonly hasTerminal: boolean;
  /** `--kill-after` as given on the line; undefined: only watchdog's own requests escalate. */
  readonly killAfterMs: number | undefined;
  /** Of watchdog's own requests, where nothing stands on the line. */
  readonly defaultGraceMs: number;
  readonly limitSignal: number;
  readonly leftovers: LeftoverPolicy;
}

/** Who asked the run to end, first one wins: the reason of outcome `stopped`. */
export type StopRequest = "terminated" | "interrupted" | "quit" | "hung-up";

export interface RunState {
  /**
   * running → (asked) → killing; `delivering`: the tree is gone, output is on its way to its
   * reader.
   */
  readonly phase: "running" | "delivering" | "finished";
  readonly end: CommandEnd | undefined;
  readonly limit: LimitName | undefined;
  readonly hasLostLease: boolean;
  readonly dependency: DependencyFailure | undefined;
  readonly itemsFailure: ItemsFailure | undefined;
  /** The tree stands still, or is being made to. */
  readonly isPaused: boolean;
  readonly stop: StopRequest | undefined;
  /**
   * Keys or hang-ups that the kernel delivered itself: they count only if the command died of them.
   */
  readonly seen: readonly number[];
  readonly isAsked: boolean;
  readonly isKilling: boolean;
  readonly hasGrace: boolean;
  readonly isStuck: boolean;
  readonly hasLeftovers: boolean;
  /** Nobody waits for the reader of the output any more. */
  readonly hasAbandonedOutput: boolean;
  readonly ignoredInterrupts: number;
}

export interface Step {
  readonly state: RunState;
  readonly actions: readonly RunAction[];
}

export const FIRST_STATE: RunState = {
  phase: "running",
  end: undefined,
  limit: undefined,
  hasLostLease: false,
  dependency: undefined,
  itemsFailure: undefined,
  isPaused: false,
  stop: undefined,
  seen: [],
  isAsked: false,
  isKilling: false,
  hasGrace: false,
  isStuck: false,
  hasLeftovers: false,
  hasAbandonedOutput: false,
  ignoredInterrupts: 0,
};

/** The signals that are handled at all; those that were ignored at the start stay ignored. */
export const HANDLED_SIGNALS: readonly number[] = [
  SIGHUP,
  SIGINT,
  SIGQUIT,
  SIGTERM,
  SIGTSTP,
  SIGTTIN,
  SIGTTOU,
  SIGCONT,
  SIGWINCH,
  SIGUSR1,
  SIGUSR2,
  SIGALRM,
  SIGVTALRM,
  SIGPROF,
  SIGIO,
  SIGXCPU,
];
