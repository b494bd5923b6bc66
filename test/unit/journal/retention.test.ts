/** What goes when the journal is full or old, and how much of it at a time. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { applyEntry } from "../../../src/journal/apply.ts";
import { writeCircuit } from "../../../src/journal/circuit-table.ts";
import {
  BATCH,
  pruneCircuits,
  pruneEvents,
  pruneRuns,
  RETENTION,
} from "../../../src/journal/retention.ts";
import { migrate } from "../../../src/journal/schema.ts";
import {
  abandoned,
  ended,
  lease,
  refusal,
  runId,
  runningRecord,
  started,
} from "../../support/journal-scene.ts";
import { CIRCUIT } from "../../support/circuit-samples.ts";

const DAY_MS = 86_400_000;
const AT = Date.parse("2025-03-04T05:06:07.089Z");
const MOST = { mostRuns: 100, mostEvents: 100, mostCircuits: 100, mostSteps: 100 };
const LIMITS = { ...MOST, longestMs: 400 * DAY_MS };

function filled(count: number): Database {
  const db = new Database(":memory:");
  migrate(db, 0);
  db.transaction(() => {
    for (let number = 1; number <= count; number += 1) {
      const key = [lease(`job-${number}`, 1)];
      applyEntry(db, { id: `run-${number}`, entry: ended(number, key) });
      applyEntry(db, { id: `event-${number}`, entry: refusal(number) });
    }
  })();
  return db;
}

/** Runs and events of other runs, as many days after the first ones. */
function addLater(db: Database, days: number, howMany: number): Database {
  const at = AT + days * DAY_MS;
  const started_at = new Date(at).toISOString();
  db.transaction(() => {
    for (let number = 100; number < 100 + howMany; number += 1) {
      const run = days * 1_000 + number;
      applyEntry(db, { id: `run-${run}`, entry: { ...ended(number, [], { started_at }), at } });
      applyEntry(db, { id: `event-${run}`, entry: { ...refusal(number), at } });
    }
  })();
  return db;
}

function count(db: Database, table: string): number {
  return Number(db.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0]);
}

describe("by count", () => {
  test("the limits: 100,000 runs, 200,000 events and steps, 10,000 circuits, 400 days", () => {
    expect(RETENTION).toEqual({
      mostRuns: 100_000,
      mostEvents: 200_000,
      mostCircuits: 10_000,
      mostSteps: 200_000,
      longestMs: 400 * DAY_MS,
    });
  });

  test("nothing goes up to the limit, and exactly what is beyond goes", () => {
    const db = filled(100);
    expect([pruneRuns(db, AT, LIMITS), pruneEvents(db, AT, LIMITS)]).toEqual([0, 0]);
    const more = filled(103);
    expect([pruneRuns(more, AT, LIMITS), pruneEvents(more, AT, LIMITS)]).toEqual([3, 3]);
    expect([count(more, "runs"), count(more, "events")]).toEqual([100, 100]);
    expect(more.query("SELECT min(seq) FROM runs").values()).toEqual([[4]]);
  });

  test(`at most ${BATCH} rows go at a time, until it fits`, () => {
    const db = filled(200);
    expect(pruneRuns(db, AT, LIMITS)).toBe(BATCH);
    expect(pruneEvents(db, AT, LIMITS)).toBe(BATCH);
    let rounds = 1;
    while (pruneRuns(db, AT, LIMITS) > 0) rounds += 1;
    expect([rounds, count(db, "runs")]).toEqual([Math.ceil(100 / BATCH), 100]);
  });

  test("with a run go its attempts and its keys, but not a key that a later run had", () => {
    const db = filled(103);
    db.transaction(() => {
      applyEntry(db, { id: "later", entry: started(500, [lease("job-2", 2)]) });
    })();
    pruneRuns(db, AT, LIMITS);
    expect(count(db, "runs")).toBe(100);
    expect(count(db, "attempts")).toBe(100);
    const keys = db.query("SELECT name FROM leases WHERE name IN ('job-1', 'job-2', 'job-5')");
    expect(keys.values().flat().toSorted()).toEqual(["job-2", "job-5"]);
  });

  test("a run that still runs keeps its key, and comes back with its end", () => {
    const db = filled(0);
    const key = [lease("long", 9)];
    db.transaction(() => applyEntry(db, { id: "long", entry: started(1, key) }))();
    db.transaction(() => {
      for (let number = 2; number <= 102; number += 1) {
        applyEntry(db, { id: String(number), entry: ended(number) });
      }
    })();
    expect(pruneRuns(db, AT, LIMITS)).toBe(2);
    expect(db.query("SELECT generation FROM leases WHERE name = 'long'").values()).toEqual([[9]]);
    db.transaction(() => applyEntry(db, { id: "end", entry: ended(1, key) }))();
    expect(db.query("SELECT outcome FROM runs WHERE run_id = ?").values(runId(1))).toEqual([
      ["failed"],
    ]);
  });
});

describe("by age", () => {
  test("each entry that brings a row takes old ones away", () => {
    const record = runningRecord(9);
    const entries = [started(9), ended(9), abandoned(9, [], record), refusal(9)] as const;
    for (const entry of entries) {
      const db = addLater(filled(3), 401, 3);
      const table = entry.kind === "event" ? "events" : "runs";
      expect(count(db, table)).toBe(6);
      const later = { ...entry, at: AT + 401 * DAY_MS };
      db.transaction(() => applyEntry(db, { id: "later", entry: later }))();
      expect([entry.kind, count(db, table)]).toEqual([entry.kind, 4]);
    }
  });

  test("nothing goes at 400 days, everything that is older after", () => {
    const db = addLater(filled(5), 400, 4);
    expect(pruneRuns(db, AT + 400 * DAY_MS, LIMITS)).toBe(0);
    expect(pruneEvents(db, AT + 400 * DAY_MS, LIMITS)).toBe(0);
    expect(pruneRuns(db, AT + 400 * DAY_MS + 1, LIMITS)).toBe(5);
    expect(pruneEvents(db, AT + 400 * DAY_MS + 1, LIMITS)).toBe(5);
  });

  test("a run that still runs does not go, and does not keep those behind it", () => {
    const db = filled(0);
    db.transaction(() => {
      applyEntry(db, { id: "1", entry: started(1) });
      applyEntry(db, { id: "2", entry: ended(2) });
    })();
    addLater(db, 450, 4);
    expect(db.query("SELECT run_id FROM runs ORDER BY seq").values().flat()).toEqual(
      [1, 100, 101, 102, 103].map(runId),
    );
  });

  test.each([1, 2, 3])("a clock that is wrong far ahead %i times takes nothing", (times) => {
    const db = addLater(filled(5), 3_000, times);
    expect([count(db, "runs"), count(db, "events")]).toEqual([5 + times, 5 + times]);
    // Nor does a run after it, whose clock is right.
    expect(pruneRuns(addLater(db, 1, 1), AT + DAY_MS, LIMITS)).toBe(0);
    expect(pruneEvents(db, AT + DAY_MS, LIMITS)).toBe(0);
  });

  test("one run with many events does not bear its own clock out", () => {
    const db = filled(5);
    for (let number = 0; number < 100; number += 1) {
      const entry = { ...refusal(50), at: AT + 3_000 * DAY_MS };
      db.transaction(() => applyEntry(db, { id: `own-${number}`, entry }))();
    }
    expect(count(db, "events")).toBe(105);
  });
});

/** So many circuits, each written a millisecond after the one before. */
function withCircuits(db: Database, count: number, at = AT): Database {
  for (let number = 1; number <= count; number += 1) {
    const name = `circuit-${number}`;
    writeCircuit(db, { name, record: "{}", circuit: CIRCUIT, at: at + number });
  }
  return db;
}

function circuitsOf(db: Database): unknown[] {
  return db.query("SELECT name FROM circuits ORDER BY updated_at").values().flat();
}

describe("circuits", () => {
  test("beyond the limit go, those first that were written longest ago", () => {
    const db = withCircuits(filled(0), 103);
    writeCircuit(db, { name: "circuit-2", record: "{}", circuit: CIRCUIT, at: AT + 500 });
    expect(pruneCircuits(db, AT, "circuit-103", LIMITS)).toBe(3);
    expect(circuitsOf(db).slice(0, 2)).toEqual(["circuit-5", "circuit-6"]);
    expect(circuitsOf(db).at(-1)).toBe("circuit-2");
    expect(pruneCircuits(db, AT, "circuit-103", LIMITS)).toBe(0);
    const many = withCircuits(filled(0), 200);
    expect(pruneCircuits(many, AT, "circuit-200", LIMITS)).toBe(BATCH);
  });

  test("go after 400 days without a change, but never the one that is being written", () => {
    const db = withCircuits(addLater(filled(0), 400, 4), 3, AT);
    expect(pruneCircuits(db, AT + 400 * DAY_MS, "new", LIMITS)).toBe(0);
    expect(pruneCircuits(db, AT + 400 * DAY_MS + 3, "new", LIMITS)).toBe(2);
    expect(pruneCircuits(db, AT + 400 * DAY_MS + 4, "circuit-3", LIMITS)).toBe(0);
    expect(circuitsOf(db)).toEqual(["circuit-3"]);
  });

  test("do not go by a clock that no run bears out", () => {
    const alone = withCircuits(filled(0), 3);
    expect(pruneCircuits(alone, AT + 3_000 * DAY_MS, "new", LIMITS)).toBe(0);
    const wrong = withCircuits(filled(5), 3);
    expect(pruneCircuits(wrong, AT + 3_000 * DAY_MS, "new", LIMITS)).toBe(0);
  });
});
