/** Who belongs to the tree of a run: each rule with the process that it is for. */
import { describe, expect, test } from "bun:test";
import {
  type Cookie,
  decideAsked,
  decideKilled,
  decideMembers,
  decideMembership,
  identify,
  isDead,
  type ProcessRow,
  type TreeView,
} from "../../../src/core/tree-members.ts";

const SELF = 100;
const MAIN = 200;

function row(pid: number, ppid: number, more: Partial<ProcessRow> = {}): ProcessRow {
  return { pid, ppid, startTicks: pid * 10, state: "S", isWatchdog: false, ...more };
}

function view(rows: readonly ProcessRow[], more: Partial<TreeView> = {}): TreeView {
  return {
    self: SELF,
    main: MAIN,
    rows,
    ancestors: new Set([50, 60]),
    inborn: new Set(),
    helpers: new Set(),
    kept: new Set(),
    hadInborn: (more.inborn?.size ?? 0) > 0,
    proven: new Set(),
    cookieOf: () => "no",
    ...more,
  };
}

function tell(of: TreeView, pid: number): string {
  const { kind, because } = decideMembership(of, pid);
  return `${kind}: ${because}`;
}

describe("a process is a member", () => {
  test("when it is the main command or below it, however deep", () => {
    const deep = Array.from({ length: 500 }, (_, index) =>
      row(1_000 + index, index === 0 ? MAIN : 999 + index),
    );
    const of = view([row(MAIN, SELF), ...deep]);
    expect(tell(of, MAIN)).toBe("member: main");
    expect(tell(of, 1_499)).toBe("member: descends");
  });

  test("when watchdog has become its parent, as nobody else's orphans come to it", () => {
    expect(tell(view([row(300, SELF)]), 300)).toBe("member: descends");
    expect(tell(view([row(300, SELF), row(301, 300)]), 301)).toBe("member: descends");
  });

  test("beside children from before the run only with a proof of its own", () => {
    const inborn = new Set([70]);
    const rows = [row(70, SELF), row(300, SELF), row(301, 300)];
    const cookieOf = (answer: Cookie) => () => answer;
    expect(tell(view(rows, { inborn }), 300)).toBe("spared: adopted-unproven");
    expect(tell(view(rows, { inborn }), 301)).toBe("spared: adopted-unproven");
    expect(tell(view(rows, { inborn, cookieOf: cookieOf("unread") }), 300)).toBe(
      "spared: adopted-unproven",
    );
    expect(tell(view(rows, { inborn, cookieOf: cookieOf("yes") }), 301)).toBe("member: cookie");
    const proven = new Set([identify(row(300, SELF))]);
    expect(tell(view(rows, { inborn, proven }), 301)).toBe("member: proven");
    const earlier = new Set([identify({ pid: 300, startTicks: 1 })]);
    expect(tell(view(rows, { inborn, proven: earlier }), 300)).toBe("spared: adopted-unproven");
  });
});

describe("a process is spared", () => {
  test("whatever its parents are, when it is one that is never ours", () => {
    const rows = [50, 1, 70, 80, 90, SELF].map((pid) => row(pid, MAIN));
    const lists = { inborn: new Set([70]), helpers: new Set([80]), kept: new Set([90]) };
    const of = view([row(MAIN, SELF), ...rows], { ...lists, cookieOf: () => "yes" });
    expect(tell(of, SELF)).toBe("spared: self");
    expect(tell(of, 50)).toBe("spared: ancestor");
    expect(tell(of, 1)).toBe("spared: process-one");
    expect(tell(of, 70)).toBe("spared: inborn");
    expect(tell(of, 80)).toBe("spared: helper");
    expect(tell(of, 90)).toBe("spared: kept");
  });

  test("when it is below one of those", () => {
    const rows = [
      row(70, SELF),
      row(71, 70),
      row(90, MAIN),
      row(91, 90),
      row(92, 91),
      row(MAIN, SELF),
    ];
    const of = view(rows, { inborn: new Set([70]), kept: new Set([90]) });
    expect(tell(of, 71)).toBe("spared: below-spared");
    expect(tell(of, 92)).toBe("spared: below-spared");
  });

  test("when nothing leads from it to watchdog", () => {
    expect(tell(view([row(300, 999)]), 300)).toBe("spared: outside");
    expect(tell(view([]), 300)).toBe("spared: outside");
    expect(tell(view([row(300, 301), row(301, 300)]), 300)).toBe("spared: outside");
    expect(tell(view([row(300, 300)]), 300)).toBe("spared: outside");
  });
});

describe("who is told to end", () => {
  const rows = [row(MAIN, SELF), row(201, MAIN), row(202, 201), row(300, SELF), row(301, 300)];
  const pids = (chosen: readonly ProcessRow[]) => chosen.map((each) => each.pid).toSorted();

  test("everybody alive is asked, and only direct children are killed", () => {
    expect(pids(decideAsked(view(rows)))).toEqual([200, 201, 202, 300, 301]);
    expect(pids(decideKilled(view(rows)))).toEqual([200, 300]);
    const zombies = rows.map((each) => ({ ...each, state: each.pid === 201 ? "R" : "Z" }));
    expect(pids(decideAsked(view(zombies)))).toEqual([201]);
    expect(pids(decideKilled(view(zombies)))).toEqual([]);
  });

  test("what is below a living watchdog is its business", () => {
    const nested = rows.map((each) => (each.pid === 201 ? { ...each, isWatchdog: true } : each));
    expect(pids(decideAsked(view(nested)))).toEqual([200, 201, 300, 301]);
    const dead = nested.map((each) => (each.pid === 201 ? { ...each, state: "Z" } : each));
    expect(pids(decideAsked(view(dead)))).toEqual([200, 202, 300, 301]);
  });

  test("nobody who is spared is in either", () => {
    const of = view([...rows, row(70, SELF)], { inborn: new Set([70]), kept: new Set([201]) });
    expect(pids(decideAsked(of))).toEqual([200]);
    expect(pids(decideKilled(of))).toEqual([200]);
    expect(decideMembers(of).size).toBe(rows.length + 1);
  });
});

test("only a process that is gone but for its entry is dead", () => {
  expect(["Z", "X"].every((state) => isDead(row(1, 1, { state })))).toBe(true);
  expect(["R", "S", "D", "T", "t", "I"].some((state) => isDead(row(1, 1, { state })))).toBe(false);
});

test("what an inborn child leaves behind when it ends is no member either", () => {
  const orphan = [row(MAIN, SELF), row(300, SELF)];
  expect(tell(view(orphan, { hadInborn: true }), 300)).toBe("spared: adopted-unproven");
  expect(tell(view(orphan, { hadInborn: false }), 300)).toBe("member: descends");
});
