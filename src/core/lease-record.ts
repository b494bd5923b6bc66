/**
 * What is written down about a lease: the record (fixed for a generation) and the beat slot
 * (changing). Plain data and the words of it; reading and writing is a matter of `lease/`.
 *
 * The record explains, the kernel's lock decides: nothing here gives anybody the right to run.
 */
import type { ItemsProgress, Progress } from "./progress.ts";

/** A process as far as it can be told from others of the same boot and pid namespace. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: ticks of 1/100 s since boot. */
  readonly start_time: number;
}

/** How the generation before this one came to its end, as the one who took over has seen it. */
export interface PreviousGeneration {
  readonly generation: number;
  readonly run_id: string | null;
  /**
   * `released`, `repaired` by `watchdog repair`, or the verdict that the newcomer acted on: `dead`,
   * `orphaned`, `elsewhere`.
   */
  readonly how_it_ended: string;
  /** The rule and the reason of that verdict: `R6 tree-empty`. */
  readonly evidence: string;
  /** The last one of this boot that has ended a living owner of the key, in whichever grant. */
  readonly repair?: RepairMark;
}

/**
 * That `watchdog repair` has settled a generation whose owner could not release it. The instant is
 * of CLOCK_MONOTONIC, comparable within its boot and time namespace only.
 */
export interface RepairMark {
  readonly plan_id: string;
  /** `ended-owner`: a living owner was ended with approval; `marked`: it was dead already. */
  readonly action: "ended-owner" | "marked";
  /** ISO 8601, for people. */
  readonly at: string;
  readonly boot_id: string;
  readonly time_namespace: string | null;
  readonly monotonic_ms: number;
  /** `user@host`. */
  readonly by: string;
}

/** `lease.json`. One word for one idea: the same names in `--json`. */
export interface LeaseRecord {
  readonly format: 1;
  readonly kind: string;
  readonly name: string;
  readonly generation: number;
  readonly state: "held" | "released";
  readonly run_id: string;
  /** Ids of all runs around, outermost first, `/`-separated, own id last. */
  readonly run_path: string;
  /** The name of the run's job. */
  readonly job: string;
  /** `user@host`. */
  readonly runner: string;
  readonly host: string;
  /** Of /etc/machine-id; null where there is none. */
  readonly machine_id: string | null;
  readonly boot_id: string;
  readonly pid: number;
  readonly pid_start_time: number;
  /** Inode of /proc/self/ns/pid. */
  readonly pid_namespace: string;
  readonly time_namespace: string | null;
  /** `device:inode` of the lock file. */
  readonly lock_inode: string;
  readonly uid: number;
  /** ISO 8601, for people. */
  readonly session_started_at: string;
  readonly acquired_at: string;
  readonly released_at: string | null;
  readonly heartbeat_interval_ms: number;
  readonly stale_after_ms: number;
  readonly lane: string | null;
  readonly task_id: string | null;
  readonly worktree: string | null;
  readonly branch: string | null;
  /** The command line for people, cut. */
  readonly command: string;
  /** The path of the owner's cgroup in the unified hierarchy; null where it has none. */
  readonly cgroup: string | null;
  /**
   * Ancestors of the owner that are known to adopt orphans (child subreapers), beside process 1: a
   * bearer of the cookie whose parent is one of these was orphaned by the run.
   */
  readonly adopters: readonly ProcessIdentity[];
  readonly previous: PreviousGeneration | null;
  /** Undefined: no repair has touched this generation. */
  readonly repair?: RepairMark;
}

/** What the run is about, told by its supervisor with each beat. */
export type SlotRunState = "starting" | "running" | "stopping" | "ending" | "paused";

/** A slot holds the number of its place here: new ones come at the end. */
export const SLOT_RUN_STATES: readonly SlotRunState[] = [
  "starting",
  "running",
  "stopping",
  "ending",
  "paused",
];

/** Items of the job: as much of its progress as the head has room for. */
export type SlotCounts = Pick<ItemsProgress, "ok" | "failed" | "total">;

/** The rest of it. */
export interface SlotWork extends Omit<Progress, "items"> {
  readonly told: Omit<ItemsProgress, keyof SlotCounts> | null;
}

/** The first 128 bytes of a slot. Instants are milliseconds. */
export interface SlotHead {
  readonly generation: number;
  /** Grows by one with each beat. */
  readonly sequence: number;
  /** Counted by the main loop itself, as often as core/main-loop-count.ts says. */
  readonly mainLoopSequence: number;
  readonly bootId: string;
  readonly monotonicMs: number;
  readonly boottimeMs: number;
  readonly wallMs: number;
  /** When the main loop last counted, on CLOCK_MONOTONIC. */
  readonly mainLoopMs: number;
  readonly staleAfterMs: number;
  readonly runState: SlotRunState;
  /** Null: none were reported, or the writer is of a version that does not count them. */
  readonly counts: SlotCounts | null;
}

export interface SlotOwner extends ProcessIdentity {
  /** Inode of its pidfd where the kernel has one per process (pidfs, Linux 6.9); else 0. */
  readonly pidfd_inode: number;
}

/** Behind the head, with a checksum of its own. */
export interface SlotBody {
  readonly runId: string;
  readonly lockInode: string;
  readonly pidNamespace: string;
  /** Null: the owner's kernel has none. */
  readonly timeNamespace: string | null;
  /** Of the owner, as it is numbered in its pid namespace; 0: its leader is outside of that. */
  readonly sessionId: number;
  /**
   * The main command, where it leads a group of its own: its pid is that of the group. Stays when
   * the command has ended. Null: none was started yet, or it shares the group of the caller.
   */
  readonly mainGroup: ProcessIdentity | null;
  readonly owner: SlotOwner;
  readonly mainChild: SlotOwner | null;
  readonly guard: ProcessIdentity | null;
  /**
   * Members as of this beat, at most MOST_SLOT_MEMBERS of them: where there are more, first those
   * that are no longer in the group of the main command.
   */
  readonly members: readonly ProcessIdentity[];
  /** All of them, and those who may be members: larger than the list where that is not whole. */
  readonly memberCount: number;
  /** Null: nothing is known yet, or the writer is of a version that does not tell. */
  readonly work: SlotWork | null;
}

export const MOST_SLOT_MEMBERS = 256;

export interface Slot {
  readonly head: SlotHead;
  /** Undefined where its checksum is wrong. */
  readonly body: SlotBody | undefined;
}
