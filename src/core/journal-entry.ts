/**
 * What is written into the journal, as plain data: each entry is one transaction, and can wait in
 * the spool as JSON. Instants are wall-clock milliseconds, for people and calendars only.
 */
import type { LeaseKey } from "./lease-key.ts";
import type { ProcessIdentity } from "./lease-record.ts";
import type { NoticePart } from "./notice-part.ts";
import type { PatrolledEntry } from "./patrol.ts";
import type { RunRecord } from "./run-record.ts";
import type { DeclaredSchedule } from "./schedule.ts";

export interface GrantedLease extends LeaseKey {
  readonly generation: number;
}

export type EventName =
  | "refused"
  | "lease_lost"
  | "lock_restored"
  | "beat_failing"
  | "guard_lost"
  | "suspended"
  | "reclaimed"
  | "abandoned"
  | "leftovers"
  | "circuit_open"
  | "circuit_half_open"
  /** Its trial has failed: no news for a person. */
  | "circuit_reopened"
  | "circuit_closed"
  | "circuit_permanent"
  | "dependency_down"
  | "paused"
  | "resumed"
  /** A call within `watchdog retry` has taken more than one attempt. */
  | "retried"
  | "unready"
  | "ready"
  /** Found by a patrol, told once for each change. */
  | "overdue"
  | "stalled"
  /** What a patrol has told before is so no more. */
  | "recovered";

export interface JournalEvent {
  readonly kind: "event";
  readonly at: number;
  readonly name: EventName;
  readonly runId: string | null;
  readonly job: string | null;
  readonly key: LeaseKey | null;
  /** The reason from the closed list of whoever decided. */
  readonly because: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** One line about one act of a repair: appended, and never changed or removed. */
export interface AuditEntry {
  readonly kind: "audit";
  readonly at: number;
  /** The same for the intention and the end of an act. */
  readonly actId: string;
  readonly phase: "intended" | "done" | "failed" | "refused";
  readonly planId: string;
  readonly key: LeaseKey;
  readonly generation: number | null;
  readonly action: string;
  readonly because: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  /** `user@host`. */
  readonly who: string;
  readonly uid: number;
  readonly pid: number;
  readonly bootId: string;
  /** CLOCK_MONOTONIC of that boot. */
  readonly monotonicMs: number;
}

/**
 * What the run has declared about its job. Null: nothing any more. Undefined: whoever writes the
 * entry does not know.
 */
interface Declaring {
  readonly schedule?: DeclaredSchedule | null | undefined;
}

/** `watchdog patrol --forget`: nothing is expected of the job any more. */
export interface ScheduleForgotten {
  readonly kind: "schedule-forgotten";
  readonly at: number;
  readonly job: string;
}

export type JournalEntry =
  /** The command runs: the run's row, its first attempt, its leases. Fenced. */
  | (Declaring & {
      readonly kind: "run-started";
      readonly at: number;
      readonly run: RunRecord;
      readonly runPath: string;
      readonly owner: ProcessIdentity | null;
      readonly child: ProcessIdentity | null;
      readonly leases: readonly GrantedLease[];
      /** Undefined: nobody is told. */
      readonly telling?: NoticePart;
    })
  /**
   * Fenced, unless its guard tells it. A run that could not be started, or was refused (`locked`),
   * has no leases.
   */
  | (Declaring & {
      readonly kind: "run-ended";
      readonly at: number;
      readonly run: RunRecord;
      readonly runPath: string;
      readonly leases: readonly GrantedLease[];
      /** False where members survived KILL: the lease stays unreleased. */
      readonly isReleased: boolean;
      /** Watchdog was killed when it had decided this, and had not written it down. */
      readonly by?: "guard";
      /** Undefined: nobody is told. */
      readonly telling?: NoticePart;
    })
  /**
   * The supervisor of this run is dead. Changes nothing of a run that has ended already; makes the
   * row where it is missing and the record is known.
   */
  | (Declaring & {
      readonly kind: "run-abandoned";
      readonly at: number;
      readonly runId: string;
      readonly by: "guard" | "next-run" | "repair" | "patrol";
      readonly run: RunRecord | null;
      readonly leases: readonly GrantedLease[];
      readonly because: string;
      /** Of whoever writes it. Undefined: the sinks that the job's last run has declared. */
      readonly telling?: NoticePart;
    })
  | ScheduleForgotten
  | PatrolledEntry
  | AuditEntry
  | JournalEvent;
