/** The verdict on a lease: the stories behind the rules. All combinations: test/property. */
import { describe, expect, test } from "bun:test";
import type { FoundProcess, LeaseEvidence } from "../../../src/core/evidence.ts";
import { decideVerdict } from "../../../src/core/lease-verdict.ts";

const OPEN = {
  kind: "read",
  from: "record",
  generation: 12,
  isReleased: false,
  runId: "run",
} as const;

const EMPTY = { members: [], suspects: [] };

/** Of a run on this machine and boot that has not released its lease. */
function gather(more: Partial<LeaseEvidence>): LeaseEvidence {
  return {
    key: { kind: "job", name: "nightly" },
    lock: { kind: "free" },
    source: OPEN,
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
    tree: "unread",
    ...more,
  };
}

function tell(more: Partial<LeaseEvidence>): string {
  const { name, rule, because } = decideVerdict(gather(more));
  return `${name} ${rule} ${because}`;
}

function find(more: Partial<FoundProcess> = {}): FoundProcess {
  return {
    pid: 7,
    start_time: 9,
    command: "sleep 60",
    isSignalable: true,
    isAncestor: false,
    ...more,
  };
}

const HELD = { lock: { kind: "held" } } as const;

describe("a taken lock", () => {
  test("with beats that are 80 minutes old is stalled and never free: incident A", () => {
    const old = { ...HELD, ownerAlive: "yes", beatAgeMs: 4_800_000 } as const;
    expect(tell(old)).toBe("stalled R2 beat-old");
    expect(tell({ ...old, beatAgeMs: 39_000 })).toBe("held R2 beat-fresh");
  });

  test("is stalled only after the limit that the owner's own record sets", () => {
    const taken = { ...HELD, ownerAlive: "yes", beatAgeMs: 40_000 } as const;
    expect(tell(taken)).toBe("held R2 beat-fresh");
    expect(tell({ ...taken, staleAfterMs: 39_999 })).toBe("stalled R2 beat-old");
  });

  test("is held where the age of the beat cannot be read, or would be of the future", () => {
    const taken = { ...HELD, ownerAlive: "yes" } as const;
    expect(tell({ ...taken, beatAgeMs: undefined })).toBe("held R2 beat-unread");
    expect(tell({ ...taken, beatAgeMs: -5 })).toBe("held R2 beat-unread");
  });

  test("belongs to the recorded owner also where its pid cannot be compared", () => {
    const taken = { ...HELD, ownerAlive: "unread", beatAgeMs: 90_000 } as const;
    expect(tell(taken)).toBe("stalled R2 beat-old");
  });

  test.each<[string, Partial<LeaseEvidence>]>([
    ["there is no record yet", { source: { kind: "none" } }],
    ["the record is corrupt", { source: { kind: "unreadable", reason: "no JSON" } }],
    ["the record is released", { source: { ...OPEN, isReleased: true } }],
    ["the record is of a dead owner", { ownerAlive: "no" }],
    ["the record is of another boot, with pid and start by chance alike", { sameBoot: "no" }],
  ])("is being acquired, and never stalled, where %s", (_, more) => {
    const taken = { ...HELD, ownerAlive: "yes", beatAgeMs: 4_800_000, ...more } as const;
    expect(tell(taken)).toBe("held R3 being-acquired");
  });
});

describe("a free lock", () => {
  test("of a key that was never used is free, and so is a released one", () => {
    const unused = { source: { kind: "none" }, hasHistory: "no" } as const;
    expect(tell({ ...unused, isReleasedByJournal: "no" })).toBe("free R4 never-held");
    expect(tell({ source: { ...OPEN, isReleased: true } })).toBe("free R4 released");
    expect(tell({ isReleasedByJournal: "yes" })).toBe("free R4 released-by-journal");
  });

  test("is not said to be of a key that was never used while the journal cannot tell", () => {
    const gone = { source: { kind: "none" }, hasHistory: "no" } as const;
    const told = tell({ ...gone, isReleasedByJournal: "unread" });
    expect(told).toBe("free R4 nothing-recorded");
  });

  test("is not free because the journal could not be asked", () => {
    expect(tell({ isReleasedByJournal: "unread", tree: EMPTY })).toBe("dead R6 tree-empty");
  });

  test("over a history that nobody can read any more needs a person", () => {
    const unreadable = { source: { kind: "unreadable", reason: "zeros" } } as const;
    expect(tell(unreadable)).toBe("unknowable R8 no-generation");
    expect(tell({ source: { kind: "none" } })).toBe("unknowable R8 no-generation");
    const unread = { source: { kind: "none" }, hasHistory: "unread" } as const;
    expect(tell(unread)).toBe("unknowable R8 no-generation");
  });

  test("after a reboot of this machine proves death; of another machine it does not", () => {
    const other = { sameBoot: "no" } as const;
    expect(tell(other)).toBe("dead R5 other-boot");
    expect(tell({ ...other, sameMachine: "no" })).toBe("elsewhere R5 other-machine");
    expect(tell({ ...other, sameMachine: "unread" })).toBe("elsewhere R5 machine-unread");
  });

  test("with the recorded inode proves the owner dead, whatever its pid says", () => {
    expect(tell({ ownerAlive: "yes", tree: EMPTY })).toBe("dead R6 tree-empty");
    expect(tell({ ownerAlive: "unread", tree: EMPTY })).toBe("dead R6 tree-empty");
  });

  test("proves nothing where the lock file was replaced under a living owner", () => {
    const replaced = { sameLockInode: "no", tree: EMPTY } as const;
    expect(tell({ ...replaced, ownerAlive: "yes" })).toBe("unknowable R7 lock-replaced");
    expect(tell({ ...replaced, ownerAlive: "unread" })).toBe("elsewhere R7 owner-unread");
    expect(tell(replaced)).toBe("dead R7 tree-empty");
    expect(tell({ ...replaced, sameLockInode: "unread" })).toBe("dead R7 tree-empty");
  });

  test("tells nothing about a tree in a pid namespace that is not below ours", () => {
    expect(tell({ namespaceContained: "no", tree: EMPTY })).toBe("elsewhere R6 other-namespace");
    const unread = { namespaceContained: "unread", tree: EMPTY } as const;
    expect(tell(unread)).toBe("elsewhere R6 namespace-unread");
  });

  test("with only the journal to tell of the owner is dead to nobody", () => {
    const told = { source: { ...OPEN, from: "journal" }, sameBoot: "unread" } as const;
    expect(tell(told)).toBe("orphaned R5 tree-unread");
    expect(tell({ ...told, tree: EMPTY })).toBe("elsewhere R5 boot-unread");
    const tree = { members: [], suspects: [find()] };
    expect(tell({ ...told, tree })).toBe("orphaned R5 suspects");
  });
});

describe("the tree of a dead owner", () => {
  test("that was not looked at leaves the key orphaned", () => {
    expect(tell({ tree: "unread" })).toBe("orphaned R6 tree-unread");
  });

  test("with proven members that may be signalled is for the policy", () => {
    expect(tell({ tree: { members: [find()], suspects: [] } })).toBe("orphaned R6 members");
  });

  test.each([
    ["unsignalable", [find(), find({ isSignalable: false })], []],
    ["suspects", [], [find()]],
    ["suspects", [find()], [find()]],
    ["ancestor-of-newcomer", [find({ isAncestor: true }), find()], []],
  ])("is orphaned because of %s before anything else", (because, members, suspects) => {
    expect(tell({ tree: { members, suspects } })).toBe(`orphaned R6 ${because}`);
  });
});
