/**
 * Membership over every small process graph, against an oracle that walks down from watchdog (the
 * decision walks up), and over large random ones.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  type Cookie,
  decideChild,
  decideAsked,
  decideKilled,
  decideMembers,
  decideMembership,
  identify,
  isDead,
  type Membership,
  type ProcessRow,
  type TreeView,
} from "../../src/core/tree-members.ts";

const [SELF, MAIN, A, B, ANCESTOR, ELSEWHERE] = [10, 20, 30, 40, 5, 99] as const;

function makeRow(pid: number, ppid: number, state = "S", isWatchdog = false): ProcessRow {
  return { pid, ppid, startTicks: pid + 7, state, isWatchdog };
}

const LISTS = ["none", "inborn", "helpers", "kept"] as const;
const PARENTS = [SELF, MAIN, A, B, 1, ANCESTOR, ELSEWHERE];
/** `no` decides like `unread`; the unit test has both. */
const COOKIES: readonly Cookie[] = ["yes", "unread"];

interface Choice {
  readonly mainParent: number;
  readonly parents: readonly [number, number];
  readonly lists: readonly [(typeof LISTS)[number], (typeof LISTS)[number]];
  readonly proven: readonly number[];
  readonly cookies: readonly [Cookie, Cookie];
  readonly hasOtherInborn: boolean;
}

function makeView(choice: Choice): TreeView {
  const listed = (list: string): number[] =>
    [A, B].filter((_, index) => choice.lists[index] === list);
  return {
    self: SELF,
    main: MAIN,
    rows: [
      makeRow(MAIN, choice.mainParent),
      makeRow(A, choice.parents[0]),
      makeRow(B, choice.parents[1]),
    ],
    ancestors: new Set([ANCESTOR]),
    inborn: new Set([...listed("inborn"), ...(choice.hasOtherInborn ? [77] : [])]),
    hadInborn: choice.hasOtherInborn || listed("inborn").length > 0,
    helpers: new Set(listed("helpers")),
    kept: new Set(listed("kept")),
    proven: new Set(choice.proven.map((pid) => identify(makeRow(pid, 0)))),
    cookieOf: (pid) => choice.cookies[pid === A ? 0 : 1],
  };
}

/** Everybody reached from watchdog downwards without passing through one who is spared. */
function reachMembers(view: TreeView): Set<number> {
  const never = new Set([view.self, 1]);
  for (const list of [view.ancestors, view.inborn, view.helpers, view.kept]) {
    for (const pid of list) never.add(pid);
  }
  const childrenOf = (pid: number) =>
    view.rows.filter((row) => row.ppid === pid && !never.has(row.pid));
  const isTrusted = (row: ProcessRow) =>
    row.pid === view.main ||
    !view.hadInborn ||
    view.proven.has(identify(row)) ||
    view.cookieOf(row.pid) === "yes";
  const reached = new Set<number>();
  const queue = childrenOf(view.self).filter(isTrusted);
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (reached.has(next.pid)) continue;
    reached.add(next.pid);
    queue.push(...childrenOf(next.pid));
  }
  return reached;
}

function pairs<Value>(values: readonly Value[]): (readonly [Value, Value])[] {
  return values.flatMap((first) => values.map((second) => [first, second] as const));
}

function listChoices(): Choice[] {
  const graphs = [SELF, 1].flatMap((mainParent) =>
    pairs(PARENTS).flatMap((parents) =>
      pairs(LISTS).map((lists) => ({ mainParent, parents, lists })),
    ),
  );
  const proofs = [[], [A], [A, B]].flatMap((proven) =>
    pairs(COOKIES).flatMap((cookies) =>
      [true, false].map((hasOtherInborn) => ({ proven, cookies, hasOtherInborn })),
    ),
  );
  return graphs.flatMap((graph) => proofs.map((proof) => ({ ...graph, ...proof })));
}

test("agrees with a walk downwards on every graph of three processes", () => {
  const wrong: unknown[] = [];
  let [count, members] = [0, 0];
  for (const choice of listChoices()) {
    const view = makeView(choice);
    const reached = reachMembers(view);
    const decided = [...decideMembers(view)].filter(([, { kind }]) => kind === "member");
    count += 1;
    members += decided.length;
    const isSame = decided.length === reached.size && decided.every(([pid]) => reached.has(pid));
    if (!isSame && wrong.length < 3) wrong.push({ choice, decided, reached });
  }
  expect(wrong).toEqual([]);
  expect(count).toBe(2 * 49 * 16 * 3 * 4 * 2);
  expect(members).toBeGreaterThan(count / 10);
}, 180_000);

/** Thirty processes with any parents at all, loops and strangers among them. */
const anyView: fc.Arbitrary<TreeView> = fc
  .record({
    parents: fc.array(fc.integer({ min: 0, max: 34 }), { minLength: 30, maxLength: 30 }),
    states: fc.array(fc.constantFrom("S", "R", "Z", "T", "X"), { minLength: 30, maxLength: 30 }),
    watchdogs: fc.array(fc.boolean(), { minLength: 30, maxLength: 30 }),
    spared: fc.array(fc.integer({ min: 0, max: 34 }), { maxLength: 6 }),
    bearers: fc.array(fc.integer({ min: 0, max: 34 }), { maxLength: 12 }),
  })
  .map(({ parents, states, watchdogs, spared, bearers }) => ({
    self: 2,
    main: 3,
    rows: parents.map((ppid, index) =>
      makeRow(index + 3, ppid, states[index], watchdogs[index] === true && index % 5 === 0),
    ),
    ancestors: new Set([0, ...spared.slice(0, 1)]),
    inborn: new Set(spared.slice(1, 3)),
    hadInborn: spared.length > 1,
    helpers: new Set(spared.slice(3, 4)),
    kept: new Set(spared.slice(4)),
    proven: new Set<string>(),
    cookieOf: (pid) => (bearers.includes(pid) ? "yes" : "no"),
  }));

test("on large graphs a member is never one who is never ours, and all get an answer", () => {
  let members = 0;
  fc.assert(
    fc.property(anyView, (view) => {
      const decided = decideMembers(view);
      expect(decided.size).toBe(view.rows.length);
      const found = [...decided].filter(([, { kind }]) => kind === "member").map(([pid]) => pid);
      members += found.length;
      expect(Bun.deepEquals(new Set(found), reachMembers(view), true)).toBe(true);
      for (const pid of [
        view.self,
        1,
        ...view.ancestors,
        ...view.inborn,
        ...view.helpers,
        ...view.kept,
      ]) {
        if (decideMembership(view, pid).kind !== "spared") throw new Error(`${pid} is a member`);
      }
    }),
    { numRuns: 150 },
  );
  expect(members).toBeGreaterThan(150);
}, 180_000);

test("on large graphs who is told to end is a living member, and KILL hits children alone", () => {
  fc.assert(
    fc.property(anyView, (view) => {
      const members = reachMembers(view);
      const isLivingMember = (row: ProcessRow) => members.has(row.pid) && !isDead(row);
      const [asked, killed] = [decideAsked(view), decideKilled(view)];
      expect([...asked, ...killed].every(isLivingMember)).toBe(true);
      expect(killed).toEqual(
        view.rows.filter((row) => isLivingMember(row) && row.ppid === view.self),
      );
    }),
    { numRuns: 150 },
  );
}, 180_000);

/** Decides from the root down, each by its parent alone. */
function decideDownwards(view: TreeView): Map<number, Membership> {
  const decided = new Map<number, Membership>();
  const queue: (readonly [number, Membership | undefined])[] = [[view.self, undefined]];
  for (const [parent, membership] of queue) {
    for (const row of view.rows.filter((one) => one.ppid === parent)) {
      if (decided.has(row.pid)) continue; // a loop
      const child = decideChild(view, row, membership);
      decided.set(row.pid, child);
      queue.push([row.pid, child]);
    }
  }
  return decided;
}

test("one by one from the root down the answers are the same, whoever was reached", () => {
  let reached = 0;
  fc.assert(
    fc.property(anyView, (view) => {
      const whole = decideMembers(view);
      const downwards = decideDownwards(view);
      reached += downwards.size;
      for (const [pid, membership] of downwards)
        expect(membership).toEqual(whole.get(pid) as never);
      const members = [...whole].filter(([, { kind }]) => kind === "member");
      expect(members.every(([pid]) => downwards.has(pid))).toBe(true);
    }),
    { numRuns: 300 },
  );
  for (const choice of listChoices().filter((_, index) => index % 7 === 0)) {
    const view = makeView(choice);
    const downwards = decideDownwards(view);
    reached += downwards.size;
    const whole = decideMembers(view);
    const differing = [...downwards].filter(([pid, one]) => !Bun.deepEquals(one, whole.get(pid)));
    if (differing.length > 0) throw new Error(JSON.stringify({ choice, differing }));
  }
  expect(reached).toBeGreaterThan(1_000);
}, 180_000);

test("does not depend on the order in which processes were seen", () => {
  fc.assert(
    fc.property(anyView, (view) => {
      const turned = { ...view, rows: view.rows.toReversed() };
      const sorted = (of: TreeView) => [...decideMembers(of)].toSorted(([a], [b]) => a - b);
      expect(Bun.deepEquals(sorted(turned), sorted(view), true)).toBe(true);
    }),
    { numRuns: 150 },
  );
}, 180_000);
