/**
 * The survivors of a dead owner over every small process graph, against an oracle that walks up
 * from each process (the decision walks down from the proven ones), and over large random ones.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { decideSurvivors } from "../../src/core/survivors.ts";
import type { DeadRun, SeenProcess, SurvivorView } from "../../src/core/survivors-view.ts";
import { GROUP, judge, PLACES, SESSION } from "../support/survivor-oracle.ts";

const [ADOPTER, INIT, OWNER, ANCESTOR, SELF, STRANGER] = [2, 3, 4, 5, 6, 7] as const;
const [A, B, C, NOWHERE] = [20, 21, 22, 99] as const;
const RUN_START = 100;
const ELSEWHERE = 9;

function see(pid: number, ppid: number, more: Partial<SeenProcess> = {}): SeenProcess {
  return {
    pid,
    ppid,
    startTicks: pid < A ? RUN_START : RUN_START + pid,
    groupId: 7,
    sessionId: 7,
    state: "S",
    isKernelThread: false,
    runPath: [],
    keptToken: undefined,
    cgroup: "/jobs/x",
    isNamespaceInit: false,
    isSignalable: true,
    isGuard: false,
    ...more,
  };
}

interface Kind extends Partial<SeenProcess> {
  /** In the lists of the view. */
  readonly isRecorded?: boolean;
  readonly isKept?: boolean;
  readonly isOwnGuard?: boolean;
  /** Of its own group. */
  readonly leads?: boolean;
}

const BEARS = ["outer", "dead-run", "inner"];

const KINDS: Readonly<Record<string, Kind>> = {
  plain: {},
  bearer: { runPath: BEARS },
  "bearer below its place": { runPath: BEARS, cgroup: "/jobs/x/y" },
  "bearer out of its place": { runPath: BEARS, cgroup: "/jobs/xy" },
  "bearer without a place": { runPath: BEARS, cgroup: undefined },
  "bearer from before": { runPath: BEARS, startTicks: RUN_START - 1 },
  "bearer of the first tick": { runPath: BEARS, startTicks: RUN_START },
  "dead bearer": { runPath: BEARS, state: "Z" },
  unread: { runPath: "unread" },
  "unread of another user": { runPath: "unread", userIds: [8, 8, 8, 8] },
  "unread and partly of the owner": { runPath: "unread", userIds: [0, 7, 0, 0] },
  "unread elsewhere": { runPath: "unread", userIds: [7, 7, 7, 7], cgroup: "/jobs/y" },
  "unread of the first tick": { runPath: "unread", startTicks: RUN_START },
  recorded: { isRecorded: true },
  "recorded and dead": { isRecorded: true, state: "X" },
  "of another run": { runPath: ["other"] },
  kept: { isKept: true, runPath: BEARS },
  "kept by token": { keptToken: "t", isRecorded: true },
  "of another token": { keptToken: "s", runPath: BEARS },
  guard: { isOwnGuard: true, runPath: BEARS },
  "kernel thread": { isKernelThread: true, isRecorded: true },
  "in the group": { groupId: GROUP, sessionId: SESSION, runPath: "unread" },
  "in the group, elsewhere": { groupId: GROUP, sessionId: ELSEWHERE },
  "in the group from before": {
    groupId: GROUP,
    sessionId: SESSION,
    startTicks: RUN_START - 1,
  },
  "leader of a group": { leads: true, sessionId: SESSION },
  "leader from before": { leads: true, sessionId: SESSION, startTicks: RUN_START - 1 },
  "leader elsewhere": { leads: true, sessionId: ELSEWHERE },
  "guard of another run": { isGuard: true, isRecorded: true },
};

interface Placed {
  readonly pid: number;
  readonly ppid: number;
  readonly kind: Kind;
}

function identityOf({ pid, startTicks }: SeenProcess) {
  return { pid, start_time: startTicks };
}

/** What the group of the main command is, and whether a command may have been left unrecorded. */
interface Traces extends Pick<
  DeadRun,
  "mainGroup" | "unrecordedIn" | "ownerUid" | "unlistedFrom" | "provenBetween" | "isBelowOurs"
> {
  /** The start of a process that has the number of the group for its pid. */
  readonly leaderStart?: number;
}

const NO_TRACES: Traces = { mainGroup: null, unrecordedIn: [] };
const GROUP_TRACES: Traces = {
  ...NO_TRACES,
  mainGroup: { pid: GROUP, start_time: RUN_START, sessionId: SESSION },
};
const TRACES: readonly Traces[] = [
  NO_TRACES,
  GROUP_TRACES,
  { ...GROUP_TRACES, leaderStart: RUN_START },
  { ...GROUP_TRACES, leaderStart: RUN_START + 1 },
  { ...NO_TRACES, unrecordedIn: [SESSION] },
  { ...NO_TRACES, provenBetween: [RUN_START + 1, RUN_START + 1] },
  { ...NO_TRACES, ownerUid: 7, unlistedFrom: RUN_START + 1 },
  { ...NO_TRACES, ownerUid: 0, unlistedFrom: RUN_START, isBelowOurs: true },
];

function makeView(
  placed: readonly Placed[],
  cgroup: string | null,
  { leaderStart, ...traces }: Traces = NO_TRACES,
): SurvivorView {
  const seen = placed.map(({ pid, ppid, kind }) =>
    see(pid, ppid, kind.leads === true ? { ...kind, groupId: pid } : kind),
  );
  const listed = (name: "isRecorded" | "isKept" | "isOwnGuard") =>
    seen.filter((_, index) => placed[index]?.kind[name] === true);
  const run: DeadRun = {
    runId: "dead-run",
    owner: { pid: OWNER, start_time: RUN_START },
    recorded: listed("isRecorded").map(identityOf),
    guard: listed("isOwnGuard").map(identityOf)[0] ?? null,
    adopters: [{ pid: ADOPTER, start_time: RUN_START }],
    cgroup,
    ...traces,
    countedIn: null,
    isBlind: false,
  };
  const leader = { startTicks: leaderStart ?? 0, groupId: GROUP, sessionId: SESSION };
  const fixed = [
    ...(leaderStart === undefined ? [] : [see(GROUP, 1, leader)]),
    see(1, 0, { startTicks: 1, runPath: BEARS }),
    see(ADOPTER, 1),
    see(INIT, 1, { isNamespaceInit: true }),
    see(OWNER, 1, { runPath: BEARS }),
    see(ANCESTOR, 1),
    see(SELF, ANCESTOR, { runPath: BEARS }),
    see(STRANGER, 1),
  ].filter(({ pid }) => !placed.some((one) => one.pid === pid));
  return {
    processes: [...fixed, ...seen],
    run,
    self: SELF,
    ancestors: new Set([1, ANCESTOR]),
    kept: {
      identities: new Set(listed("isKept").map(({ pid, startTicks }) => `${pid}@${startTicks}`)),
      tokens: new Set(["t"]),
    },
  };
}

/** What the decision has said, as the oracle says it. */
function listDecided(view: SurvivorView): Map<number, string> {
  const { members, suspects } = decideSurvivors(view);
  const decided = new Map(view.processes.map(({ pid }) => [pid, "nobody"]));
  for (const { pid } of members) decided.set(pid, "member");
  for (const { pid } of suspects)
    decided.set(pid, decided.get(pid) === "member" ? "both" : "suspect");
  return decided;
}

function kindsOf(...names: readonly string[]): Kind[] {
  return names.map((name) => KINDS[name] ?? {});
}

function place(pid: number, parents: readonly number[], kinds: readonly Kind[]): Placed[] {
  return parents.flatMap((ppid) => kinds.map((kind) => ({ pid, ppid, kind })));
}

const PARENTS = [1, ADOPTER, INIT, OWNER, ANCESTOR, SELF, STRANGER, NOWHERE, B];
const FIRST = place(A, PARENTS, Object.values(KINDS));
const SECOND = place(
  B,
  [1, ADOPTER, OWNER, SELF, STRANGER, A, C],
  kindsOf(
    "plain",
    "bearer",
    "recorded",
    "recorded and dead",
    "unread",
    "unread of another user",
    "kept",
    "guard",
    "guard of another run",
    "in the group",
  ),
);
const THIRD = [
  ...place(C, [1, A, B], kindsOf("plain", "bearer", "kept by token")),
  ...place(ANCESTOR, [1, ADOPTER, STRANGER], kindsOf("plain", "bearer", "recorded", "kept")),
];

function* listGraphs(): Generator<readonly Placed[]> {
  for (const first of FIRST) {
    for (const second of SECOND) {
      for (const third of THIRD) yield [first, second, third];
    }
  }
}

/** Without any trace of a group also where no place was recorded. */
const CASES: readonly (readonly [cgroup: string | null, traces: Traces])[] = [
  [null, NO_TRACES],
  ...TRACES.map((traces) => ["/jobs/x", traces] as const),
];

test("agrees with a walk upwards on every graph of three processes", () => {
  const wrong: unknown[] = [];
  const told: Record<string, number> = {};
  let count = 0;
  for (const placed of listGraphs()) {
    for (const [cgroup, traces] of CASES) {
      const view = makeView(placed, cgroup, traces);
      const decided = listDecided(view);
      const judged = new Map(view.processes.map((seen) => [seen.pid, judge(view, seen)]));
      count += 1;
      for (const word of judged.values()) told[word] = (told[word] ?? 0) + 1;
      const isSame = [...judged].every(([pid, word]) => decided.get(pid) === word);
      if (!isSame && wrong.length < 3) wrong.push({ placed, cgroup, traces, decided, judged });
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBe(9 * Object.keys(KINDS).length * 7 * 10 * (9 + 12) * CASES.length);
  expect(told["member"]).toBeGreaterThan(count / 10);
  expect(told["suspect"]).toBeGreaterThan(count / 10);
}, 900_000);

/** Thirty processes with any parents, starts and kinds: circles and strangers among them. */
const anyView: fc.Arbitrary<SurvivorView> = fc
  .record({
    parents: fc.array(fc.integer({ min: 0, max: 49 }), { minLength: 30, maxLength: 30 }),
    kinds: fc.array(fc.constantFrom(...Object.values(KINDS)), { minLength: 30, maxLength: 30 }),
    lateness: fc.array(fc.integer({ min: -1, max: 3 }), { minLength: 30, maxLength: 30 }),
    ancestors: fc.array(fc.integer({ min: A, max: 49 }), { maxLength: 3 }),
    cgroup: fc.constantFrom(...Object.keys(PLACES), null),
    traces: fc.constantFrom(...TRACES),
  })
  .map(({ parents, kinds, lateness, ancestors, cgroup, traces }) => {
    const placed = parents.map((ppid, index) => {
      const startTicks = RUN_START + (lateness[index] ?? 0);
      return { pid: A + index, ppid, kind: { startTicks, ...kinds[index] } };
    });
    const view = makeView(placed, cgroup, traces);
    return { ...view, ancestors: new Set([...view.ancestors, ...ancestors]) };
  });

test("agrees with it on large graphs, with circles and used pids among the parents", () => {
  let members = 0;
  fc.assert(
    fc.property(anyView, (view) => {
      const decided = listDecided(view);
      for (const seen of view.processes) {
        if (decided.get(seen.pid) !== judge(view, seen)) throw new Error(`differs on ${seen.pid}`);
      }
      members += decideSurvivors(view).members.length;
    }),
    { numRuns: 1000 },
  );
  expect(members).toBeGreaterThan(1000);
}, 180_000);

test("never lists who is not to be touched, and flags ancestors", () => {
  let flagged = 0;
  fc.assert(
    fc.property(anyView, (view) => {
      const { members, suspects } = decideSurvivors(view);
      for (const one of [...members, ...suspects]) {
        expect([1, view.self, view.run.owner.pid, view.run.guard?.pid]).not.toContain(one.pid);
        expect(one.isGuard).toBe(false);
        expect(one.isKernelThread || one.state === "Z" || one.state === "X").toBe(false);
        expect(view.kept.identities.has(`${one.pid}@${one.startTicks}`)).toBe(false);
        expect(one.keptToken).not.toBe("t");
        expect(one.isAncestor).toBe(view.ancestors.has(one.pid));
        flagged += Number(one.isAncestor);
      }
      const both = new Set(members.map(({ pid }) => pid));
      expect(suspects.some(({ pid }) => both.has(pid))).toBe(false);
    }),
    { numRuns: 300 },
  );
  expect(flagged).toBeGreaterThan(0);
}, 180_000);

test("does not depend on the order in which processes were seen", () => {
  fc.assert(
    fc.property(anyView, (view) => {
      const turned = { ...view, processes: view.processes.toReversed() };
      const sorted = (of: SurvivorView) => [...listDecided(of)].toSorted(([a], [b]) => a - b);
      expect(Bun.deepEquals(sorted(turned), sorted(view), true)).toBe(true);
    }),
    { numRuns: 300 },
  );
}, 180_000);
