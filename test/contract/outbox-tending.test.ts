/**
 * What a person and a patrol do with the outbox, in a real database: dropped, revived, given up,
 * and what a settlement writes down. No notice that waits is lost by any of it unasked.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { OutboxRow, Settlement } from "../../src/core/outbox.ts";
import { Journal } from "../../src/journal/journal.ts";
import { openOutbox, type Outbox } from "../../src/journal/outbox.ts";
import { setMask } from "../../src/os/mask.ts";
import { ended, inspect, openJournalScene, started } from "../support/journal-scene.ts";
import { partFor, sinkTo, telling } from "../support/notice-parts.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const DAY_MS = 86_400_000;
const NOW = Date.now();
const ASKED = { now: NOW, isForced: true, runId: null, ownSinkIds: [] };

/** One notice for each name, each of a sink of its own, oldest first. */
function openWith(...names: readonly string[]): { state: string; outbox: Outbox } {
  const state = scene.newState();
  const journal = new Journal(state, () => undefined);
  journal.put(telling(ended(1), partFor(names.map((name) => sinkTo(name)))));
  journal.close(1_000);
  return { state, outbox: openOutbox(state, () => undefined) };
}

function rowsOf(outbox: Outbox): readonly OutboxRow[] {
  const found = outbox.list(undefined, 100);
  if ("kind" in found) throw new Error(found.reason);
  return found.toReversed();
}

function statesOf(outbox: Outbox): string[] {
  return rowsOf(outbox).map(({ state }) => state);
}

/** As one who has tried it. */
function settle(outbox: Outbox, row: OutboxRow | undefined, settlement: Settlement): void {
  if (row === undefined) throw new Error("no such row");
  expect(outbox.claim(row, { by: "me", until: NOW + 60_000 })).toBe("done");
  expect(outbox.settle(row, "me", settlement)).toBe("done");
}

const DEAD: Settlement = { kind: "dead", because: "rejected: status 404" };
const DELIVERED: Settlement = { kind: "delivered", at: NOW };
const WAITS: Settlement = { kind: "waiting", because: "x", nextAt: NOW + 60_000 };

describe("to drop", () => {
  test("all that is dead leaves what waits and what was delivered", () => {
    const { outbox } = openWith("waits", "delivered", "dead");
    const [, delivered, dead] = rowsOf(outbox);
    settle(outbox, delivered, DELIVERED);
    settle(outbox, dead, DEAD);
    expect(outbox.drop(undefined)).toBe(1);
    expect(statesOf(outbox)).toEqual(["waiting", "delivered"]);
    outbox.close();
  });

  test("by number takes what is not delivered, and nothing else", () => {
    const { outbox } = openWith("waits", "delivered");
    const [waiting, delivered] = rowsOf(outbox);
    settle(outbox, delivered, DELIVERED);
    expect(outbox.drop([delivered?.id ?? 0, 4_711])).toBe(0);
    expect(outbox.drop([waiting?.id ?? 0])).toBe(1);
    expect(statesOf(outbox)).toEqual(["delivered"]);
    outbox.close();
  });
});

describe("to try again what is dead", () => {
  test("begins anew: all attempts and all the time, at once, and not what nobody can read", () => {
    const { state, outbox } = openWith("dead", "unreadable");
    const [dead, unreadable] = rowsOf(outbox);
    settle(outbox, dead, DEAD);
    settle(outbox, unreadable, { kind: "dead", because: "unreadable" });
    const later = NOW + 5 * DAY_MS;
    expect(outbox.revive(later)).toBe(1);
    const sql = "SELECT state, attempts, next_at, created_at FROM outbox ORDER BY id";
    const [anew, kept] = inspect(state, sql);
    expect(anew).toEqual(["waiting", 0, later, later]);
    expect(kept?.slice(0, 2)).toEqual(["dead", 1]);
    outbox.close();
  });
});

describe("what waits", () => {
  test("is given up after a month, if nobody is at it, and kept for a person", () => {
    const { outbox } = openWith("waits", "claimed");
    const [, claimed] = rowsOf(outbox);
    const { createdAt } = claimed ?? { createdAt: 0 };
    if (claimed !== undefined) outbox.claim(claimed, { by: "me", until: NOW + 60_000 });
    outbox.tend(createdAt + 29 * DAY_MS);
    expect(statesOf(outbox)).toEqual(["waiting", "waiting"]);
    outbox.tend(createdAt + 31 * DAY_MS);
    expect(statesOf(outbox)).toEqual(["dead", "waiting"]);
    outbox.close();
  });

  test("is next to be tried when the first of a sink is, whatever the others say", () => {
    const { state, outbox } = openWith("one", "other");
    const [one, other] = rowsOf(outbox);
    const ids = [one, other].map((row) => row?.sink.id ?? "");
    settle(outbox, one, { ...WAITS, nextAt: NOW + 60_000 });
    settle(outbox, other, { ...WAITS, nextAt: NOW + 30_000 });
    expect(outbox.nextAt(ids)).toBe(NOW + 30_000);
    expect(outbox.nextAt(ids.slice(0, 1))).toBe(NOW + 60_000);
    // A later one of the same job waits behind the first; one of another job does not.
    const columns = "sink_id, sink, run_id, event, notice, created_at";
    for (const job of ["nightly", "other"]) {
      inspect(
        state,
        `INSERT INTO outbox (entry_id, job, next_at, ${columns}) ` +
          `SELECT '${job}', '${job}', ${NOW + 10_000}, ${columns} FROM outbox LIMIT 1`,
      );
      expect(outbox.nextAt(ids.slice(0, 1))).toBe(NOW + (job === "nightly" ? 60_000 : 10_000));
    }
    outbox.close();
  });
});

describe("whoever has seen a notice before another has tried it", () => {
  test("does not try it a second time", () => {
    const { outbox } = openWith("a");
    const [seen] = rowsOf(outbox);
    settle(outbox, seen, { ...WAITS, nextAt: NOW });
    if (seen === undefined) throw new Error("no row");
    expect(outbox.claim(seen, { by: "late", until: NOW + 60_000 })).toBe("lost");
    const found = outbox.listDue(ASKED);
    expect("kind" in found ? [] : found.map(({ attempts }) => attempts)).toEqual([1]);
    outbox.close();
  });
});

/** A copy of the first row, changed. */
function copyFirst(state: string, changes: Readonly<Record<string, string | number>>): void {
  const names = ["entry_id", "job", "sink_id", "sink", "run_id", "event", "notice"];
  const all = [...names, "created_at", "next_at", "state"];
  const cells = all.map((name) => {
    const change = changes[name];
    return change === undefined ? name : typeof change === "string" ? `'${change}'` : `${change}`;
  });
  const sql = `INSERT INTO outbox (${all.join(", ")}) SELECT ${cells.join(", ")} FROM outbox`;
  inspect(state, `${sql} ORDER BY id LIMIT 1`);
}

function dueOf(outbox: Outbox, asked: Partial<typeof ASKED | { runId: string }> = {}): number[] {
  const found = outbox.listDue({ ...ASKED, ...asked });
  if ("kind" in found) throw new Error(found.reason);
  return found.map(({ id }) => id);
}

describe("what is due", () => {
  test("is the first of each sink and job alone, so that a receiver hears them in order", () => {
    const { state, outbox } = openWith("a");
    copyFirst(state, { entry_id: "second" });
    copyFirst(state, { entry_id: "third", job: "other" });
    expect(dueOf(outbox)).toEqual([1, 3]);
    settle(outbox, rowsOf(outbox)[0], DELIVERED);
    expect(dueOf(outbox)).toEqual([2, 3]);
    outbox.close();
  });

  test("is that of the run itself before what others have left", () => {
    const { state, outbox } = openWith("a");
    copyFirst(state, { entry_id: "second", job: "other", run_id: "mine" });
    expect(dueOf(outbox, { runId: "mine" })).toEqual([2, 1]);
    expect(dueOf(outbox)).toEqual([1, 2]);
    outbox.close();
  });

  test("of an address that stands nowhere is for those who have it", () => {
    const { state, outbox } = openWith("a");
    inspect(
      state,
      `UPDATE outbox SET sink = json_set(sink, '$.source', json('{"kind":"hidden"}'))`,
    );
    const id = rowsOf(outbox)[0]?.sink.id ?? "";
    expect([dueOf(outbox), dueOf(outbox, { ownSinkIds: [id] as never })]).toEqual([[], [1]]);
    outbox.close();
  });

  test("is not what comes later, but for a clock that was set back, or where it is forced", () => {
    const { state, outbox } = openWith("a");
    const dueAt = (nextAt: number, isForced = false): number[] => {
      inspect(state, `UPDATE outbox SET next_at = ${nextAt}`);
      return dueOf(outbox, { isForced });
    };
    expect([dueAt(NOW), dueAt(NOW + 1), dueAt(NOW + 1, true)]).toEqual([[1], [], [1]]);
    expect([dueAt(NOW + 6 * 3_600_000), dueAt(NOW + 7 * 3_600_000)]).toEqual([[], [1]]);
    outbox.close();
  });

  test("does not stand still behind one that nobody can read", () => {
    const { state, outbox } = openWith("a");
    copyFirst(state, { entry_id: "second" });
    inspect(state, "UPDATE outbox SET notice = '{' WHERE id = 1");
    expect([dueOf(outbox), dueOf(outbox)]).toEqual([[], [2]]);
    const sql = "SELECT state, last_because FROM outbox ORDER BY id";
    expect(inspect(state, sql)[0]).toEqual(["dead", "unreadable"]);
    outbox.close();
  });
});

test("what a run has left is what waits and what is dead of it, and of no other", () => {
  const { state, outbox } = openWith("waits", "dead", "delivered");
  const [, dead, delivered] = rowsOf(outbox);
  settle(outbox, dead, DEAD);
  settle(outbox, delivered, DELIVERED);
  copyFirst(state, { entry_id: "other", run_id: "other" });
  const left = outbox.listLeft(rowsOf(outbox)[0]?.runId ?? "");
  expect("kind" in left ? [] : left.map((row) => row.state)).toEqual(["waiting", "dead"]);
  outbox.close();
});

test("a receiver is given what was delivered, and what somebody is just sending", () => {
  const { state, outbox } = openWith("a");
  const [first] = rowsOf(outbox);
  const id = first?.sink.id ?? "";
  copyFirst(state, { entry_id: "second", job: "other" });
  expect(outbox.countGiven(id, NOW - 60_000)).toBe(0);
  settle(outbox, first, DELIVERED);
  const [, second] = rowsOf(outbox);
  if (second !== undefined) outbox.claim(second, { by: "me", until: NOW + 60_000 });
  expect(outbox.countGiven(id, NOW - 60_000)).toBe(2);
  expect(outbox.countGiven(id, NOW + 120_000)).toBe(0);
  outbox.close();
});

describe("what is too much for a receiver", () => {
  function openMany(count: number) {
    const opened = openWith("a");
    for (let number = 2; number <= count; number += 1) {
      copyFirst(opened.state, { entry_id: `more-${number}`, job: `job-${number}` });
    }
    const [first] = rowsOf(opened.outbox);
    if (first === undefined) throw new Error("no row");
    return { ...opened, first };
  }

  test("becomes one notice, and each that is in it is sent no more", () => {
    const { outbox, first } = openMany(12);
    expect(outbox.join(first.sink, NOW)).toBe(12);
    const rows = rowsOf(outbox);
    expect(rows.map(({ state }) => state)).toEqual([...Array(12).fill("superseded"), "waiting"]);
    expect(rows.at(-1)?.notice.details).toMatchObject({ joined: 12 });
    expect(dueOf(outbox)).toEqual([13]);
    outbox.close();
  });

  test("stays what it is where it is few, was tried, is being sent, or was joined before", () => {
    const few = openMany(9);
    expect(few.outbox.join(few.first.sink, NOW)).toBe(0);
    const { state, outbox, first } = openMany(11);
    const [, second, third] = rowsOf(outbox);
    settle(outbox, second, { ...WAITS, nextAt: NOW });
    if (third !== undefined) outbox.claim(third, { by: "other", until: NOW + 60_000 });
    expect(outbox.join(first.sink, NOW)).toBe(0);
    copyFirst(state, { entry_id: "one-more", job: "job-12" });
    expect(outbox.join(first.sink, NOW)).toBe(10);
    expect(rowsOf(outbox).filter((row) => row.state === "waiting")).toHaveLength(3);
    for (let number = 20; number < 29; number += 1) {
      copyFirst(state, { entry_id: `late-${number}`, job: `late-${number}`, state: "waiting" });
    }
    // Nine, and the one that they were joined into.
    expect(outbox.join(first.sink, NOW)).toBe(0);
    few.outbox.close();
    outbox.close();
  });
});

describe("a reminder", () => {
  const AT = Date.parse("2025-03-04T05:06:08.089Z");

  function openTold(): { state: string; outbox: Outbox } {
    const state = scene.newState();
    const journal = new Journal(state, () => undefined);
    const part = partFor([sinkTo("a")]);
    journal.put(telling(started(1), part));
    journal.put(telling(ended(1), part));
    journal.close(1_000);
    return { state, outbox: openOutbox(state, () => undefined) };
  }

  test("is made once a span, under one key, whoever looks", () => {
    const { state, outbox } = openTold();
    const other = openOutbox(state, () => undefined);
    const [told] = inspect(state, "SELECT told_at FROM told").flat();
    expect(told).toBe(AT);
    expect([outbox.tend(AT + DAY_MS - 1), outbox.tend(AT + DAY_MS)]).toEqual([0, 1]);
    expect([other.tend(AT + DAY_MS), other.tend(AT + 2 * DAY_MS - 1)]).toEqual([0, 0]);
    expect(other.tend(AT + 2 * DAY_MS)).toBe(1);
    const keys = rowsOf(outbox).map(({ notice }) => notice.id);
    expect(new Set(keys).size).toBe(3);
    outbox.close();
    other.close();
  });

  test("comes where a clock was set back far, and to nobody whom the job tells no more", () => {
    const { state, outbox } = openTold();
    expect(outbox.tend(AT - DAY_MS)).toBe(1);
    inspect(state, "UPDATE told SET is_declared = 0");
    expect(outbox.tend(AT + 5 * DAY_MS)).toBe(0);
    outbox.close();
  });
});

test("what a receiver has said is written down without secrets", () => {
  const { outbox } = openWith("a");
  setMask({ values: ["tok_1a2b3c4d5e"] });
  settle(outbox, rowsOf(outbox)[0], { ...WAITS, because: "no tok_1a2b3c4d5e here" });
  setMask({});
  expect(rowsOf(outbox).map(({ lastBecause }) => lastBecause)).toEqual(["no *** here"]);
  outbox.close();
});
