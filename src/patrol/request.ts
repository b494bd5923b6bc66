/**
 * What a patrol is asked for, what it looks with and what it answers: plain data and seams, handed
 * in by the room above. Opens no file and reads no clock.
 */
import type { GrantedLease } from "../core/journal-entry.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import type { OverdueDecision } from "../core/overdue.ts";
import type { FindingNews, PatrolFinding, PatrolRow } from "../core/patrol.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { ConfiguredJob, JobSchedule } from "../core/schedule.ts";

/** A lease with its verdict, as every reader sees it. */
export interface LeaseSight {
  readonly key: LeaseKey;
  readonly verdict: string;
  readonly rule: string;
  readonly because: string;
  readonly runId: string | null;
  readonly job: string | null;
  readonly beatAgeMs: number | null;
  /** The run of a dead owner, as its lease tells it; undefined: nobody is proven dead. */
  readonly lost: LostRun | undefined;
}

export interface LostRun {
  readonly runId: string;
  readonly run: RunRecord | null;
  readonly leases: readonly GrantedLease[];
  /** Whether its guard lives: then it is at work, and knows more. */
  readonly isGuarded: boolean;
}

export interface CircuitSight {
  readonly name: string;
  readonly state: string;
  readonly target: string | null;
  readonly job: string | null;
  /** Wall clock, milliseconds. */
  readonly sinceAt: number | null;
}

/** Notices that wait to be delivered, and that never will be. */
export interface OutboxSight {
  readonly waiting: number;
  readonly dead: number;
}

export interface MarkedLeases {
  readonly marked: readonly LeaseKey[];
  /** For people: what could not be marked, and why. */
  readonly lines: readonly string[];
}

export interface CircuitSights {
  readonly circuits: readonly CircuitSight[];
  readonly isReadable: boolean;
  readonly troubles: readonly string[];
}

export interface PatrolRequest {
  /** Absolute and checked; it need not be there. */
  readonly stateDirectory: string;
  /** How often patrols come; undefined: nobody has said so. */
  readonly periodMs: number | undefined;
  /** Jobs that the configuration expects. */
  readonly configured?: readonly ConfiguredJob[];
  readonly readLeases: () => Promise<readonly LeaseSight[]>;
  /** Marks what is dead by then, and ends what an earlier one has begun; nothing else. */
  readonly markDead: () => Promise<MarkedLeases>;
  readonly readCircuits: () => CircuitSights;
  /** Undefined: it cannot be read. */
  readonly readOutbox?: (() => OutboxSight | undefined) | undefined;
  /** Delivers what is due, within a limit of its own; lines for people. */
  readonly flush?: (() => Promise<readonly string[]>) | undefined;
  /** Tells somebody else that the patrol lives; a line for people where that was not to be had. */
  readonly ping?: ((patrolled: Patrolled) => Promise<string | undefined>) | undefined;
}

/** What somebody outside is told of a patrol. */
export interface Patrolled {
  readonly stateDirectory: string;
  /** Findings and overdue jobs. */
  readonly found: number;
}

/** A job with a schedule, and where it stands. */
export interface JobSight {
  readonly schedule: JobSchedule;
  readonly runningSince: number | undefined;
  readonly decision: OverdueDecision;
}

/** The file system of the state directory; undefined: it cannot be told, or has no limit. */
export interface RoomSight {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly isLow: boolean;
}

export interface PatrolReport {
  readonly stateDirectory: string;
  /** Wall clock. */
  readonly at: number;
  readonly leases: readonly LeaseSight[];
  readonly marked: readonly LeaseKey[];
  /** Runs of dead owners whose processes live on, written down as abandoned. */
  readonly abandoned: readonly string[];
  readonly jobs: readonly JobSight[];
  readonly circuits: readonly CircuitSight[];
  readonly outbox: OutboxSight | undefined;
  readonly room: RoomSight | undefined;
  readonly findings: readonly PatrolFinding[];
  readonly news: FindingNews;
  /** Jobs that are overdue and were not as of the patrol before, and the other way round. */
  readonly overdueNews: {
    readonly opened: readonly string[];
    readonly closed: readonly string[];
  };
  /** The patrol before this one; undefined: there was none. */
  readonly last: PatrolRow | undefined;
  /** Whether all could be looked at; what could not be told to others does not count. */
  readonly isComplete: boolean;
  readonly troubles: readonly string[];
}
