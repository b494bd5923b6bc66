/**
 * The outbox in a real database, by two who use it at once: who gets a notice, what is settled, and
 * what a start is worth once its end is told.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { OutboxRow, StoreTrouble } from "../../src/core/outbox.ts";
import { Journal } from "../../src/journal/journal.ts";
import { openOutbox, type Outbox } from "../../src/journal/outbox.ts";
import {
  ended,
  holdExclusively,
  inspect,
  openJournalScene,
  started,
} from "../support/journal-scene.ts";
import { partFor, sinkTo, telling } from "../support/notice-parts.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const PING = sinkTo("p", "default", "ping");
const ASKED = { now: Date.now(), isForced: true, runId: null, ownSinkIds: [] };

function put(state: string, ...entries: Parameters<Journal["put"]>[0][]): void {
  const journal = new Journal(state, () => undefined);
  for (const entry of entries) journal.put(entry);
  journal.close(1_000);
}

function open(state: string): Outbox {
  return openOutbox(state, () => undefined);
}

function only(found: readonly OutboxRow[] | StoreTrouble): OutboxRow {
  if ("kind" in found) throw new Error(found.reason);
  const [row, ...more] = found;
  if (row === undefined || more.length > 0) throw new Error(`found ${found.length} rows`);
  return row;
}

function statesOf(state: string): unknown[] {
  return inspect(state, "SELECT event, state, attempts, claimed_by FROM outbox ORDER BY id");
}

describe("of two who see the same notice", () => {
  test("one gets it, and the attempt is counted once", () => {
    const state = scene.newState();
    put(state, telling(ended(1), partFor([sinkTo("a")])));
    const [one, other] = [open(state), open(state)];
    const [mine, theirs] = [only(one.listDue(ASKED)), only(other.listDue(ASKED))];
    expect(one.claim(mine, { by: "one", until: 5 })).toBe("done");
    expect(other.claim(theirs, { by: "other", until: 5 })).toBe("lost");
    expect(statesOf(state)).toEqual([["failure", "waiting", 1, "one"]]);
    expect(other.settle(theirs, "other", { kind: "delivered", at: 1 })).toBe("lost");
    expect(one.settle(mine, "one", { kind: "delivered", at: 1 })).toBe("done");
    expect(statesOf(state)).toEqual([["failure", "delivered", 1, null]]);
    one.close();
    other.close();
  });

  test("the claim of a dead one is taken over, and he settles nothing any more", () => {
    const state = scene.newState();
    put(state, telling(ended(1), partFor([sinkTo("a")])));
    const [dead, next] = [open(state), open(state)];
    const row = only(dead.listDue(ASKED));
    dead.claim(row, { by: "dead", until: 5 });
    const seen = only(next.listDue(ASKED));
    expect([seen.claimedBy, seen.attempts]).toEqual(["dead", 1]);
    expect(next.claim(seen, { by: "next", until: 9 })).toBe("done");
    expect(dead.settle(row, "dead", { kind: "dead", because: "x" })).toBe("lost");
    expect(statesOf(state)).toEqual([["failure", "waiting", 2, "next"]]);
    dead.close();
    next.close();
  });
});

describe("a start that was being sent in vain when its end was told", () => {
  test("is not tried again", () => {
    const state = scene.newState();
    put(state, telling(started(1), partFor([PING])));
    const outbox = open(state);
    const row = only(outbox.listDue(ASKED));
    outbox.claim(row, { by: "me", until: 5 });
    put(state, telling(ended(1), partFor([PING])));
    // The twin: while it is on its way it stays.
    expect(statesOf(state)).toMatchObject([
      ["start", "waiting", 1, "me"],
      ["failure", "waiting", 0, null],
    ]);
    outbox.settle(row, "me", { kind: "waiting", because: "x", nextAt: Date.now() + 30_000 });
    expect(statesOf(state)).toMatchObject([
      ["start", "superseded", 1, null],
      ["failure", "waiting", 0, null],
    ]);
    expect(only(outbox.listDue(ASKED)).notice.event).toBe("failure");
    outbox.close();
  });
});

describe("a database that somebody else holds", () => {
  test("is busy, and nobody waits for it", async () => {
    const state = scene.newState();
    put(state, telling(ended(1), partFor([sinkTo("a")])));
    const outbox = open(state);
    const row = only(outbox.listDue(ASKED));
    const holder = await holdExclusively(state);
    const began = performance.now();
    expect(outbox.claim(row, { by: "me", until: 5 })).toMatchObject({ kind: "busy" });
    expect(performance.now() - began).toBeLessThan(4_000);
    await holder.release();
    expect(outbox.claim(row, { by: "me", until: 5 })).toBe("done");
    outbox.close();
  });

  test("that is none holds no notice, and none is made", () => {
    const outbox = open(`${scene.newState()}/nowhere`);
    expect(outbox.listDue(ASKED)).toEqual([]);
    expect(outbox.count()).toEqual({ waiting: 0, dead: 0 });
    expect(outbox.tend(Date.now())).toBe(0);
    outbox.close();
  });
});
