/**
 * What a look over all processes has seen, as plain data: the ground on which the members of a dead
 * owner's tree are decided (core/survivors.ts).
 */
import type { ProcessIdentity } from "./lease-record.ts";

/** One process of the whole machine, as seen in /proc. */
export interface SeenProcess {
  readonly pid: number;
  readonly ppid: number;
  readonly startTicks: number;
  readonly groupId: number;
  readonly sessionId: number;
  /** The state letter of proc(5): Z and X are dead. */
  readonly state: string;
  readonly isKernelThread: boolean;
  /** The run ids of its WATCHDOG_RUN_PATH; unread: inside exec, not ours to read, or hidden. */
  readonly runPath: readonly string[] | "unread";
  /** Its WATCHDOG_KEPT token, if any. */
  readonly keptToken: string | undefined;
  /** Path in the unified cgroup hierarchy; undefined: none, or not read. */
  readonly cgroup: string | undefined;
  /** Real, effective, saved and file system user, where the run path is unread; absent: unread. */
  readonly userIds?: readonly number[];
  /** Process 1 of a pid namespace, ours or one below. */
  readonly isNamespaceInit: boolean;
  readonly isSignalable: boolean;
  /** The guard of a run, ours or another: it has work to do when its watchdog is killed. */
  readonly isGuard: boolean;
}

/** One that the dead owner has written down. */
export interface RecordedProcess extends ProcessIdentity {
  /** Of its pidfd; absent: not written down, or its kernel has none (before 6.9). */
  readonly pidfd_inode?: number;
}

/** The group that a main command has led from its start. */
export interface MainGroup extends RecordedProcess {
  /** The session of the owner, in which the command was started. */
  readonly sessionId: number;
}

/** The run whose supervisor is dead. */
export interface DeadRun {
  readonly runId: string;
  readonly owner: ProcessIdentity;
  /** The user of the owner; absent: nothing tells. */
  readonly ownerUid?: number;
  /** Members as of its last beat; empty where they cannot be held against processes seen here. */
  readonly recorded: readonly RecordedProcess[];
  readonly guard: ProcessIdentity | null;
  readonly adopters: readonly ProcessIdentity[];
  readonly cgroup: string | null;
  /** Null: the main command shares the group of its caller, or nothing tells. */
  readonly mainGroup: MainGroup | null;
  /**
   * Sessions in which a main command may live that was started and not written down any more. Empty
   * where one was written down.
   */
  readonly unrecordedIn: readonly number[];
  /** First and last tick at which such a command can have been started; absent: at any. */
  readonly unrecordedBetween?: readonly [number, number];
  /**
   * The first tick from which one of the run may have been born and is not among `recorded`.
   * Absent: nothing tells of which time the run was, and nobody is suspected because he is unread.
   */
  readonly unlistedFrom?: number;
  /**
   * The first and the last tick at which a bearer of the cookie can have been born that its place
   * and its parent prove: one that is older and not listed is not of the run, and of a younger one
   * its parent, which is of the run, is still there. Absent: nothing tells.
   */
  readonly provenBetween?: readonly [number, number];
  /** The pid namespace whose numbers all these are; null: ours. */
  readonly countedIn: string | null;
  /** Its pid namespace is below ours: our process 1 adopts nobody of it. */
  readonly isBelowOurs?: true;
  /**
   * Somebody whom the last beat names cannot be held against the processes seen here: that nobody
   * is found proves nothing then.
   */
  readonly isBlind: boolean;
}

/** Processes that are meant to outlive the run (`watchdog keep`), and those below them. */
export interface KeptProcesses {
  readonly identities: ReadonlySet<string>;
  readonly tokens: ReadonlySet<string>;
}

export interface SurvivorView {
  readonly processes: readonly SeenProcess[];
  readonly run: DeadRun;
  /** The one who looks, and its ancestors up to process 1. */
  readonly self: number;
  readonly ancestors: ReadonlySet<number>;
  readonly kept: KeptProcesses;
}
