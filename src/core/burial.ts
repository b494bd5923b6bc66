/**
 * What is done about a run whose watchdog was killed: whether its tree is ended, and what its
 * record says. Pure; the guard acts on it (run/bury.ts), and whoever else finds a dead run writes
 * the same record.
 */
import type { LeaseRecord, SlotRunState } from "./lease-record.ts";
import type { LeftoverPolicy } from "./run-options.ts";
import type { Leftover, NamedProcess, RunRecord } from "./run-record.ts";
import type { CommandEnd } from "./run-state.ts";
import { nameSignal } from "./signals.ts";

/** The word by which a guard starts its burial: `watchdog __bury RUN_ID STATE_DIR`. */
export const BURY_COMMAND = "__bury";

/** The name of the memory file that a watchdog and its guard share (memfd_create(2)). */
export const GUARD_MEMORY = "watchdog-guard";
/** The descriptor under which a guard has it: so one is told from everybody else. */
export const GUARD_DESCRIPTOR = 8;

export interface BurialFacts {
  /** How the main command ended; null: it lived, or nobody could see its end any more. */
  readonly mainEnd: CommandEnd | null;
  readonly phase: SlotRunState;
  readonly leftovers: LeftoverPolicy;
  /** `--guard-grace`: milliseconds between TERM and KILL; 0: KILL at once. */
  readonly guardGraceMs: number;
}

export type BurialDecision =
  | {
      readonly kind: "end";
      readonly because: "nobody-watches" | "was-being-ended" | "leftovers-kill";
      /** Undefined: KILL at once. */
      readonly graceMs: number | undefined;
    }
  /** Nobody is signalled. */
  | { readonly kind: "leave"; readonly because: "leftovers-wait" | "leftovers-leave" };

/**
 * A tree that nobody watches is ended. The exception is what `--leftovers` lets live once the main
 * command has ended by itself; where watchdog was already ending the tree, its end was decided.
 */
export function decideBurial(facts: BurialFacts): BurialDecision {
  const graceMs = facts.guardGraceMs > 0 ? facts.guardGraceMs : undefined;
  if (facts.phase === "stopping") return { kind: "end", because: "was-being-ended", graceMs };
  if (facts.mainEnd === null) return { kind: "end", because: "nobody-watches", graceMs };
  if (facts.leftovers === "kill") return { kind: "end", because: "leftovers-kill", graceMs };
  return { kind: "leave", because: `leftovers-${facts.leftovers}` };
}

/** Stored as the reason of the outcome `abandoned`. */
export const ABANDONED_BECAUSE = "watchdog-killed";
/** The record names this many of each kind, as that of a run that ended well. */
const MOST_NAMED = 200;

export interface AbandonFacts {
  readonly mainEnd: CommandEnd | null;
  /** ISO 8601. */
  readonly endedAt: string;
  /** Undefined where the clock of the run's start cannot be compared (another boot). */
  readonly durationMs: number | undefined;
  /** Members that were found alive, and what ended them; null: they live on. */
  readonly members: readonly Leftover[];
  /** Those of them that could not be ended. */
  readonly unsignalable: readonly NamedProcess[];
  /** They carry the run's id and nothing more: never signalled. */
  readonly suspects: readonly NamedProcess[];
  /** Words for what went wrong meanwhile. */
  readonly troubles: readonly string[];
}

/**
 * Nobody has seen the end, so there is no status; the rest stays as the run itself had noted it.
 */
export function abandonRecord(running: RunRecord, facts: AbandonFacts): RunRecord {
  const { mainEnd } = facts;
  const suspects = facts.suspects.map((one) => ({ ...one, why: SUSPECT }));
  return {
    ...running,
    state: "ended",
    outcome: "abandoned",
    because: ABANDONED_BECAUSE,
    exit_status: null,
    status_of: null,
    exit_code: mainEnd?.kind === "exited" ? mainEnd.code : null,
    signal: mainEnd?.kind === "signaled" ? nameSignal(mainEnd.signal) : null,
    ended_at: facts.endedAt,
    duration_ms: facts.durationMs === undefined ? null : Math.round(facts.durationMs),
    leftovers: [...running.leftovers, ...facts.members].slice(0, MOST_NAMED),
    left_alone: [...running.left_alone, ...suspects].slice(0, MOST_NAMED),
    unsignalable: [...running.unsignalable, ...facts.unsignalable].slice(0, MOST_NAMED),
    degraded: [...running.degraded, ...facts.troubles],
  };
}

const SUSPECT = "carries the run's id or may be its command, not proven";

/**
 * The record of a run that was killed together with its guard before it had written anything of its
 * own but the lease: what that tells, and nothing for the rest.
 */
export function recordOfLost(lease: LeaseRecord, build: RunRecord["watchdog"]): RunRecord {
  const { kind, name, generation } = lease;
  return {
    format: 1,
    run_id: lease.run_id,
    run_path: lease.run_path,
    job: lease.job,
    state: "running",
    outcome: null,
    because: null,
    exit_status: null,
    status_of: null,
    exit_code: null,
    signal: null,
    command: [lease.command],
    cwd: null,
    pid: lease.pid,
    child_pid: null,
    started_at: lease.session_started_at,
    ended_at: null,
    duration_ms: null,
    suspended_ms: 0,
    paused_ms: 0,
    leases: [{ kind, name, generation }],
    held_by: null,
    guard: false,
    limits: { timeout_ms: null, idle_timeout_ms: null, not_after: null },
    dependencies: [],
    signals: [],
    leftovers: [],
    kept: [],
    left_alone: [],
    unsignalable: [],
    items: null,
    steps: null,
    output: {
      stdout_bytes: null,
      stderr_bytes: null,
      last_output_at: null,
      is_copied: false,
      write_error: null,
    },
    log: null,
    checks: [],
    artifacts: [],
    suspicions: [],
    degraded: [],
    dropped_lines: 0,
    watchdog: build,
  };
}
