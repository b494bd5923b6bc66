/** What a newcomer does about each verdict. */
import { describe, expect, test } from "bun:test";
import type { LeaseEvidence, SeenNote } from "../../../src/core/evidence.ts";
import type { Verdict, VerdictName, VerdictReason } from "../../../src/core/lease-verdict.ts";
import { decideNewcomer, isQuietRefusal } from "../../../src/core/newcomer.ts";
import type { SurvivorPolicy } from "../../../src/core/run-options.ts";

const MEMBER = {
  pid: 7,
  start_time: 9,
  command: "sleep 60",
  isSignalable: true,
  isAncestor: false,
};

const EVIDENCE: LeaseEvidence = {
  key: { kind: "job", name: "nightly" },
  lock: { kind: "free" },
  source: { kind: "none" },
  record: undefined,
  slot: undefined,
  hasHistory: "yes",
  isReleasedByJournal: "no",
  ownerAlive: "no",
  sameBoot: "yes",
  sameMachine: "yes",
  sameLockInode: "yes",
  namespaceContained: "yes",
  recordedPids: "ours",
  beatAgeMs: undefined,
  staleAfterMs: 40_000,
  note: "none",
  tree: { members: [MEMBER], suspects: [] },
};

function verdict(name: VerdictName, because: VerdictReason, rule: Verdict["rule"] = "R6"): Verdict {
  return { name, rule, because };
}

interface More {
  readonly isAround?: boolean;
  readonly note?: SeenNote;
  readonly onSurvivors?: SurvivorPolicy;
  readonly tree?: LeaseEvidence["tree"];
}

function decide(of: Verdict, more: More = {}) {
  const note = more.note ?? "none";
  return decideNewcomer(of, {
    isHeldByRunAround: more.isAround ?? false,
    note,
    evidence: { ...EVIDENCE, note, tree: more.tree ?? EVIDENCE.tree },
    onSurvivors: more.onSurvivors ?? "kill",
  });
}

const LOCKED = { kind: "refuse", status: "locked", canWait: true, leavesNote: false } as const;

describe("a newcomer", () => {
  test.each<[VerdictName, VerdictReason]>([
    ["free", "never-held"],
    ["free", "nothing-recorded"],
    ["free", "released-by-journal"],
    ["dead", "tree-empty"],
    ["dead", "other-boot"],
  ])("acquires a key that is %s because %s, whatever run its record names", (name, because) => {
    expect(decide(verdict(name, because))).toEqual({ kind: "acquire", because });
    expect(decide(verdict(name, because), { isAround: true }).kind).toBe("acquire");
  });

  test.each<[VerdictName, VerdictReason, Verdict["rule"]]>([
    ["held", "beat-fresh", "R2"],
    ["held", "being-acquired", "R3"],
    ["stalled", "beat-old", "R2"],
    ["unknowable", "lock-replaced", "R7"],
  ])("waits for a key that is %s because %s", (name, because, rule) => {
    expect(decide(verdict(name, because, rule))).toEqual({ ...LOCKED, because });
  });

  test("refuses at once what a run around it holds: it would wait for itself", () => {
    const refusal = { ...LOCKED, canWait: false, because: "held-by-run-around" } as const;
    expect(decide(verdict("held", "beat-fresh", "R2"), { isAround: true })).toEqual(refusal);
    expect(decide(verdict("stalled", "beat-old", "R2"), { isAround: true })).toEqual(refusal);
    const replaced = verdict("unknowable", "lock-replaced", "R7");
    expect(decide(replaced, { isAround: true })).toEqual(refusal);
  });

  test("waits where somebody else takes over from a dead run around it", () => {
    const taken = verdict("held", "being-acquired", "R3");
    expect(decide(taken, { isAround: true })).toEqual({ ...LOCKED, because: "being-acquired" });
  });

  test("ends proven members, all that were found", () => {
    const decision = decide(verdict("orphaned", "members"));
    expect(decision).toEqual({ kind: "end-survivors", members: [MEMBER] });
  });

  test.each<VerdictReason>(["tree-unread", "unsignalable", "suspects"])(
    "ends nobody of a tree with %s, and waits for it to be gone",
    (because) => {
      expect(decide(verdict("orphaned", because))).toEqual({ ...LOCKED, because });
    },
  );

  test("does not wait for its own ancestor, which waits for it", () => {
    expect(decide(verdict("orphaned", "ancestor-of-newcomer"))).toEqual({
      ...LOCKED,
      because: "ancestor-of-newcomer",
      canWait: false,
    });
  });

  test.each<[SurvivorPolicy, VerdictReason]>([
    ["wait", "members"],
    ["wait", "unsignalable"],
    ["refuse", "members"],
    ["refuse", "unsignalable"],
  ])("with --on-survivors %s leaves %s alone until they are gone", (onSurvivors, because) => {
    const refusal = { ...LOCKED, because: "survivors-alive" } as const;
    expect(decide(verdict("orphaned", because), { onSurvivors })).toEqual(refusal);
  });

  test.each<SurvivorPolicy>(["wait", "refuse"])(
    "with --on-survivors %s does not wait for members that are its own ancestors",
    (onSurvivors) => {
      const refusal = { ...LOCKED, because: "ancestor-of-newcomer", canWait: false } as const;
      const members = [MEMBER, { ...MEMBER, isSignalable: false, isAncestor: true }];
      const more = { onSurvivors, tree: { members, suspects: [] } };
      expect(decide(verdict("orphaned", "unsignalable"), more)).toEqual(refusal);
      expect(decide(verdict("orphaned", "ancestor-of-newcomer"), more)).toEqual(refusal);
    },
  );

  test.each<VerdictReason>(["tree-unread", "suspects"])(
    "lets no policy for survivors change what follows from %s",
    (because) => {
      for (const onSurvivors of ["kill", "wait", "refuse"] as const) {
        const decision = decide(verdict("orphaned", because), { onSurvivors });
        expect(decision).toEqual({ ...LOCKED, because });
      }
    },
  );

  test("notes the time where the owner is elsewhere, and acquires once a note is old", () => {
    const elsewhere = verdict("elsewhere", "other-namespace");
    const refusal = { ...LOCKED, because: "other-namespace" } as const;
    expect(decide(elsewhere)).toEqual({ ...refusal, leavesNote: true });
    expect(decide(elsewhere, { note: "young" })).toEqual(refusal);
    expect(decide(elsewhere, { note: "unread" })).toEqual({ ...refusal, leavesNote: true });
    const acquires = { kind: "acquire", because: "note-old" } as const;
    expect(decide(elsewhere, { note: "old" })).toEqual(acquires);
  });

  test("is not helped by an old note with any other verdict", () => {
    const old = { note: "old" } as const;
    expect(decide(verdict("held", "beat-fresh", "R2"), old).kind).toBe("refuse");
    expect(decide(verdict("orphaned", "suspects"), old).kind).toBe("refuse");
    expect(decide(verdict("unknowable", "no-generation", "R8"), old).kind).toBe("refuse");
  });

  test.each<[VerdictReason, Verdict["rule"]]>([
    ["lock-unaskable", "R1"],
    ["no-generation", "R8"],
  ])("leaves it to a person where the verdict is unknowable because %s", (because, rule) => {
    expect(decide(verdict("unknowable", because, rule))).toEqual({
      ...LOCKED,
      status: "config_error",
      because,
      canWait: false,
    });
  });
});

test("only a refusal because of a healthy holder is quiet", () => {
  expect(isQuietRefusal(verdict("held", "beat-fresh", "R2"))).toBe(true);
  expect(isQuietRefusal(verdict("held", "being-acquired", "R3"))).toBe(true);
  const loud = ["stalled", "orphaned", "elsewhere", "unknowable"] as const;
  expect(loud.filter((name) => isQuietRefusal(verdict(name, "beat-old")))).toEqual([]);
});
