/** What a repair may do about each verdict, and for whom it needs a person. */
import { describe, expect, test } from "bun:test";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import {
  decideRepair,
  isSuspicious,
  type RepairFacts,
  type RepairView,
} from "../../../src/core/repair-plan.ts";
import { releasedView, sampleView } from "../../support/lease-views.ts";
import { ALLOWED, deserted, found, stalled, STOPPED, viewOf } from "../../support/repair-views.ts";

function optionsOf(view: RepairView): string[] {
  return decideRepair(view).options.map(
    ({ action, needs, because }) => `${action}, ${needs}: ${because}`,
  );
}

describe("nothing is done about", () => {
  test("a healthy holder, and a key that is free", () => {
    expect(optionsOf(viewOf(sampleView().evidence))).toEqual(["none, nothing: beat-fresh"]);
    expect(optionsOf(viewOf(releasedView().evidence))).toEqual(["none, nothing: released"]);
  });

  test("a key that is just being acquired", () => {
    const view = viewOf(sampleView({ ownerAlive: "no", beatAgeMs: 90_000 }).evidence);
    expect(optionsOf(view)).toEqual(["none, nothing: being-acquired"]);
  });

  test.each<[RepairFacts["owner"], string]>([
    [{ state: "running", signal: "another-user" }, "owner-of-another-user"],
    [{ state: "stopped", signal: "ancestor" }, "owner-is-ancestor"],
    [{ state: "running", signal: "process-one" }, "owner-is-process-one"],
    [{ state: "running", signal: "self" }, "owner-is-self"],
    [{ state: "running", signal: "unread" }, "owner-unseen"],
    [{ state: "unread", signal: "unread" }, "owner-unseen"],
    [{ state: "gone", signal: "unread" }, "owner-gone"],
  ])("a stalled owner that is seen as %j", (owner, because) => {
    expect(optionsOf(stalled({ owner }))).toEqual([`none, nothing: ${because}`]);
  });

  test("a stalled owner whose pid is not counted as ours", () => {
    const elsewhere = { ownerAlive: "unread", recordedPids: "below-ours" } as const;
    expect(optionsOf(stalled({}, elsewhere))).toEqual(["none, nothing: owner-unseen"]);
  });

  test("a tree that could not be looked at, or of others, or around us", () => {
    const [other, above] = [found(7, { isSignalable: false }), found(8, { isAncestor: true })];
    const none = { members: [], suspects: [] };
    expect(optionsOf(deserted("unread"))).toEqual(["none, nothing: tree-unread"]);
    for (const list of ["members", "suspects"] as const) {
      expect(optionsOf(deserted({ ...none, [list]: [other] }))).toEqual([
        "none, nothing: unsignalable",
      ]);
      expect(optionsOf(deserted({ ...none, [list]: [above] }))).toEqual([
        "none, nothing: ancestor-of-newcomer",
      ]);
    }
  });

  test("a record of a newer version, and a lock that cannot be asked for another reason", () => {
    const lost = { lock: { kind: "free" }, source: { kind: "unreadable", reason: "x" } } as const;
    const newer = viewOf(sampleView(lost).evidence, { recordFile: "newer" });
    expect(optionsOf(newer)).toEqual(["none, nothing: record-newer"]);
    const unaskable = sampleView({ lock: { kind: "unaskable", reason: "ENOLCK" } }).evidence;
    expect(optionsOf(viewOf(unaskable))).toEqual(["none, nothing: lock-unaskable"]);
  });
});

describe("by --apply", () => {
  test("proven members of a dead owner are ended, and an empty tree is marked", () => {
    expect(optionsOf(deserted({ members: [found(7)], suspects: [] }))).toEqual([
      "end-survivors, apply: members",
    ]);
    expect(optionsOf(deserted({ members: [], suspects: [] }))).toEqual(["mark, apply: tree-empty"]);
  });

  test("an owner out of sight is noted, waited for, and marked, as a newcomer does", () => {
    const away = { lock: { kind: "free" }, sameBoot: "no", sameMachine: "no" } as const;
    const options = (note: "none" | "young" | "old" | "unread") =>
      optionsOf(viewOf(sampleView({ ...away, note }).evidence));
    expect(options("none")).toEqual(["note, apply: other-machine"]);
    expect(options("unread")).toEqual(["note, apply: other-machine"]);
    expect(options("young")).toEqual(["none, nothing: note-young"]);
    expect(options("old")).toEqual(["mark, apply: note-old"]);
  });

  test("an owner that others may see from another namespace is not marked for them", () => {
    const away = { lock: { kind: "free" }, note: "old" } as const;
    const options = (more: Partial<LeaseEvidence>) =>
      optionsOf(viewOf(sampleView({ ...away, ...more }).evidence));
    expect(options({ namespaceContained: "no" })).toEqual(["none, nothing: note-old"]);
    expect(options({ namespaceContained: "unread" })).toEqual(["none, nothing: note-old"]);
    const replaced = { sameLockInode: "no", ownerAlive: "unread" } as const;
    expect(options(replaced)).toEqual(["none, nothing: note-old"]);
    const other = { sameBoot: "no", sameMachine: "unread" } as const;
    expect(options(other)).toEqual(["mark, apply: note-old"]);
  });
});

describe("with an approval alone", () => {
  test("a stalled owner is ended; a stopped one is offered CONT first", () => {
    expect(optionsOf(stalled({ owner: ALLOWED }))).toEqual(["end-owner, approval: beat-old"]);
    expect(optionsOf(stalled({ owner: STOPPED }))).toEqual([
      "continue-owner, approval: owner-stopped",
      "end-owner, approval: beat-old",
    ]);
  });

  test("suspects are ended, with the members beside them", () => {
    const tree = { members: [found(7)], suspects: [found(8)] };
    expect(optionsOf(deserted(tree))).toEqual(["end-suspects, approval: suspects"]);
  });

  test("an owner beside a replaced lock is ended", () => {
    const replaced = { lock: { kind: "free" }, sameLockInode: "no" } as const;
    expect(optionsOf(viewOf(sampleView(replaced).evidence))).toEqual([
      "end-owner, approval: lock-replaced",
    ]);
  });

  test("a generation is given where nothing tells one", () => {
    const lost = { lock: { kind: "free" }, source: { kind: "unreadable", reason: "x" } } as const;
    const view = viewOf(sampleView(lost).evidence, { recordFile: "unreadable" });
    expect(optionsOf(view)).toEqual(["set-generation, approval: no-generation"]);
  });

  test.each(["fifo", "link", "directory", "special"] as const)(
    "a %s in the place of the lock or the fence is set aside",
    (kind) => {
      const view = sampleView({ lock: { kind: "unaskable", reason: "x" } }).evidence;
      expect(optionsOf(viewOf(view, { lockFile: kind }))).toEqual([
        "set-aside-lock, approval: lock-of-wrong-kind",
      ]);
      expect(optionsOf(viewOf(view, { fenceFile: kind }))).toEqual([
        "set-aside-lock, approval: fence-of-wrong-kind",
      ]);
    },
  );
});

test("suspicious is everything but free and held", () => {
  const names = ["free", "held", "stalled", "orphaned", "dead", "elsewhere", "unknowable"] as const;
  const suspicious = names.filter((name) =>
    isSuspicious({ name, rule: "R1", because: "lock-unaskable" }),
  );
  expect(suspicious).toEqual(["stalled", "orphaned", "dead", "elsewhere", "unknowable"]);
});
