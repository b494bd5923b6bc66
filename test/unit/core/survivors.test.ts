/** Who belongs to the tree of a dead owner: each rule with the process that it is for. */
import { describe, expect, test } from "bun:test";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import type { LeaseRecord, Slot } from "../../../src/core/lease-record.ts";
import { deadRunOf, decideSurvivors, UNREAD_CGROUP } from "../../../src/core/survivors.ts";
import type { DeadRun, SeenProcess } from "../../../src/core/survivors-view.ts";
import { bear, RUN, see, tell } from "../../support/seen-processes.ts";

describe("a proven member is", () => {
  test("who was recorded with a beat, by pid and start time", () => {
    const recorded = [{ pid: 60, start_time: 600 }];
    expect(tell([see(60, 7)], { recorded })).toBe("60 | ");
    expect(tell([see(60, 7, { startTicks: 601 })], { recorded })).toBe(" | ");
  });

  test("who descends from one, with a hidden environment too, also below a dead link", () => {
    const recorded = [{ pid: 60, start_time: 600 }];
    const chain = [see(60, 1), see(61, 60, { state: "Z" }), see(62, 61, { runPath: "unread" })];
    expect(tell(chain, { recorded })).toBe("60 62 | ");
  });

  test("the whole of a chain that is deeper than any stack", () => {
    const recorded = [{ pid: 1000, start_time: 10_000 }];
    const chain = Array.from({ length: 50_000 }, (_, index) => see(1000 + index, 999 + index));
    expect(tell(chain, { recorded }).split(" ").length).toBe(50_002);
  });

  test("a bearer that process 1, a namespace's, or a recorded adopter has adopted", () => {
    expect(tell([bear(60, 1)])).toBe("60 | ");
    expect(tell([bear(60, 30)])).toBe("60 | ");
    expect(tell([see(40, 1, { isNamespaceInit: true }), bear(60, 40)])).toBe("60 | ");
  });

  test("a bearer whose parent is the dying owner itself", () => {
    expect(tell([see(50, 1, { state: "Z" }), bear(60, 50)])).toBe("60 | ");
  });

  test("a bearer in a cgroup below the recorded one, or in any where none was recorded", () => {
    expect(tell([bear(60, 1, { cgroup: "/user/cron/a" })])).toBe("60 | ");
    expect(tell([bear(60, 1, { cgroup: "/else" })], { cgroup: "/" })).toBe("60 | ");
    expect(tell([bear(60, 1, { cgroup: "/else" })], { cgroup: null })).toBe("60 | ");
    expect(tell([bear(60, 1, { cgroup: undefined })], { cgroup: null })).toBe("60 | ");
  });
});

describe("a proven member is who is in the group of the main command", () => {
  const mainGroup = { pid: 55, start_time: 550, sessionId: 40 };
  const inGroup = (pid: number, ppid: number, more: Partial<SeenProcess> = {}) =>
    see(pid, ppid, { groupId: 55, sessionId: 40, runPath: "unread", ...more });

  test("with a hidden environment and whatever parent, while the command lives or not", () => {
    expect(tell([inGroup(60, 1), inGroup(61, 7)], { mainGroup })).toBe("60 61 | ");
    expect(tell([inGroup(55, 1), inGroup(60, 1)], { mainGroup })).toBe("55 60 | ");
    expect(tell([inGroup(55, 1, { state: "Z" }), inGroup(60, 1)], { mainGroup })).toBe("60 | ");
    expect(tell([inGroup(60, 1), see(61, 60)], { mainGroup })).toBe("60 61 | ");
  });

  test.each([
    ["in another session", [inGroup(60, 1, { sessionId: 41 })]],
    ["in another group", [inGroup(60, 1, { groupId: 56 })]],
    ["but older than the owner", [inGroup(60, 1, { startTicks: 499 })]],
    ["whose number was used again", [inGroup(55, 1, { startTicks: 551 }), inGroup(60, 1)]],
    ["and was kept", [inGroup(60, 1, { keptToken: "t" })]],
    ["and is below the one who looks", [inGroup(91, 90), inGroup(92, 91)]],
    ["and is the one who looks", [inGroup(90, 80)]],
  ])("but not one %s", (_, processes) => {
    const kept = { identities: new Set<string>(), tokens: new Set(["t"]) };
    expect(tell(processes, { mainGroup }, { kept })).toBe(" | ");
  });

  test("and nobody where the command shares the group of its caller", () => {
    expect(tell([inGroup(60, 1)], { mainGroup: null })).toBe(" | ");
  });
});

describe("where the command was never written down, a suspect is", () => {
  const run = { unrecordedIn: [40] };
  const lead = (pid: number, ppid: number, more: Partial<SeenProcess> = {}) =>
    see(pid, ppid, { groupId: pid, sessionId: 40, runPath: "unread", ...more });

  test("an orphan that leads a group in the session of the owner", () => {
    for (const ppid of [1, 30]) expect(tell([lead(60, ppid)], run)).toBe(" | 60");
    expect(tell([see(41, 1, { isNamespaceInit: true }), lead(60, 41)], run)).toBe(" | 60");
    expect(tell([see(50, 1, { state: "Z" }), lead(60, 50)], run)).toBe(" | 60");
  });

  test.each([
    ["that is somebody's child", [see(41, 1), lead(60, 41)]],
    ["that leads no group", [lead(60, 1, { groupId: 61 })]],
    ["in another session", [lead(60, 1, { sessionId: 41 })]],
    ["that leads the session, too", [lead(40, 1, { startTicks: 501 })]],
    ["older than the owner", [lead(60, 1, { startTicks: 499 })]],
    ["that carries the cookie of another run", [lead(60, 1, { runPath: ["another"] })]],
  ])("but not one %s", (_, processes) => {
    expect(tell(processes, run)).toBe(" | ");
  });

  test("and nobody outside of the span of the spawn", () => {
    const between = { ...run, unrecordedBetween: [600, 700] as const };
    const found = [599, 600, 700, 701].map((startTicks) =>
      tell([lead(60, 1, { startTicks })], between),
    );
    expect(found).toEqual([" | ", " | 60", " | 60", " | "]);
  });

  test("and nobody where it was", () => {
    expect(tell([lead(60, 1)])).toBe(" | ");
  });
});

describe("a suspect is a bearer", () => {
  test.each([
    ["whose parent adopts nobody's orphans, such as atd", [see(40, 1), bear(60, 40)]],
    ["whose parent is not to be seen", [bear(60, 0)]],
    ["whose parent has the pid of an adopter and another start", [bear(60, 30)]],
    ["that started before the owner", [bear(60, 1, { startTicks: 499 })]],
    ["in another cgroup, as a service of import-environment is", [bear(60, 1, { cgroup: "/s" })]],
    ["in a cgroup whose path only begins alike", [bear(60, 1, { cgroup: "/user/cronies" })]],
    ["whose cgroup cannot be read", [bear(60, 1, { cgroup: undefined })]],
  ])("%s", (_, processes) => {
    const adopters = [{ pid: 30, start_time: 299 }];
    expect(tell(processes, { adopters })).toBe(" | 60");
  });

  test("of a run whose place cannot be read any more", () => {
    expect(tell([bear(60, 1)], { cgroup: UNREAD_CGROUP })).toBe(" | 60");
  });

  test("but no longer one once it descends from a member", () => {
    const recorded = [{ pid: 60, start_time: 600 }];
    expect(tell([see(60, 40), bear(61, 60, { cgroup: "/else" })], { recorded })).toBe("60 61 | ");
  });
});

describe("in no list is", () => {
  test("who carries no cookie, or that of another run; and unread ones of an unknown time", () => {
    const others = [see(60, 1), see(61, 1, { runPath: ["xx"] }), see(62, 1, { runPath: "unread" })];
    expect(tell(others)).toBe(" | ");
  });

  test("process 1, a kernel thread, a dead one, the owner, and the one who looks", () => {
    const processes = [
      bear(60, 1, { isKernelThread: true }),
      bear(61, 1, { state: "Z" }),
      bear(62, 1, { state: "X" }),
      bear(50, 1),
      bear(91, 1),
    ];
    const recorded = processes.map(({ pid, startTicks }) => ({ pid, start_time: startTicks }));
    expect(tell(processes, { recorded }, { self: 91 })).toBe(" | ");
    expect(tell([], { recorded: [{ pid: 1, start_time: 10 }] })).toBe(" | ");
  });

  test("the guard and what is below it", () => {
    expect(tell([bear(51, 1, { startTicks: 501 }), bear(60, 51)])).toBe(" | ");
    expect(tell([bear(51, 1), bear(60, 51)])).toBe("51 60 | ");
  });

  test("the guard of any run, and what is below it, whoever is above it", () => {
    const recorded = [{ pid: 60, start_time: 600 }];
    const guard = { isGuard: true };
    expect(tell([see(60, 1), see(61, 60, guard), bear(62, 61)], { recorded })).toBe("60 | ");
    expect(tell([see(60, 1), see(61, 60), bear(62, 61)], { recorded })).toBe("60 61 62 | ");
  });

  test("what was kept, by identity or token, and what is below it", () => {
    const recorded = [60, 61, 62].map((pid) => ({ pid, start_time: pid * 10 }));
    const processes = [bear(60, 1), bear(61, 60), bear(62, 1, { keptToken: "t" }), bear(63, 62)];
    const kept = { identities: new Set(["60@600"]), tokens: new Set(["t"]) };
    expect(tell(processes, { recorded }, { kept })).toBe(" | ");
    const others = { identities: new Set(["60@601"]), tokens: new Set(["u"]) };
    expect(tell(processes, { recorded }, { kept: others })).toBe("60 61 62 63 | ");
  });
});

test("a parent that is younger than its child is another process with a used pid", () => {
  const recorded = [{ pid: 60, start_time: 600 }];
  expect(tell([see(60, 1), see(61, 60, { startTicks: 599 })], { recorded })).toBe("60 | ");
  expect(tell([see(60, 1), see(61, 60, { startTicks: 600 })], { recorded })).toBe("60 61 | ");
});

test("an ancestor of the one who looks is listed with a flag, the one who looks never", () => {
  const { members, suspects } = decideSurvivors({
    processes: [bear(70, 1), bear(80, 70), bear(90, 80), see(91, 90), bear(85, 40), see(40, 1)],
    run: RUN,
    self: 90,
    ancestors: new Set([80, 70, 1]),
    kept: { identities: new Set(), tokens: new Set() },
  });
  expect(members.map(({ pid, isAncestor }) => [pid, isAncestor])).toEqual([
    [70, true],
    [80, true],
  ]);
  expect(suspects.map(({ pid, isAncestor }) => [pid, isAncestor])).toEqual([[85, false]]);
});

describe("the run of a dead owner is told by", () => {
  const record = {
    run_id: "x",
    pid: 50,
    pid_start_time: 500,
    cgroup: "/user/cron",
    pid_namespace: "4026532999",
    adopters: [{ pid: 30, start_time: 300 }],
  } as unknown as LeaseRecord;

  const slot = {
    head: { runState: "running", boottimeMs: 9_007 },
    body: {
      runId: "x",
      pidNamespace: "4026532999",
      sessionId: 40,
      mainGroup: { pid: 60, start_time: 600 },
      owner: { pid: 50, start_time: 500, pidfd_inode: 7 },
      mainChild: { pid: 60, start_time: 600, pidfd_inode: 8 },
      guard: { pid: 51, start_time: 501 },
      members: [{ pid: 61, start_time: 610 }],
      memberCount: 1,
    },
  } as unknown as Slot;

  /** From one second before the last beat on somebody may not be listed in it. */
  const LISTED: DeadRun = { ...RUN, unlistedFrom: 800 };

  const evidence: LeaseEvidence = {
    key: { kind: "job", name: "nightly" },
    lock: { kind: "free" },
    source: { kind: "read", from: "record", generation: 3, isReleased: false, runId: "x" },
    record,
    slot,
    hasHistory: "yes",
    isReleasedByJournal: "no",
    ownerAlive: "no",
    sameBoot: "yes",
    sameMachine: "yes",
    sameLockInode: "yes",
    namespaceContained: "yes",
    recordedPids: "ours",
    beatAgeMs: 5,
    staleAfterMs: 40_000,
    note: "none",
    tree: "unread",
  };

  const recorded = [
    { pid: 60, start_time: 600, pidfd_inode: 8 },
    { pid: 61, start_time: 610 },
  ];
  const mainGroup = { pid: 60, start_time: 600, pidfd_inode: 8, sessionId: 40 };

  test("the record and the slot together", () => {
    expect(deadRunOf(evidence)).toEqual({ ...LISTED, recorded, mainGroup });
    expect(deadRunOf({ ...evidence, record: { ...record, cgroup: null } })?.cgroup).toBeNull();
  });

  test("the slot alone, and then a place proves nothing", () => {
    expect(deadRunOf({ ...evidence, record: undefined })).toEqual({
      ...LISTED,
      recorded,
      mainGroup,
      adopters: [],
      cgroup: UNREAD_CGROUP,
    });
  });

  test("the record alone where the slot is of another run, broken, or missing", () => {
    const alone = { ...RUN, guard: null, unlistedFrom: 500 };
    const other = { ...slot, body: { ...slot.body, runId: "y" } } as Slot;
    for (const odd of [other, { ...slot, body: undefined }, undefined]) {
      expect(deadRunOf({ ...evidence, slot: odd })).toEqual(alone);
    }
  });

  test("its id alone where only the journal remembers it, or the record is of another run", () => {
    const nobody = { pid: 0, start_time: 0 };
    const bare = { ...RUN, owner: nobody, guard: null, adopters: [], cgroup: UNREAD_CGROUP };
    const told = { ...evidence, record: undefined, slot: undefined };
    const recordedPids = "incomparable" as const;
    expect(deadRunOf({ ...told, sameBoot: "unread", recordedPids })).toEqual(bare);
    expect(deadRunOf({ ...told, record: { ...record, run_id: "y" } })).toEqual(bare);
  });

  test("pids as they are where it only cannot be told whether the owner lives", () => {
    const run = deadRunOf({ ...evidence, ownerAlive: "unread" });
    expect(run).toEqual({ ...LISTED, recorded, mainGroup });
  });

  test("pids with their namespace where that one is below ours", () => {
    const below = { ...evidence, recordedPids: "below-ours" as const };
    const told = { ...LISTED, recorded, mainGroup, countedIn: "4026532999" };
    expect(deadRunOf(below)).toEqual(told);
    const alone = { ...told, adopters: [], cgroup: UNREAD_CGROUP };
    expect(deadRunOf({ ...below, record: undefined })).toEqual(alone);
  });

  test("no pid where pids of the owner cannot be compared with ours, and then it is blind", () => {
    const odd = { ...evidence, recordedPids: "incomparable" as const };
    const owner = { pid: 0, start_time: 500 };
    const unnamed = { ...RUN, owner, guard: null, adopters: [], unlistedFrom: 0 };
    expect(deadRunOf(odd)).toEqual({ ...unnamed, isBlind: true });
    const nobody = { mainChild: null, members: [], mainGroup: null };
    const naming = (head: object, body: object) =>
      deadRunOf({ ...odd, slot: { head, body: { ...slot.body, ...body } } as Slot })?.isBlind;
    const running = { runState: "running" };
    expect(naming(running, nobody)).toBe(false);
    expect(naming({ runState: "starting" }, nobody)).toBe(true);
    for (const one of ["mainChild", "members", "mainGroup"] as const) {
      expect(naming(running, { ...nobody, [one]: slot.body?.[one] })).toBe(true);
    }
    expect(deadRunOf({ ...odd, slot: undefined })).toEqual(unnamed);
  });

  test("a list that is whole, which tells from when on somebody may not be in it", () => {
    const from = (head: object, body: object) =>
      deadRunOf({ ...evidence, slot: { head, body: { ...slot.body, ...body } } as Slot })
        ?.unlistedFrom;
    expect(from({ boottimeMs: 9_007 }, {})).toBe(800);
    expect(from({ boottimeMs: 9_007 }, { memberCount: 2 })).toBe(500);
    expect(from({ boottimeMs: 5_500 }, {})).toBe(500);
  });

  test("the span in which one was born that its place can prove", () => {
    const between = (head: object, body: object = {}) =>
      deadRunOf({ ...evidence, slot: { head, body: { ...slot.body, ...body } } as Slot })
        ?.provenBetween;
    // From the second before the last beat, whose list is whole, until that is stale.
    const head = { boottimeMs: 9_000, staleAfterMs: 40_000 };
    expect(between(head, { memberCount: 1 })).toEqual([800, 4_900]);
    // A list that is not whole leaves all who are no older than the owner.
    expect(between(head, { memberCount: 2 })).toEqual([500, 4_900]);
    expect(between({ ...head, staleAfterMs: 200 })?.[1]).toBe(1_900);
    expect(between({})).toBeUndefined();
  });

  test("a slot without a main child and a guard", () => {
    const early = { ...slot, body: { ...slot.body, mainChild: null, guard: null } } as Slot;
    const run = deadRunOf({ ...evidence, slot: early });
    const group = { pid: 60, start_time: 600, sessionId: 40 };
    expect(run).toEqual({ ...LISTED, recorded: recorded.slice(1), mainGroup: group, guard: null });
  });

  test("a command that the beat lists, too: once, and with its inode", () => {
    const tell = (change: object) => {
      const body = { ...slot.body, memberCount: 2, ...change };
      return deadRunOf({ ...evidence, slot: { ...slot, body } as Slot })?.recorded;
    };
    const members = [
      { pid: 60, start_time: 600 },
      { pid: 61, start_time: 610 },
    ];
    expect(tell({ members })).toEqual(recorded);
    const older = { pid: 60, start_time: 599 };
    expect(tell({ members: [older] })).toEqual([...recorded.slice(0, 1), older]);
  });

  test("a command without an inode, where the kernel has none", () => {
    const mainChild = { pid: 60, start_time: 600, pidfd_inode: 0 };
    const run = deadRunOf({
      ...evidence,
      slot: { ...slot, body: { ...slot.body, mainChild } } as Slot,
    });
    expect(run?.recorded[0]).toEqual({ pid: 60, start_time: 600 });
  });

  test("a slot that was never told the command, and one that was", () => {
    const told = (head: object, body: object) =>
      deadRunOf({ ...evidence, slot: { head, body: { ...slot.body, ...body } } as Slot });
    const starting = { runState: "starting", boottimeMs: 60_000 };
    const unrecorded = { members: [], mainChild: null, mainGroup: null };
    // The spawn follows the first beat: between a tick before it and five seconds after.
    const unrecordedBetween = [5999, 6499] as const;
    const expected = { ...RUN, unrecordedIn: [40], unrecordedBetween, unlistedFrom: 500 };
    expect(told(starting, unrecorded)).toEqual(expected);
    expect(told(starting, {})?.unrecordedIn).toEqual([]);
    expect(told({ runState: "running" }, unrecorded)?.unrecordedIn).toEqual([]);
  });

  test.each<[string, Partial<LeaseEvidence>]>([
    ["the lock is held", { lock: { kind: "held" } }],
    ["the lock cannot be asked", { lock: { kind: "unaskable", reason: "ENOLCK" } }],
    ["the boot is another", { sameBoot: "no" }],
    ["nothing is known", { source: { kind: "none" } }],
    ["nothing can be read", { source: { kind: "unreadable", reason: "zeros" } }],
    ["the journal says released", { isReleasedByJournal: "yes" }],
    [
      "the record says released",
      { source: { kind: "read", from: "slot", generation: 3, isReleased: true, runId: "x" } },
    ],
  ])("nobody where %s: no tree is looked for", (_, more) => {
    expect(deadRunOf({ ...evidence, ...more })).toBeUndefined();
  });
});
