/** Who counts as at work in a checkout, and whom a second look must not hold against anybody. */
import { describe, expect, test } from "bun:test";
import type { SeenProcess } from "../../../src/core/survivors-view.ts";
import {
  decideWorktreeUsers,
  type PlaceInWorktree,
  type WorktreeView,
} from "../../../src/core/worktree-users.ts";

const SELF = 500;

function seen(pid: number, changes: Partial<SeenProcess> = {}): SeenProcess {
  return {
    pid,
    ppid: 1,
    startTicks: pid * 10,
    groupId: pid,
    sessionId: pid,
    state: "S",
    isKernelThread: false,
    runPath: [],
    keptToken: undefined,
    cgroup: undefined,
    isNamespaceInit: false,
    isSignalable: true,
    isGuard: false,
    ...changes,
  };
}

function place(pid: number): PlaceInWorktree {
  return { pid, start_time: pid * 10, command: `work ${pid}`, by: "cwd", path: "/srv/repo" };
}

/** 400 is our parent, in a session with us; everybody works in the checkout unless told. */
function decide(others: readonly SeenProcess[], changes: Partial<WorktreeView> = {}) {
  const processes = [
    seen(400, { sessionId: 77 }),
    seen(SELF, { ppid: 400, sessionId: 77 }),
    ...others,
  ];
  const users = decideWorktreeUsers({
    processes,
    places: processes.map(({ pid }) => place(pid)),
    self: SELF,
    ancestors: new Set([400, 1]),
    sessionId: 77,
    runsAround: ["outer", "inner"],
    isStrict: false,
    spared: { runIds: [], members: [] },
    kept: () => ({ identities: new Set(), tokens: new Set() }),
    ...changes,
  });
  return users.map(({ pid, runId }) => [pid, runId]);
}

const OTHER = { runPath: ["other"] } as const;

describe("a process counts", () => {
  test("that carries the cookie of another run, with its place", () => {
    expect(decide([seen(600, OTHER)])).toEqual([[600, "other"]]);
    const [user] = decideWorktreeUsers({
      processes: [seen(600, OTHER)],
      places: [{ ...place(600), by: "file", path: "/srv/repo/a (deleted)" }],
      self: SELF,
      ancestors: new Set(),
      sessionId: 77,
      runsAround: [],
      isStrict: false,
      spared: { runIds: [], members: [] },
      kept: () => ({ identities: new Set(), tokens: new Set() }),
    });
    expect(user).toEqual({
      ...place(600),
      by: "file",
      path: "/srv/repo/a (deleted)",
      runId: "other",
    });
  });

  test("of a sibling below the same run, and of another run in our own session", () => {
    const sibling = seen(600, { runPath: ["outer", "inner", "sibling"] });
    expect(decide([sibling])).toEqual([[600, "sibling"]]);
    expect(decide([seen(600, { ...OTHER, sessionId: 77 })])).toEqual([[600, "other"]]);
  });

  test("of a run that something kept has started", () => {
    const kept = (runId: string) => ({
      identities: new Set<string>(),
      tokens: new Set(runId === "first" ? ["t"] : []),
    });
    const started = seen(600, { runPath: ["second"], keptToken: "t" });
    expect(decide([started], { kept })).toEqual([[600, "second"]]);
  });
});

describe("a process does not count", () => {
  test.each<[string, Partial<SeenProcess>]>([
    ["without a cookie", {}],
    ["whose environment could not be read", { runPath: "unread" }],
    ["of the run around us", { runPath: ["outer", "inner"] }],
    ["of the run around that one", { runPath: ["outer"] }],
    ["that is dead", { ...OTHER, state: "Z" }],
    ["that is below us", { ...OTHER, ppid: SELF }],
  ])("%s", (_, changes) => {
    expect(decide([seen(600, changes)])).toEqual([]);
  });

  test("that works elsewhere, or that has another's pid by now", () => {
    expect(decide([seen(600, OTHER)], { places: [] })).toEqual([]);
    expect(decide([seen(600, OTHER)], { places: [{ ...place(600), start_time: 1 }] })).toEqual([]);
  });

  test("that is our ancestor, nor one of the run of an ancestor whose cookie we lost", () => {
    const processes = [
      seen(400, { ...OTHER, sessionId: 77 }),
      seen(SELF, { ppid: 400 }),
      seen(600, OTHER),
    ];
    expect(decide([], { processes, places: [400, 600].map(place), runsAround: [] })).toEqual([]);
    const twin = { processes, places: [600].map(place), runsAround: [], ancestors: new Set([1]) };
    expect(decide([], twin)).toEqual([[600, "other"]]);
  });

  test("that was kept by its run, by token or by identity", () => {
    const byToken = () => ({ identities: new Set<string>(), tokens: new Set(["t"]) });
    const byIdentity = () => ({ identities: new Set(["600@6000"]), tokens: new Set<string>() });
    const one = seen(600, { ...OTHER, keptToken: "t" });
    expect(decide([one], { kept: byToken })).toEqual([]);
    expect(decide([one], { kept: byIdentity })).toEqual([]);
    expect(decide([one])).toEqual([[600, "other"]]);
  });

  test("that is about to be ended for the claim, with all below it and all of its run", () => {
    const others = [
      seen(600, OTHER),
      seen(601, { ppid: 600, runPath: ["third"] }),
      seen(602, { runPath: ["other", "nested"] }),
      seen(603, { runPath: ["third"] }),
    ];
    const byRun = { runIds: ["other"], members: [] };
    expect(decide(others, { spared: byRun })).toEqual([[603, "third"]]);
    const byMember = { runIds: [], members: [{ pid: 600, start_time: 6000 }] };
    expect(decide(others, { spared: byMember })).toEqual([
      [602, "nested"],
      [603, "third"],
    ]);
    // A parent that is younger than its child is another process with a used pid.
    const strangers = [seen(600, { ...OTHER, startTicks: 6_011 }), seen(601, { ppid: 600 })];
    const places = [{ ...place(601), start_time: 6_010 }];
    const spared = { runIds: ["other"], members: [] };
    expect(decide(strangers, { spared, places, isStrict: true })).toEqual([[601, null]]);
    const reused = { runIds: [], members: [{ pid: 600, start_time: 5999 }] };
    expect(decide(others, { spared: reused })).toHaveLength(4);
  });
});

describe("a strict look", () => {
  test.each<[string, Partial<SeenProcess>]>([
    ["without a cookie", {}],
    ["whose environment could not be read", { runPath: "unread" }],
    ["of a run around us, in a session of its own", { runPath: ["outer"] }],
  ])("counts who works there %s", (_, changes) => {
    expect(decide([seen(600, changes)], { isStrict: true }).map(([pid]) => pid)).toEqual([600]);
  });

  test("counts what was kept, and still who is of another run in our session", () => {
    const kept = () => ({ identities: new Set(["600@6000"]), tokens: new Set<string>() });
    expect(decide([seen(600, OTHER)], { isStrict: true, kept })).toEqual([[600, "other"]]);
    const ours = seen(600, { ...OTHER, sessionId: 77 });
    expect(decide([ours], { isStrict: true })).toEqual([[600, "other"]]);
  });

  test.each<[string, Partial<SeenProcess>]>([
    ["our session", { sessionId: 77 }],
    ["what we have below us", { ppid: SELF }],
    ["the kernel", { isKernelThread: true }],
    ["the dead", { state: "X" }],
  ])("does not count %s", (_, changes) => {
    expect(decide([seen(600, changes)], { isStrict: true })).toEqual([]);
    expect(decide([seen(600)], { isStrict: true })).toEqual([[600, null]]);
  });

  test("does not count process 1, nor our ancestors in sessions of their own", () => {
    const processes = [seen(1), seen(400), seen(SELF, { ppid: 400 })];
    const places = [1, 400, SELF].map(place);
    expect(decide([], { isStrict: true, processes, places })).toEqual([]);
  });
});
