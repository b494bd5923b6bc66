/**
 * What a repair is asked for and what it answers: plain data and seams, handed in by the room
 * above. Opens no file and reads no clock.
 */
import type { LeaseKey } from "../core/lease-key.ts";
import type { LimitDecision } from "../core/repair-limits.ts";
import type { RepairAction, RepairOption, RepairView } from "../core/repair-plan.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { KeptProcesses } from "../core/survivors-view.ts";
import type { AuditAct } from "../journal/audit.ts";

/** As the words of the line give them. */
export interface RepairOptions {
  /** None: every lease of the state directory. */
  readonly keys: readonly LeaseKey[];
  /** `--apply`: whatever the verdicts allow without a person. */
  readonly isApplying: boolean;
  /** `--approve`: the one option of this name. */
  readonly approve: string | undefined;
  /** `--set-generation`, with exactly one key: the number is the person's approval. */
  readonly setGeneration: number | undefined;
  /** Milliseconds in which nobody acts twice on one key without an approval. */
  readonly repairIntervalMs: number;
  readonly maxRepairs: number;
  readonly isJson: boolean;
}

export interface RepairRequest {
  /** Absolute and checked; it need not be there. */
  readonly stateDirectory: string;
  readonly options: RepairOptions;
  /** Of tree/scan-worker.ts. */
  readonly scanUrl: string | URL;
  /** What was registered by `watchdog keep` within a run. */
  readonly readKept: (runId: string) => KeptProcesses;
  /** What the policy says to whoever asks (core/policy.ts). */
  readonly decideRight: (
    right: "repair" | "approve",
  ) => { readonly kind: "granted" } | { readonly kind: "missing"; readonly what: string };
  readonly build: RunRecord["watchdog"];
  /** Told while it goes on, for stderr. */
  readonly onStep: (line: string) => void;
  /** The words for it, of `cli/`. */
  readonly render: (report: RepairReport, options: RepairOptions) => string;
  /**
   * A patrol: generations are marked whose owner and tree are dead, and nothing else is done,
   * whatever the evidence is by then.
   */
  readonly isOnlyMarking?: boolean;
  /** Between TERM and KILL for an owner; undefined: OWNER_GRACE_MS. */
  readonly ownerGraceMs?: number;
}

export interface RepairAnswer {
  /** For stdout. */
  readonly text?: string;
  /** For stderr, without who says them. */
  readonly lines: string[];
  readonly code: number;
}

/** An option with the name of its plan; null: nothing can be done, or a number is missing. */
export interface NamedOption extends RepairOption {
  readonly planId: string | null;
}

/** A lease that a repair is about. */
export interface RepairLease extends RepairView {
  readonly key: LeaseKey;
  readonly options: readonly NamedOption[];
  /** Why nothing is done about it now, although the verdict allows it; undefined: nothing stops. */
  readonly limit: Exclude<LimitDecision, { kind: "go" }> | undefined;
  /** The smallest number that `--set-generation` may give; undefined: it is not offered. */
  readonly leastGeneration: number | undefined;
}

/** One act of this repair, and what came of it. */
export interface RepairAct {
  readonly key: LeaseKey;
  readonly action: RepairAction;
  /** Null: the evidence has changed, and nothing was begun. */
  readonly planId: string | null;
  readonly end: "done" | "failed" | "refused";
  /** From the closed list of whoever decided. */
  readonly because: ActReason;
  /** One clause for people. */
  readonly text: string;
}

export type ActReason =
  | "continued"
  | "marked"
  | "released-by-owner"
  | "noted"
  | "set-aside"
  | "generation-set"
  | "taken-by-another"
  /** The key is free or held by now: nothing is left to be repaired. */
  | "settled-meanwhile"
  | "evidence-changed"
  | "lock-busy"
  | "lock-unaskable"
  | "fenced-operation"
  | "owner-gone"
  | "owner-unsignalable"
  | "owner-still-stopped"
  | "owner-still-there"
  | "survivors-remain"
  | "generation-too-small"
  | "generation-known"
  | "too-many-kept"
  | "system-error";

export interface RepairReport {
  readonly stateDirectory: string;
  readonly mode: "dry-run" | "apply" | "approve";
  /** Another repair is at work at this moment. */
  readonly isBusy: boolean;
  /** The suspicious ones, and those that were asked for by name; as found before any act. */
  readonly leases: readonly RepairLease[];
  /** Acts of earlier repairs without an end. */
  readonly interrupted: readonly InterruptedAct[];
  readonly acts: readonly RepairAct[];
  /** False: nothing has the id that was approved, now. */
  readonly isPlanKnown: boolean;
  readonly troubles: readonly string[];
}

export interface InterruptedAct {
  readonly act: AuditAct;
  /**
   * `open`: it stays so, nothing is written now. `at-work`: it is being done at this moment, by
   * another repair. `completed`: all was done but its last line. `given-up`: what is left of it
   * follows from the evidence of now.
   */
  readonly settled: "open" | "at-work" | "completed" | "given-up";
  /** The run whose owner it has asked to end, and that still holds its key. */
  readonly askedRun: string | undefined;
}
