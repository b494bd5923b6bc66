/**
 * The evidence about one lease: what was read and what could not be read. A verdict is decided from
 * it alone (core/lease-verdict.ts), and the same gathering serves a newcomer, `status`, and every
 * later reader.
 */
import type { LeaseKey } from "./lease-key.ts";
import type { LeaseRecord, ProcessIdentity, RepairMark, Slot } from "./lease-record.ts";
import type { NamedProcess } from "./run-record.ts";

/** A fact, or that it could not be had. Never a guess. */
export type Fact = "yes" | "no" | "unread";

/** The kernel's answer about the lock file. */
export type LockAnswer =
  | { readonly kind: "held" }
  | { readonly kind: "free" }
  /** ENOLCK, EACCES, a FIFO or link in its place, another owner … */
  | { readonly kind: "unaskable"; readonly reason: string };

/** Where the facts about the last generation come from, in the order of trust. */
export type RecordSource =
  | { readonly kind: "none" }
  /** Something is there, and nothing of it can be read: reason for people. */
  | { readonly kind: "unreadable"; readonly reason: string }
  | {
      readonly kind: "read";
      readonly from: "record" | "slot" | "journal";
      readonly generation: number;
      readonly isReleased: boolean;
      readonly runId: string;
    };

/** What a look at the processes of a dead owner's run has found. */
export interface TreeFinding {
  /** Proven members. */
  readonly members: readonly FoundProcess[];
  /** They carry the cookie of the run and nothing more, or may be its unrecorded command. */
  readonly suspects: readonly FoundProcess[];
  /**
   * Somebody whom the last beat names could not be held against the processes that were seen: that
   * nobody was found proves nothing then.
   */
  readonly isBlind?: true;
}

export interface FoundProcess extends ProcessIdentity {
  readonly command: string;
  /** Whether we may signal it. */
  readonly isSignalable: boolean;
  /** An ancestor of the one who looks. */
  readonly isAncestor: boolean;
}

/** Whether somebody has the fence of a key: an operation is in progress, or a grant. */
export interface FenceLook {
  readonly isTaken: Fact;
  /** Who has it, as far as that can be told. */
  readonly by: readonly NamedProcess[];
  /** Why it cannot be told; undefined: it was. */
  readonly reason?: string;
}

/** A newcomer's note about an owner that cannot be seen from here. */
export type SeenNote = "none" | "young" | "old" | "unread";

/** A `watchdog repair` that is at work; its pid is null where it cannot be told from here. */
export interface Repairer {
  readonly pid: number | null;
}

/** A start that has the lock already, and waits for its dependencies. */
export interface WaitingStart {
  readonly pid: number;
}

/** What an approved repair has said of the living owner of this very grant. */
export interface OwnerEnding {
  readonly mark: RepairMark;
  /** Pid of the repair that may be about to ask; undefined: it has asked the owner to end. */
  readonly repairer: number | undefined;
}

export interface LeaseEvidence {
  readonly key: LeaseKey;
  readonly lock: LockAnswer;
  readonly source: RecordSource;
  readonly record: LeaseRecord | undefined;
  readonly slot: Slot | undefined;
  /** Whether a lease directory with anything in it was there: `no` is a key never used. */
  readonly hasHistory: Fact;
  readonly isReleasedByJournal: Fact;
  /** Pid and start of the recorded owner match a process that lives (a zombie with threads). */
  readonly ownerAlive: Fact;
  readonly sameBoot: Fact;
  readonly sameMachine: Fact;
  readonly sameLockInode: Fact;
  /** Whether our pid namespace contains that of the owner. */
  readonly namespaceContained: Fact;
  /**
   * How the recorded pids and start times are counted: as we count, in a pid namespace below ours
   * (then each can be looked up there), or in a way that nothing here can be compared with.
   */
  readonly recordedPids: "ours" | "below-ours" | "incomparable";
  /** Milliseconds on CLOCK_MONOTONIC since the last beat; undefined: unread. Below 0: future. */
  readonly beatAgeMs: number | undefined;
  /** The limit that the owner's own record sets. */
  readonly staleAfterMs: number;
  readonly note: SeenNote;
  /** `unread`: not looked for yet, or it could not be done in time. */
  readonly tree: TreeFinding | "unread";
  /** Undefined: not asked. Whoever acquires the key tries for the fence itself. */
  readonly fence?: FenceLook | undefined;
  /** Who has the lock, where that is a repair; undefined: nobody has it, or no repair. */
  readonly repairer?: Repairer | undefined;
  /** Who has the lock, where that is a start of that kind; undefined: none was seen. */
  readonly waitingStart?: WaitingStart | undefined;
  /** Undefined: none that counts, or the lock is taken. */
  readonly ownerEnding?: OwnerEnding | undefined;
}

/** What a repair has settled of the last grant; its own file is as good as the record. */
export function repairMarkOf({ record, ownerEnding }: LeaseEvidence): RepairMark | undefined {
  const isAsked = ownerEnding !== undefined && ownerEnding.repairer === undefined;
  return record?.repair ?? (isAsked ? ownerEnding.mark : undefined);
}

/** The last repair that has ended a living owner of the key, in whichever grant of this boot. */
export function endedOwnerMarkOf(evidence: LeaseEvidence): RepairMark | undefined {
  const mark = repairMarkOf(evidence);
  if (mark?.action === "ended-owner") return mark;
  return evidence.sameBoot === "yes" ? evidence.record?.previous?.repair : undefined;
}

/** What the journal knows of the last generation of a key. */
export interface JournalLease {
  readonly generation: number;
  readonly runId: string;
  readonly isReleased: boolean;
}
