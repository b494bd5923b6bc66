/**
 * What a newcomer asks for, what it gets, and what it is told when it is refused: the interface of
 * acquiring leases (A1 to A6). Plain data and seams; opens no file and reads no clock.
 */
import type { FoundProcess, LeaseEvidence, TreeFinding } from "../../core/evidence.ts";
import type { LeaseKey } from "../../core/lease-key.ts";
import type { PreviousGeneration } from "../../core/lease-record.ts";
import type { Verdict, VerdictName } from "../../core/lease-verdict.ts";
import type { NamedProcess } from "../../core/run-record.ts";
import type { SurvivorPolicy } from "../../core/run-options.ts";
import type { DeadRun } from "../../core/survivors-view.ts";
import type { Spared, WorktreeUser } from "../../core/worktree-users.ts";
import type { Looker } from "../gather.ts";
import type { LeasePlace } from "../files/places.ts";

/** Who finds and ends what a dead owner has left; handed in by the room above. */
export interface SurvivorKeeper {
  /** Signals nobody. `unread`: the look could not be finished in time. */
  look(run: DeadRun): Promise<TreeFinding | "unread">;
  /** Ends the proven members and answers with what is left after that. */
  end(run: DeadRun): Promise<TreeFinding | "unread">;
  /**
   * CONT to the proven members that stand still, and how many there were. `unread`, `guarded`:
   * nobody was continued, because nobody could be seen, or the guard of the run lives and decides.
   */
  continueFrozen(run: DeadRun): Promise<number | "unread" | "guarded">;
}

/** What the second look needs beyond the evidence; handed in by the room above. */
export interface SecondLooker {
  /** A key is not had for so long after a repair has ended its living owner. */
  readonly repairCooldownMs: number;
  /**
   * Who else works in the checkout of a key of the kind `worktree`. Signals nobody. Not asked for
   * any other key.
   *
   * @param spared  who is going to be ended for this claim
   * @returns `unread`: the look could not be finished in time
   */
  usersOf(key: LeaseKey, spared: Spared): Promise<readonly WorktreeUser[] | "unread">;
}

export interface ClaimRequest {
  readonly stateDirectory: string;
  /** Sorted and without duplicates, as `orderKeys` gives them; at least one. */
  readonly keys: readonly LeaseKey[];
  /** Ids of the runs around this one (WATCHDOG_RUN_PATH without its own). */
  readonly runsAround: readonly string[];
  /** `--wait`, on CLOCK_MONOTONIC; undefined or 0: what is not to be had is refused at once. */
  readonly waitMs: number | undefined;
  /** Undefined: `kill`. */
  readonly onSurvivors?: SurvivorPolicy;
  /** Living survivors are waited for so long, which may be for ever; undefined: as `waitMs`. */
  readonly survivorWaitMs?: number;
  readonly looker: Looker;
  readonly survivors: SurvivorKeeper;
  readonly secondLook: SecondLooker;
  /** `wait-worker.ts`, as the front door knows it. Loaded only when there is a wait. */
  readonly waitWorkerUrl: URL;
  /** A repair that is at work on a key is waited for so long; undefined: REPAIR_WAIT_MS. */
  readonly repairWaitMs?: number;
  /** Without `--wait` a fenced operation is waited for so long (A6); undefined: FENCE_WAIT_MS. */
  readonly fenceDeadlineMs?: number;
  /** Told when a wait begins, and again when key, verdict or reason have changed. */
  onWaiting(refusal: Refusal): void;
  /** Told before members are ended: of whom, and who. */
  onEnding(ending: Ending): void;
  /** Told after members went on whom their dead watchdog had stopped: of whom, and how many. */
  onContinued?(continued: Continued): void;
}

export interface Continued {
  readonly key: LeaseKey;
  readonly run: DeadRun;
  readonly count: number;
}

export interface Ending {
  readonly key: LeaseKey;
  readonly run: DeadRun;
  readonly members: readonly FoundProcess[];
}

export type ClaimResult =
  | { readonly kind: "claimed"; readonly claim: Claim }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Why nothing was started, and on what evidence. */
export interface Refusal {
  /** The key that is not to be had; the others were not looked at, or are free. */
  readonly key: LeaseKey;
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
  readonly status: "locked" | "config_error";
  /** From the closed lists of core/newcomer.ts and core/second-look.ts, and the two of here. */
  readonly because: string;
  /** Who is at work in the checkout; empty: that is not what is in the way. */
  readonly users: readonly WorktreeUser[];
  /** Who has the fence, as far as that can be told; empty: that is not what is in the way. */
  readonly fencedBy: readonly NamedProcess[];
  /** One sentence for people: who has it, or what is in the way. */
  readonly text: string;
  /** How long it was waited for; 0 without `--wait`. */
  readonly waitedMs: number;
}

/** One key that is ours to take: its lock and its fence are held. */
export interface ClaimedKey {
  readonly key: LeaseKey;
  readonly place: LeasePlace;
  readonly lockFd: number;
  /** `device:inode` */
  readonly lockInode: string;
  /** What the decision to take it rested on. */
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
  /** For the new record; null: nobody ever had this key, as far as anything tells. */
  readonly previous: PreviousGeneration | null;
  /** The last owner, where it was never released: to be recorded as abandoned. */
  readonly abandoned: AbandonedOwner | undefined;
}

export interface AbandonedOwner {
  readonly runId: string;
  readonly generation: number;
  /** The verdict that was acted on: `orphaned`, `dead`, `elsewhere`. */
  readonly verdict: VerdictName;
  /** The rule and the reason: `R6 tree-empty`. */
  readonly because: string;
  /** Members that were ended for this claim. */
  readonly ended: readonly FoundProcess[];
}

/** All keys of the request, between A6 and A7: to be granted (grant.ts) or released. */
export interface Claim {
  readonly keys: readonly ClaimedKey[];
  readonly looker: Looker;
  readonly waitedMs: number;
  /** Kinds of which a lease directory was made: worth a sweep (sweep.ts). */
  readonly newKinds: readonly string[];
  /** A9: lets go of the fences. Safe to repeat. */
  releaseFences(): void;
  /** From now on somebody else closes the locks (held.ts); `release` leaves them alone. */
  handOver(): void;
  /** Lets go of locks and fences. Safe to repeat. After a crash the kernel does the same. */
  release(): void;
}
