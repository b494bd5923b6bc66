/**
 * What a newcomer does over all evidence that a verdict can follow from, judged from the evidence
 * itself: what proof there is that nobody is at work, and whom it is safe to end.
 */
import { expect, test } from "bun:test";
import type { Fact, FoundProcess, LeaseEvidence, SeenNote } from "../../src/core/evidence.ts";
import { decideVerdict } from "../../src/core/lease-verdict.ts";
import {
  decideNewcomer,
  type NewcomerDecision,
  type NewcomerFacts,
} from "../../src/core/newcomer.ts";
import type { SurvivorPolicy } from "../../src/core/run-options.ts";

const FACTS: readonly Fact[] = ["yes", "no", "unread"];
const POLICIES: readonly SurvivorPolicy[] = ["kill", "wait", "refuse"];
const NOTES: readonly SeenNote[] = ["none", "young", "old", "unread"];

function find(isSignalable: boolean, isAncestor: boolean): FoundProcess {
  return { pid: 4711, start_time: 5, command: "sleep 60", isSignalable, isAncestor };
}

const PROCESSES = [find(true, false), find(false, false), find(true, true), find(false, true)];
const SOME = [[], ...PROCESSES.map((one) => [one]), PROCESSES.slice(0, 2), PROCESSES.slice(1)];
const TREES: readonly LeaseEvidence["tree"][] = [
  "unread",
  ...SOME.flatMap((members) => SOME.slice(0, 3).map((suspects) => ({ members, suspects }))),
  // The last beat names somebody who could not be held against the processes that were seen.
  ...SOME.flatMap((members) =>
    SOME.slice(0, 2).map((suspects) => ({ members, suspects, isBlind: true as const })),
  ),
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

function* pairs<One, Other>(ones: Iterable<One>, others: readonly Other[]) {
  for (const one of ones) for (const other of others) yield [one, other] as const;
}

/** Every lock, source, fact and tree. */
function* listEvidence(): Generator<LeaseEvidence> {
  const base = { key: { kind: "job", name: "x" }, record: undefined, slot: undefined } as const;
  const facts = pairs(pairs(pairs(FACTS, FACTS), FACTS), FACTS);
  for (const [[[boot, machine], inode], namespace] of facts) {
    for (const [[[lock, source], owner], tree] of pairs(
      pairs(pairs(LOCKS, SOURCES), FACTS),
      TREES,
    )) {
      for (const [history, journal] of pairs(FACTS, FACTS)) {
        yield {
          ...base,
          lock,
          source,
          hasHistory: history,
          isReleasedByJournal: journal,
          ownerAlive: owner,
          sameBoot: boot,
          sameMachine: machine,
          sameLockInode: inode,
          namespaceContained: namespace,
          recordedPids: "ours",
          beatAgeMs: 5,
          staleAfterMs: machine === "yes" ? 4 : 6,
          note: "none",
          tree,
        };
      }
    }
  }
}

/** A free lock whose last run is named and was not released. */
function isDeserted({ lock, source, isReleasedByJournal }: LeaseEvidence): boolean {
  const isOpen = source.kind === "read" && !source.isReleased && isReleasedByJournal !== "yes";
  return lock.kind === "free" && isOpen;
}

/** Why nobody who is alive can still be at work under the key, or undefined. */
function proofOf(evidence: LeaseEvidence, note: SeenNote): string | undefined {
  const { source } = evidence;
  if (isDeserted(evidence)) return proofOfDeath(evidence, note);
  if (evidence.lock.kind !== "free") return undefined;
  if (source.kind === "read" || evidence.isReleasedByJournal === "yes") return "released";
  return source.kind === "none" && evidence.hasHistory === "no" ? "new" : undefined;
}

function proofOfDeath(evidence: LeaseEvidence, note: SeenNote): string | undefined {
  const { tree, ownerAlive, sameBoot } = evidence;
  const isEmpty = tree !== "unread" && tree.members.length + tree.suspects.length === 0;
  const waited = note === "old" ? "out of sight, and waited" : undefined;
  if (sameBoot === "no") return evidence.sameMachine === "yes" ? "boot ended" : waited;
  if (sameBoot === "unread") return isEmpty ? waited : undefined;
  const isDead = evidence.sameLockInode === "yes" || ownerAlive === "no";
  if (!isDead) return ownerAlive === "yes" ? undefined : waited;
  if (evidence.namespaceContained !== "yes") return waited;
  if (!isEmpty) return undefined;
  return "isBlind" in tree ? waited : "tree empty";
}

/** Members whom it is safe to end: a dead owner of this boot, and everything proven. */
function mayEnd(evidence: LeaseEvidence): boolean {
  const { tree, sameBoot } = evidence;
  const isDead = evidence.sameLockInode === "yes" || evidence.ownerAlive === "no";
  const isSeen = sameBoot === "yes" && evidence.namespaceContained === "yes" && isDead;
  return (
    isDeserted(evidence) &&
    (isSeen || sameBoot === "unread") &&
    tree !== "unread" &&
    tree.suspects.length === 0 &&
    tree.members.length > 0 &&
    tree.members.every((one) => one.isSignalable && !one.isAncestor)
  );
}

/** Whom it would be safe to end, and nobody else, may be waited for under the other policies. */
function complainOfSurvivors(
  evidence: LeaseEvidence,
  { because, canWait }: NewcomerDecision & { kind: "refuse" },
): string | undefined {
  const isForThem = because === "survivors-alive";
  const isForSome = isForThem && !isUnsignalable(evidence);
  if (mayEnd(evidence) !== isForSome) return `${because} for survivors`;
  return isForThem && !canWait ? "does not wait for them" : undefined;
}

function isUnsignalable({ tree }: LeaseEvidence): boolean {
  return tree !== "unread" && tree.members.some((one) => !one.isSignalable);
}

type Asked = Omit<NewcomerFacts, "evidence">;

function complain(evidence: LeaseEvidence, facts: Asked): string | undefined {
  const decision = decideNewcomer(decideVerdict(evidence), { ...facts, evidence });
  const proof = proofOf(evidence, facts.note);
  if (mayEnd(evidence) && facts.onSurvivors === "kill") {
    const isWhole = decision.kind === "end-survivors" && evidence.tree !== "unread";
    return isWhole && decision.members === evidence.tree.members ? undefined : "does not end them";
  }
  if (decision.kind === "end-survivors") return "ends somebody without a proof";
  if ((decision.kind === "acquire") !== (proof !== undefined)) {
    return `${decision.kind} with the proof ${proof}`;
  }
  return decision.kind === "refuse" ? complainOfRefusal(evidence, facts, decision) : undefined;
}

function complainOfRefusal(
  evidence: LeaseEvidence,
  facts: Asked,
  refusal: NewcomerDecision & { kind: "refuse" },
): string | undefined {
  const isTaken = evidence.lock.kind === "held";
  const needsPerson =
    evidence.lock.kind === "unaskable" || (!isTaken && evidence.source.kind !== "read");
  if (needsPerson !== (refusal.status === "config_error")) return `status ${refusal.status}`;
  if (needsPerson && refusal.canWait) return "waits for a person";
  if (refusal.leavesNote && (isTaken || facts.note === "young")) return "leaves a note";
  const mayAgain = proofOf(evidence, "old") !== undefined;
  if (mayAgain && !refusal.leavesNote && facts.note !== "young") return "leaves no note";
  if (isTaken && !facts.isHeldByRunAround && !refusal.canWait) return "does not wait for a holder";
  return complainOfSurvivors(evidence, refusal);
}

const ASKED = [...pairs([false, true], POLICIES)];

test("acquires only with a proof, ends only proven members, and refuses everything else", () => {
  const wrong: unknown[] = [];
  const kinds = new Map<string, number>();
  let count = 0;
  for (const [evidence, note] of pairs(listEvidence(), NOTES)) {
    count += 1;
    const verdict = decideVerdict(evidence);
    for (const [isHeldByRunAround, onSurvivors] of ASKED) {
      const complaint = complain(evidence, { note, isHeldByRunAround, onSurvivors });
      if (complaint !== undefined && wrong.length < 3) wrong.push({ complaint, note, evidence });
    }
    const facts = { isHeldByRunAround: false, note, evidence, onSurvivors: "kill" } as const;
    const { kind } = decideNewcomer(verdict, facts);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  expect(wrong).toEqual([]);
  expect(count).toBe(3 ** 4 * LOCKS.length * SOURCES.length * 3 * TREES.length * 9 * 4);
  expect([...kinds.keys()].toSorted()).toEqual(["acquire", "end-survivors", "refuse"]);
}, 600_000);
