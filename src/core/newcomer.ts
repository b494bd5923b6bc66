/**
 * What a newcomer does about the verdict on a key that it wants: acquire it, end the survivors
 * first, or refuse. Pure; refuses to know how waiting and ending are done.
 *
 * Always: nobody is ended but proven, signalable members of a tree whose owner is dead, and those
 * only where the policy says so; a key whose lock is taken is never acquired; the tree of a living
 * owner is never touched.
 */
import type { FoundProcess, LeaseEvidence, SeenNote } from "./evidence.ts";
import type { Verdict, VerdictReason } from "./lease-verdict.ts";
import type { SurvivorPolicy } from "./run-options.ts";

export interface NewcomerFacts {
  /** The holder named by the record is one of the runs of our own WATCHDOG_RUN_PATH. */
  readonly isHeldByRunAround: boolean;
  /** The note of an earlier newcomer about this very generation. */
  readonly note: SeenNote;
  readonly evidence: LeaseEvidence;
  /** `kill` ends proven members; with the two others nobody is ended, whoever it is. */
  readonly onSurvivors: SurvivorPolicy;
}

export type NewcomerReason =
  | VerdictReason
  | "held-by-run-around"
  | "note-old"
  | "survivors-alive"
  /** Somebody has the fence, as far as that was asked: waited for, up to a limit. */
  | "fenced-operation";

export type NewcomerRefusal = {
  readonly kind: "refuse";
  /** `locked`: 75, it can change by itself. `config_error`: 78, a person must change something. */
  readonly status: "locked" | "config_error";
  readonly because: NewcomerReason;
  /** Whether it makes sense to wait for a change. */
  readonly canWait: boolean;
  /** Whether a note about the time is left for later newcomers (seen.json). */
  readonly leavesNote: boolean;
};

export type NewcomerDecision =
  | { readonly kind: "acquire"; readonly because: NewcomerReason }
  /** To be ended and proven empty; then everything is decided again. */
  | { readonly kind: "end-survivors"; readonly members: readonly FoundProcess[] }
  | NewcomerRefusal;

/** Decides for one key; whoever wants several takes all or none of them. */
export function decideNewcomer(verdict: Verdict, facts: NewcomerFacts): NewcomerDecision {
  const decision = decideByVerdict(verdict, facts);
  const isFenced = decision.kind === "acquire" && facts.evidence.fence?.isTaken === "yes";
  return isFenced ? refuse("fenced-operation") : decision;
}

function decideByVerdict(verdict: Verdict, facts: NewcomerFacts): NewcomerDecision {
  switch (verdict.name) {
    case "free":
    case "dead":
      return { kind: "acquire", because: verdict.because };
    case "held":
    case "stalled":
      return decideTaken(verdict, facts.isHeldByRunAround);
    case "orphaned":
      return decideOrphaned(verdict, facts);
    case "elsewhere":
      return decideElsewhere(verdict, facts.note);
    case "unknowable":
      if (verdict.because === "lock-replaced") return decideTaken(verdict, facts.isHeldByRunAround);
      return refuse(verdict.because, { status: "config_error", canWait: false });
  }
}

/**
 * Whether a refusal because of this verdict is not worth a line: the holder is healthy, and cron
 * would mail it at every overlap.
 */
export function isQuietRefusal(verdict: Verdict): boolean {
  return verdict.name === "held";
}

function refuse(because: NewcomerReason, more: Partial<NewcomerRefusal> = {}): NewcomerRefusal {
  return { kind: "refuse", status: "locked", because, canWait: true, leavesNote: false, ...more };
}

/** A run around us ends only after us, so that waiting for it would never end. */
function decideTaken(verdict: Verdict, isHeldByRunAround: boolean): NewcomerDecision {
  // Under R3 somebody else has the lock, whatever the record of the generation before says.
  if (isHeldByRunAround && verdict.rule !== "R3") {
    return refuse("held-by-run-around", { canWait: false });
  }
  return refuse(verdict.because);
}

/**
 * An ancestor of ours waits for us: it does not end while we wait for it. Suspects are no proven
 * members: no policy is about them.
 */
function decideOrphaned(
  { because }: Verdict,
  { evidence: { tree }, onSurvivors }: NewcomerFacts,
): NewcomerDecision {
  const isOfMembers = because === "members" || because === "unsignalable";
  if (tree === "unread" || !isOfMembers) {
    return refuse(because, { canWait: because !== "ancestor-of-newcomer" });
  }
  if (onSurvivors !== "kill") {
    const isBelow = tree.members.some(({ isAncestor }) => isAncestor);
    return isBelow ? refuse("ancestor-of-newcomer", { canWait: false }) : refuse("survivors-alive");
  }
  return because === "members" ? { kind: "end-survivors", members: tree.members } : refuse(because);
}

/** A note that cannot be read is written anew: otherwise nobody would ever get the key. */
function decideElsewhere(verdict: Verdict, note: SeenNote): NewcomerDecision {
  if (note === "old") return { kind: "acquire", because: "note-old" };
  return refuse(verdict.because, { leavesNote: note !== "young" });
}
