/**
 * The ordered rules of a verdict, told one by one: why each before the one that decided does not
 * fit. Pure; refuses to decide anything (core/lease-verdict.ts does) and to know words for people.
 *
 * Always: the rule without a miss is the one that decided, and none behind it is told of, because
 * none was asked. A property test holds this against every verdict.
 */
import type { LeaseEvidence } from "./evidence.ts";
import type { VerdictRule } from "./lease-verdict.ts";

/** What of a rule is not so. */
export type RuleMiss =
  | "lock-askable"
  | "lock-free"
  | "released"
  | "released-by-journal"
  | "not-released"
  | "used-before"
  | "record-unreadable"
  | "generation-unknown"
  | "same-boot"
  | "other-boot"
  | "owner-gone"
  | "other-lock-file"
  | "lock-file-unread";

export interface ExplainedRule {
  readonly rule: VerdictRule;
  readonly state: "missed" | "decided" | "not-asked";
  /** At least one where it missed, else none. */
  readonly misses: readonly RuleMiss[];
}

type Conditions = (evidence: LeaseEvidence) => readonly (RuleMiss | false)[];

/** Of each only what those before it have left open. */
const RULES: readonly (readonly [rule: VerdictRule, conditions: Conditions])[] = [
  ["R1", ({ lock }) => [lock.kind !== "unaskable" && "lock-askable"]],
  ["R2", (evidence) => [...missTaken(evidence), ...missHolder(evidence)]],
  ["R3", missTaken],
  ["R4", missReleased],
  ["R5", (evidence) => missGeneration(evidence) ?? [evidence.sameBoot === "yes" && "same-boot"]],
  ["R6", (evidence) => missGeneration(evidence) ?? missLockFile(evidence)],
  ["R7", (evidence) => missGeneration(evidence) ?? []],
  ["R8", () => []],
];

export function explainRules(evidence: LeaseEvidence): ExplainedRule[] {
  let isDecided = false;
  return RULES.map(([rule, conditions]) => {
    if (isDecided) return { rule, state: "not-asked", misses: [] };
    const misses = conditions(evidence).filter((miss) => miss !== false);
    isDecided = misses.length === 0;
    return { rule, state: isDecided ? "decided" : "missed", misses };
  });
}

function missTaken({ lock }: LeaseEvidence): (RuleMiss | false)[] {
  return [lock.kind === "free" && "lock-free"];
}

/** The record must name somebody who may be the one that has the lock. */
function missHolder(evidence: LeaseEvidence): (RuleMiss | false)[] {
  const { source, isReleasedByJournal, sameBoot, ownerAlive } = evidence;
  return [
    source.kind === "none" && "generation-unknown",
    source.kind === "unreadable" && "record-unreadable",
    source.kind === "read" && source.isReleased && "released",
    isReleasedByJournal === "yes" && "released-by-journal",
    sameBoot === "no" && "other-boot",
    ownerAlive === "no" && "owner-gone",
  ];
}

/** Given back, as the record or the journal says, or never granted. */
function missReleased(evidence: LeaseEvidence): (RuleMiss | false)[] {
  const { source, hasHistory, isReleasedByJournal } = evidence;
  if (isReleasedByJournal === "yes") return [];
  if (source.kind === "read") return [!source.isReleased && "not-released"];
  if (source.kind === "unreadable") return ["record-unreadable"];
  return [hasHistory !== "no" && "used-before"];
}

/** Undefined: there is one, of an owner that has not given it back. */
function missGeneration({ source }: LeaseEvidence): RuleMiss[] | undefined {
  return source.kind === "read" ? undefined : ["generation-unknown"];
}

function missLockFile({ sameLockInode }: LeaseEvidence): (RuleMiss | false)[] {
  return [
    sameLockInode === "no" && "other-lock-file",
    sameLockInode === "unread" && "lock-file-unread",
  ];
}
