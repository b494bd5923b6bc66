/**
 * What a repair may do over all evidence that a verdict can follow from, judged from the evidence
 * itself and not from the verdict: who may be alive, who is proven, and what could be hurt.
 */
import { expect, test } from "bun:test";
import type { Fact, FoundProcess, LeaseEvidence, SeenNote } from "../../src/core/evidence.ts";
import { decideVerdict } from "../../src/core/lease-verdict.ts";
import {
  decideRepair,
  type FileKind,
  type OwnerSight,
  type RepairFacts,
  type RepairOption,
  type RepairView,
} from "../../src/core/repair-plan.ts";
import { sampleFacts } from "../support/repair-views.ts";

const FACTS: readonly Fact[] = ["yes", "no", "unread"];
const NOTES: readonly SeenNote[] = ["none", "young", "old", "unread"];

function find(isSignalable: boolean, isAncestor: boolean): FoundProcess {
  return { pid: 4711, start_time: 5, command: "sleep 60", isSignalable, isAncestor };
}

const PROCESSES = [find(true, false), find(false, false), find(true, true)];
const SOME = [[], ...PROCESSES.map((one) => [one]), PROCESSES.slice(0, 2)];
const TREES: readonly LeaseEvidence["tree"][] = [
  "unread",
  ...SOME.flatMap((members) => SOME.map((suspects) => ({ members, suspects }))),
  { members: [], suspects: [], isBlind: true },
];
const LOCKS: readonly LeaseEvidence["lock"][] = [
  { kind: "held" },
  { kind: "free" },
  { kind: "unaskable", reason: "EACCES" },
];
const READ = { kind: "read", from: "record", generation: 3, runId: "r" } as const;
const SOURCES: readonly LeaseEvidence["source"][] = [
  { kind: "none" },
  { kind: "unreadable", reason: "cut" },
  { ...READ, isReleased: true },
  { ...READ, isReleased: false },
];
const OWNERS: readonly OwnerSight[] = (["stopped", "running", "gone", "unread"] as const).flatMap(
  (state) =>
    (["allowed", "another-user", "ancestor", "process-one", "self", "unread"] as const).map(
      (signal) => ({ state, signal }),
    ),
);
const KINDS: readonly FileKind[] = ["regular", "missing", "fifo", "link", "directory", "special"];
const RECORDS: readonly RepairFacts["recordFile"][] = ["read", "none", "unreadable", "newer"];

function* pairs<One, Other>(ones: Iterable<One>, others: readonly Other[]) {
  for (const one of ones) for (const other of others) yield [one, other] as const;
}

/** Everything that a verdict can follow from; of the rest one value. */
function* listEvidence(): Generator<LeaseEvidence> {
  const base = { key: { kind: "job", name: "x" }, record: undefined, slot: undefined } as const;
  const owners = pairs(pairs(pairs(pairs(FACTS, FACTS), FACTS), FACTS), FACTS);
  for (const [[[[boot, machine], inode], namespace], alive] of owners) {
    for (const [[[lock, source], tree], note] of pairs(
      pairs(pairs(LOCKS, SOURCES), TREES),
      NOTES,
    )) {
      yield {
        ...base,
        lock,
        source,
        hasHistory: "yes",
        isReleasedByJournal: "no",
        ownerAlive: alive,
        sameBoot: boot,
        sameMachine: machine,
        sameLockInode: inode,
        namespaceContained: namespace,
        recordedPids: namespace === "yes" ? "ours" : "incomparable",
        beatAgeMs: 5,
        staleAfterMs: machine === "yes" ? 4 : 6,
        note,
        tree,
      };
    }
  }
}

const ALL = (tree: LeaseEvidence["tree"]): readonly FoundProcess[] =>
  tree === "unread" ? [] : [...tree.members, ...tree.suspects];

/** The kernel or the calendar has proven that the recorded owner is gone. */
function isOwnerDead({ lock, source, sameBoot, ...more }: LeaseEvidence): boolean {
  if (lock.kind !== "free" || source.kind !== "read" || source.isReleased) return false;
  if (sameBoot === "no") return more.sameMachine === "yes";
  return sameBoot === "yes" && (more.sameLockInode === "yes" || more.ownerAlive === "no");
}

/** What each action needs; the rest need an approval. */
const NEEDS: Readonly<Record<string, string>> = {
  none: "nothing",
  mark: "apply",
  note: "apply",
  "end-survivors": "apply",
};

/** A rule that was broken, in words; undefined: none. */
function complain(view: RepairView, { action, needs }: RepairOption): string | undefined {
  const { evidence } = view;
  if (needs !== (NEEDS[action] ?? "approval")) return `${action} needs ${needs}`;
  switch (action) {
    case "continue-owner":
    case "end-owner":
      return complainOfOwner(view, action);
    case "end-survivors":
    case "end-suspects":
      return complainOfTree(evidence, action);
    case "mark":
      return complainOfMark(view);
    default:
      return complainOfFiles(view, action);
  }
}

function complainOfFiles({ evidence, facts }: RepairView, action: string): string | undefined {
  const isKnown = evidence.source.kind === "read";
  if (action === "note") return evidence.note === "young" || !isKnown ? "notes in vain" : undefined;
  if (action === "set-generation") {
    return isKnown || facts.recordFile === "newer" ? "not needed" : undefined;
  }
  if (action !== "set-aside-lock") return undefined;
  return evidence.lock.kind === "unaskable" ? undefined : "moves a lock that can be asked";
}

function complainOfOwner({ evidence, facts }: RepairView, action: string): string | undefined {
  const { lock, ownerAlive, recordedPids, beatAgeMs = 0, staleAfterMs, sameLockInode } = evidence;
  if (ownerAlive !== "yes" || recordedPids !== "ours") return "signals who is not seen to live";
  if (facts.owner.signal !== "allowed") return "signals who may not be signalled";
  if (action === "continue-owner" && facts.owner.state !== "stopped") return "no need of CONT";
  const isOld = lock.kind === "held" && beatAgeMs > staleAfterMs;
  const isReplaced = lock.kind === "free" && sameLockInode !== "yes";
  return isOld || isReplaced ? undefined : "touches an owner without a reason";
}

function complainOfTree({ lock, tree }: LeaseEvidence, action: string): string | undefined {
  if (lock.kind !== "free") return "ends a tree under a taken lock";
  if (ALL(tree).some((one) => !one.isSignalable || one.isAncestor)) return "ends a wrong one";
  const suspects = tree === "unread" ? [] : tree.suspects;
  return action === "end-survivors" && suspects.length > 0 ? "ends unproven ones" : undefined;
}

function complainOfMark({ evidence, verdict }: RepairView): string | undefined {
  const { note, sameBoot, namespaceContained, tree } = evidence;
  // Of another boot nobody is left on this kernel, whoever looks from where.
  const isElsewhere = verdict.name === "elsewhere" && sameBoot === "no";
  if (note === "old" && isElsewhere) return undefined;
  const isSeen = sameBoot === "no" || namespaceContained === "yes";
  const isEmpty = sameBoot === "no" || (tree !== "unread" && ALL(tree).length === 0);
  return isOwnerDead(evidence) && isSeen && isEmpty ? undefined : "marks who may live";
}

/** What has to be offered, by the evidence alone. */
function missing({ evidence }: RepairView, options: readonly RepairOption[]): string | undefined {
  const has = (action: string): boolean => options.some((one) => one.action === action);
  if (options.length === 0) return "no option at all";
  if (has("none") && options.length > 1) return "none beside another one";
  if (evidence.lock.kind === "held" && options.some(({ needs }) => needs === "apply")) {
    return "does something by itself under a taken lock";
  }
  const wanted = isOwnerDead(evidence) ? wantedOf(evidence) : undefined;
  if (wanted === undefined) return undefined;
  const isRight = has(wanted.action) === wanted.isOffered;
  return isRight ? undefined : `${wanted.action}: expected ${wanted.isOffered}`;
}

/** For an owner that is dead; undefined: from here nothing of its tree can be said. */
function wantedOf({ tree, sameBoot, namespaceContained }: LeaseEvidence) {
  if (sameBoot === "no") return { action: "mark", isOffered: true };
  if (namespaceContained !== "yes" || tree === "unread" || "isBlind" in tree) return undefined;
  if (ALL(tree).length === 0) return { action: "mark", isOffered: true };
  const isOffered = ALL(tree).every((one) => one.isSignalable && !one.isAncestor);
  return { action: tree.suspects.length > 0 ? "end-suspects" : "end-survivors", isOffered };
}

function judge(view: RepairView): string | undefined {
  const { options } = decideRepair(view);
  const wrong = options.flatMap((option) => complain(view, option) ?? []);
  const continued = options.findIndex(({ action }) => action === "continue-owner");
  const order = continued > 0 ? "CONT is not offered first" : undefined;
  return wrong[0] ?? order ?? missing(view, options);
}

test("does by itself only what hurts nobody who may live, and the rest with an approval", () => {
  const wrong: unknown[] = [];
  const actions = new Map<string, number>();
  let count = 0;
  for (const evidence of listEvidence()) {
    const verdict = decideVerdict(evidence);
    const asksOwner = verdict.name === "stalled" || verdict.because === "lock-replaced";
    // The owner and the files are looked at where the verdict asks for them, and else not.
    for (const owner of asksOwner ? OWNERS : OWNERS.slice(0, 1)) {
      count += 1;
      const view = { evidence, verdict, facts: sampleFacts({ owner }) };
      const complaint = judge(view);
      if (complaint !== undefined && wrong.length < 3) wrong.push({ complaint, view });
      for (const { action } of decideRepair(view).options) {
        actions.set(action, (actions.get(action) ?? 0) + 1);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(3 ** 5 * LOCKS.length * SOURCES.length * TREES.length * 4);
  expect([...actions.keys()].toSorted()).toEqual([
    "continue-owner",
    "end-owner",
    "end-survivors",
    "end-suspects",
    "mark",
    "none",
    "note",
    "set-generation",
  ]);
}, 600_000);

test("moves only what nobody of us has made, and never a record of a newer version", () => {
  const wrong: unknown[] = [];
  let moved = 0;
  const evidences = [...listEvidence()].filter(
    (one, index) => index % 97 === 0 || one.note === "old",
  );
  for (const evidence of evidences.slice(0, 20_000)) {
    const verdict = decideVerdict(evidence);
    if (verdict.name !== "unknowable") continue;
    for (const [[lockFile, fenceFile], recordFile] of pairs(pairs(KINDS, KINDS), RECORDS)) {
      const view = {
        evidence,
        verdict,
        facts: sampleFacts({ lockFile, fenceFile, recordFile }),
      };
      const complaint = judge(view);
      const isWrong = [lockFile, fenceFile].some((kind) => !["regular", "missing"].includes(kind));
      const isMoved = decideRepair(view).options[0]?.action === "set-aside-lock";
      if (isMoved) moved += 1;
      const shouldMove = evidence.lock.kind === "unaskable" && isWrong;
      if (complaint !== undefined || isMoved !== shouldMove) wrong.push({ complaint, view });
    }
  }
  expect(wrong.slice(0, 2)).toEqual([]);
  expect(moved).toBeGreaterThan(0);
}, 600_000);
