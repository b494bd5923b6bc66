/**
 * What a repair may do about the verdict on a key: nothing, what the verdict itself allows, or what
 * a person has to approve. Pure; refuses to know how it is done, and who may do it.
 *
 * Always: a key whose lock is taken by a living owner is never released; nobody who lives is ended
 * without an approval but proven, signalable members of a tree whose owner is dead; where something
 * could not be read nothing is done, and the reason says what is missing. Every verdict has at
 * least one option, the gentlest first.
 */
import type { FoundProcess, LeaseEvidence } from "./evidence.ts";
import type { LeaseKey } from "./lease-key.ts";
import type { Verdict, VerdictReason } from "./lease-verdict.ts";

/** What stands in the place of a file. */
export type FileKind =
  | "regular"
  | "missing"
  | "fifo"
  | "link"
  | "directory"
  /** A socket or a device. */
  | "special"
  | "unread";

/** The recorded owner as a process, where its pid can be looked up from here. */
export interface OwnerSight {
  /** `stopped`: state T of proc(5), by a signal, and not by a debugger. */
  readonly state: "stopped" | "running" | "gone" | "unread";
  /** Whether a repair may signal it. */
  readonly signal: "allowed" | "another-user" | "ancestor" | "process-one" | "self" | "unread";
}

/** What a repair has to know beside the evidence. */
export interface RepairFacts {
  /** The boot in which it is asked. */
  readonly bootId: string;
  readonly lockFile: FileKind;
  /** `device:inode`; null: none, or it cannot be told. */
  readonly lockInode: string | null;
  readonly fenceFile: FileKind;
  /** `newer`: written by a newer version, never to be written over. */
  readonly recordFile: "read" | "none" | "unreadable" | "newer";
  readonly owner: OwnerSight;
}

export type RepairAction =
  /** CONT to a stopped owner. */
  | "continue-owner"
  /** TERM and CONT to the owner, KILL if it does not end; proven dead; then as `mark`. */
  | "end-owner"
  /** Proven members of a dead owner's tree; then `mark`. */
  | "end-survivors"
  /** The same, and then those that are not proven; then `mark`. */
  | "end-suspects"
  /** The record says `released`, the journal `abandoned`. */
  | "mark"
  /** The time is noted, for an owner that cannot be seen from here. */
  | "note"
  /** What stands in the place of the lock or the fence is renamed. */
  | "set-aside-lock"
  /** A new record with a number that a person gives. */
  | "set-generation"
  | "none";

/** `apply`: with `--apply`. `approval`: with `--approve ID` alone. */
export type RepairNeed = "nothing" | "apply" | "approval";

export type RepairReason =
  | VerdictReason
  | "owner-stopped"
  | "note-old"
  | "note-young"
  /** The verdict says nothing about the owner's process that could be acted on. */
  | "owner-unseen"
  | "owner-gone"
  | "owner-of-another-user"
  | "owner-is-ancestor"
  | "owner-is-process-one"
  | "owner-is-self"
  | "lock-of-wrong-kind"
  | "fence-of-wrong-kind"
  | "fenced-operation"
  | "record-newer";

export interface RepairOption {
  readonly action: RepairAction;
  readonly needs: RepairNeed;
  readonly because: RepairReason;
}

export interface RepairPlan {
  readonly key: LeaseKey;
  readonly verdict: Verdict;
  /** At least one; what is offered first hurts least. */
  readonly options: readonly RepairOption[];
}

export interface RepairView {
  readonly evidence: LeaseEvidence;
  readonly verdict: Verdict;
  readonly facts: RepairFacts;
}

export function decideRepair(view: RepairView): RepairPlan {
  const { evidence, verdict } = view;
  return { key: evidence.key, verdict, options: decideOptions(view) };
}

/** Free, and granted to nobody: an operation is in progress that no owner is around any more. */
export function isFenced({ evidence, verdict }: Pick<RepairView, "evidence" | "verdict">): boolean {
  return verdict.name === "free" && evidence.fence?.isTaken === "yes";
}

/** Worth a line of a report: neither free nor held. */
export function isSuspicious(verdict: Verdict): boolean {
  return verdict.name !== "free" && verdict.name !== "held";
}

function decideOptions(view: RepairView): RepairOption[] {
  const { verdict, evidence } = view;
  if (isFenced(view)) return [nothing("fenced-operation")];
  switch (verdict.name) {
    case "free":
    case "held":
      return [nothing(verdict.because)];
    case "stalled":
      return decideOwner(view);
    case "orphaned":
      return [decideOrphaned(evidence, verdict.because)];
    case "dead":
      return [apply("mark", verdict.because)];
    case "elsewhere":
      return [decideElsewhere(evidence, verdict.because)];
    case "unknowable":
      return decideUnknowable(view);
  }
}

function nothing(because: RepairReason): RepairOption {
  return { action: "none", needs: "nothing", because };
}

function apply(action: RepairAction, because: RepairReason): RepairOption {
  return { action, needs: "apply", because };
}

function approval(action: RepairAction, because: RepairReason): RepairOption {
  return { action, needs: "approval", because };
}

const FORBIDDEN: Readonly<
  Record<Exclude<OwnerSight["signal"], "allowed">, Extract<RepairReason, `owner-${string}`>>
> = {
  "another-user": "owner-of-another-user",
  ancestor: "owner-is-ancestor",
  "process-one": "owner-is-process-one",
  self: "owner-is-self",
  unread: "owner-unseen",
};

/** An owner that lives, or may live: whoever ends it ends what it does. */
function decideOwner({ evidence, verdict, facts }: RepairView): RepairOption[] {
  const { state, signal } = facts.owner;
  const isSeen = evidence.ownerAlive === "yes" && evidence.recordedPids === "ours";
  if (!isSeen || state === "unread") return [nothing("owner-unseen")];
  if (state === "gone") return [nothing("owner-gone")]; // it has ended since; look again
  if (signal !== "allowed") return [nothing(FORBIDDEN[signal])];
  const end = approval("end-owner", verdict.because);
  return state === "stopped" ? [approval("continue-owner", "owner-stopped"), end] : [end];
}

/**
 * With suspects, nobody is signalled before a person has looked at them, the proven ones neither:
 * they may be of one work.
 */
function decideOrphaned({ tree }: LeaseEvidence, because: RepairReason): RepairOption {
  if (tree === "unread") return nothing("tree-unread");
  const some = (test: (found: FoundProcess) => boolean): boolean =>
    tree.members.some(test) || tree.suspects.some(test);
  if (some((found) => !found.isSignalable)) return nothing("unsignalable");
  if (some((found) => found.isAncestor)) return nothing("ancestor-of-newcomer");
  return because === "suspects"
    ? approval("end-suspects", because)
    : apply("end-survivors", because);
}

/**
 * As a newcomer: the first one notes the time, a later one takes it for gone. Only here a mark
 * would say to those who do see the processes that nobody is left, so that none is made then: the
 * next run from here gets the key without it.
 */
function decideElsewhere({ note }: LeaseEvidence, because: VerdictReason): RepairOption {
  if (note === "old") {
    return isVisibleToOthers(because) ? nothing("note-old") : apply("mark", "note-old");
  }
  return note === "young" ? nothing("note-young") : apply("note", because);
}

function decideUnknowable(view: RepairView): RepairOption[] {
  const { verdict, facts } = view;
  if (verdict.because === "lock-replaced") return decideOwner(view);
  if (verdict.because === "no-generation") {
    if (facts.recordFile === "newer") return [nothing("record-newer")];
    return [approval("set-generation", "no-generation")];
  }
  if (isOfWrongKind(facts.lockFile)) return [approval("set-aside-lock", "lock-of-wrong-kind")];
  if (isOfWrongKind(facts.fenceFile)) return [approval("set-aside-lock", "fence-of-wrong-kind")];
  return [nothing(verdict.because)];
}

/**
 * Whether others of this machine may see what is `elsewhere` from here: in another pid or time
 * namespace. Of another boot nobody is left on this kernel.
 */
export function isVisibleToOthers(because: VerdictReason): boolean {
  return because !== "other-machine" && because !== "machine-unread";
}

/** Nobody of us has made it, and nobody of us can lock it. */
export function isOfWrongKind(kind: FileKind): boolean {
  return ["fifo", "link", "directory", "special"].includes(kind);
}
