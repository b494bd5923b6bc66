/**
 * What follows from the evidence about a lease: one word, the rule that gave it, and the reason.
 * Pure and total; the same function serves a newcomer and whoever only wants to know. Refuses to
 * know how the evidence was gathered and what anybody does about the verdict (core/newcomer.ts).
 *
 * The rules are ordered, the first that fits decides (design.md, section 4):
 *
 * - R1 the lock cannot be asked;
 * - R2 the lock is taken, and the record names a holder that may be the one who has it;
 * - R3 the lock is taken by somebody whom the record does not name: it is just being acquired;
 * - R4 the lock is free and the last generation is released, or there never was one;
 * - R5 the owner belongs to another boot, or it cannot be told to which;
 * - R6 the owner belongs to this boot and had this very lock: the kernel has proven it dead;
 * - R7 the owner belongs to this boot and had another lock file;
 * - R8 the lock is free, and nothing tells about the generations before.
 *
 * Always: age alone never makes a lease free; only a taken lock is `held` or `stalled`; what is
 * `unread` never counts as proof of anything; a key is `dead` only with a boot that has ended or a
 * tree that was looked at and is empty, by a look that knows everybody whom the last beat names.
 */
import type { Fact, FoundProcess, LeaseEvidence, TreeFinding } from "./evidence.ts";

export type VerdictName =
  "free" | "held" | "stalled" | "orphaned" | "dead" | "elsewhere" | "unknowable";

export type VerdictRule = "R1" | "R2" | "R3" | "R4" | "R5" | "R6" | "R7" | "R8";

/** What can be wrong with a tree whose owner is dead, worst first. */
export type TreeReason =
  /** Not looked for yet, or it could not be done in time: nobody gets the key. */
  | "tree-unread"
  | "unsignalable"
  | "suspects"
  | "ancestor-of-newcomer"
  /** Proven members, all of them signalable. */
  | "members";

export type VerdictReason =
  | "lock-unaskable"
  | "beat-fresh"
  | "beat-unread"
  | "beat-old"
  | "being-acquired"
  | "never-held"
  /** The same, as far as the files tell: the journal could not be read. */
  | "nothing-recorded"
  | "released"
  | "released-by-journal"
  | "other-boot"
  | "other-machine"
  | "machine-unread"
  | "boot-unread"
  | "other-namespace"
  | "namespace-unread"
  | TreeReason
  | "tree-empty"
  | "members-not-compared"
  | "lock-replaced"
  | "owner-unread"
  | "no-generation";

export interface Verdict {
  readonly name: VerdictName;
  readonly rule: VerdictRule;
  readonly because: VerdictReason;
}

/**
 * Decides from the evidence alone.
 *
 * A verdict `orphaned` because `tree-unread` asks the caller to look for the tree and to decide
 * again: without the look nobody gets the key and nobody is signalled.
 */
export function decideVerdict(evidence: LeaseEvidence): Verdict {
  if (evidence.lock.kind === "unaskable") return tell("unknowable", "R1", "lock-unaskable");
  if (evidence.lock.kind === "held") return decideTaken(evidence);
  return decideReleased(evidence) ?? decideDeserted(evidence);
}

function tell(name: VerdictName, rule: VerdictRule, because: VerdictReason): Verdict {
  return { name, rule, because };
}

/** The lock is taken: by the owner of the record, or by one who has not written its own yet. */
function decideTaken(evidence: LeaseEvidence): Verdict {
  if (!mayNameHolder(evidence)) return tell("held", "R3", "being-acquired");
  const because = decideBeat(evidence);
  return tell(because === "beat-old" ? "stalled" : "held", "R2", because);
}

/** A process of another boot cannot hold a lock of this one, whatever its pid and start time. */
function mayNameHolder(evidence: LeaseEvidence): boolean {
  return (
    evidence.source.kind === "read" &&
    !evidence.source.isReleased &&
    evidence.isReleasedByJournal !== "yes" &&
    evidence.sameBoot !== "no" &&
    evidence.ownerAlive !== "no"
  );
}

/** An age below nothing is of the future: torn, or of another clock, and read as no age at all. */
function decideBeat(evidence: LeaseEvidence): "beat-fresh" | "beat-unread" | "beat-old" {
  const ageMs = evidence.beatAgeMs;
  if (ageMs === undefined || !(ageMs >= 0)) return "beat-unread";
  return ageMs > evidence.staleAfterMs ? "beat-old" : "beat-fresh";
}

/** R4, and undefined where the last generation was not released. */
function decideReleased(evidence: LeaseEvidence): Verdict | undefined {
  const { source } = evidence;
  if (source.kind === "read" && source.isReleased) return tell("free", "R4", "released");
  if (evidence.isReleasedByJournal === "yes") return tell("free", "R4", "released-by-journal");
  const isNew = source.kind === "none" && evidence.hasHistory === "no";
  if (!isNew) return undefined;
  // A directory that was removed leaves no other trace than the journal's.
  const because = evidence.isReleasedByJournal === "unread" ? "nothing-recorded" : "never-held";
  return tell("free", "R4", because);
}

/** The lock is free and the last generation was not released: its owner is gone or elsewhere. */
function decideDeserted(evidence: LeaseEvidence): Verdict {
  if (evidence.source.kind !== "read") return tell("unknowable", "R8", "no-generation");
  if (evidence.sameBoot === "no") return decideOtherBoot(evidence.sameMachine);
  if (evidence.sameBoot === "unread") return decideUnreadBoot(evidence.tree);
  if (evidence.sameLockInode === "yes") return decideSeen(evidence, "R6");
  // Beside a file that was replaced the owner may well live: the free lock proves nothing.
  if (evidence.ownerAlive === "yes") return tell("unknowable", "R7", "lock-replaced");
  if (evidence.ownerAlive === "unread") return tell("elsewhere", "R7", "owner-unread");
  return decideSeen(evidence, "R7");
}

function decideOtherBoot(sameMachine: Fact): Verdict {
  if (sameMachine === "yes") return tell("dead", "R5", "other-boot");
  return tell("elsewhere", "R5", sameMachine === "no" ? "other-machine" : "machine-unread");
}

/**
 * Only the journal remembers the owner, and it does not say of which boot. Whoever is found here is
 * of this one; that nobody is found proves nothing.
 */
function decideUnreadBoot(tree: LeaseEvidence["tree"]): Verdict {
  const because = decideTree(tree);
  return because === "tree-empty" || because === "members-not-compared"
    ? tell("elsewhere", "R5", "boot-unread")
    : tell("orphaned", "R5", because);
}

/** The owner is dead: what of its tree is alive, as far as it can be seen from here. */
function decideSeen(evidence: LeaseEvidence, rule: "R6" | "R7"): Verdict {
  const { namespaceContained } = evidence;
  if (namespaceContained === "no") return tell("elsewhere", rule, "other-namespace");
  if (namespaceContained === "unread") return tell("elsewhere", rule, "namespace-unread");
  const because = decideTree(evidence.tree);
  if (because === "members-not-compared") return tell("elsewhere", rule, because);
  return tell(because === "tree-empty" ? "dead" : "orphaned", rule, because);
}

function decideTree(
  tree: TreeFinding | "unread",
): TreeReason | "tree-empty" | "members-not-compared" {
  if (tree === "unread") return "tree-unread";
  const some = (test: (found: FoundProcess) => boolean): boolean => tree.members.some(test);
  if (some((found) => !found.isSignalable)) return "unsignalable";
  if (tree.suspects.length > 0) return "suspects";
  if (some((found) => found.isAncestor)) return "ancestor-of-newcomer";
  if (tree.members.length > 0) return "members";
  return tree.isBlind === true ? "members-not-compared" : "tree-empty";
}
