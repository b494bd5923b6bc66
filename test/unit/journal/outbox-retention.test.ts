/** The outbox and what sinks were told stay bounded, and asking them walks over no table. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { applyEntry } from "../../../src/journal/apply.ts";
import { giveUpOld, hasDue, MOST_NOTICES, selectDue } from "../../../src/journal/outbox-table.ts";
import { migrate } from "../../../src/journal/schema.ts";
import { MOST_TOLD } from "../../../src/journal/told-rows.ts";
import { ended } from "../../support/journal-scene.ts";
import { partFor, sinkTo, telling } from "../../support/notice-parts.ts";

const DAY_MS = 86_400_000;
const NOW = Date.parse("2025-03-04T05:06:08.089Z");

function newDatabase(): Database {
  const db = new Database(":memory:");
  migrate(db, 0);
  return db;
}

function fill(db: Database, count: number, changes: Record<string, string | number> = {}): void {
  const row = {
    entry_id: "x",
    sink_id: "s",
    sink: JSON.stringify(sinkTo("a")),
    job: "j",
    event: "failure",
    notice: '{"id":"1","event":"failure","summary":"s"}',
    created_at: NOW,
    next_at: NOW,
    ...changes,
  };
  const names = Object.keys(row);
  const places = names.map(() => "?").join(", ");
  const insertion = db.query(`INSERT INTO outbox (${names.join(", ")}) VALUES (${places})`);
  db.transaction(() => {
    for (let number = 0; number < count; number += 1) {
      insertion.run(...Object.values({ ...row, entry_id: `${changes["state"] ?? "x"}-${number}` }));
    }
  })();
}

function tellOne(db: Database, number: number): void {
  const entry = telling(ended(number), partFor([sinkTo(`to-${number}`)]));
  db.transaction(() => applyEntry(db, { id: `${number}`, entry }))();
}

function countOf(db: Database, table: "outbox" | "told"): number {
  const found = db.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${table}`).get();
  return found?.count ?? 0;
}

describe("the outbox", () => {
  test("is bounded by its count, whatever its rows wait for", () => {
    const db = newDatabase();
    fill(db, MOST_NOTICES + 20);
    for (let number = 1; number <= 3; number += 1) tellOne(db, number);
    expect(countOf(db, "outbox")).toBe(MOST_NOTICES);
  });

  test("loses what was delivered long ago, and not what waits", () => {
    const db = newDatabase();
    const old = { created_at: NOW - 91 * DAY_MS };
    fill(db, 5, { ...old, state: "delivered" });
    fill(db, 2, { ...old, state: "waiting" });
    tellOne(db, 1);
    expect(db.query("SELECT state, count(*) FROM outbox GROUP BY state").values()).toEqual([
      ["waiting", 3],
    ]);
  });

  test("gives up what nobody could deliver for a month, and keeps it for a person", () => {
    const db = newDatabase();
    fill(db, 1, { created_at: NOW - 31 * DAY_MS });
    tellOne(db, 1);
    giveUpOld(db, NOW);
    expect(db.query("SELECT state, last_because FROM outbox ORDER BY id").values()).toEqual([
      ["dead", "nobody knows its sink"],
      ["waiting", null],
    ]);
  });

  test("is asked by its indexes alone", () => {
    const db = newDatabase();
    const plans = [
      "SELECT 1 FROM outbox WHERE state = 'waiting' AND (next_at <= 1 OR next_at > 2) LIMIT 1",
      "SELECT min(id) FROM outbox WHERE state = 'waiting' GROUP BY sink_id, job",
      "SELECT 1 FROM outbox WHERE run_id = 'r' AND state IN ('waiting', 'dead')",
      "SELECT 1 FROM told WHERE job = 'j' AND is_declared = 1",
    ].map((sql) =>
      db
        .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail)
        .join("; "),
    );
    for (const plan of plans) expect(plan).toMatch(/USING (COVERING )?INDEX|USING PRIMARY KEY/);
    // The twin: without its indexes it is a walk.
    const bare = newDatabase();
    for (const name of ["outbox_due", "outbox_by_state", "outbox_waiting"]) {
      bare.run(`DROP INDEX ${name}`);
    }
    const walk = bare
      .query<{ detail: string }, []>(
        "EXPLAIN QUERY PLAN SELECT 1 FROM outbox WHERE next_at <= 1 AND state = 'waiting'",
      )
      .get();
    expect(walk?.detail).toStartWith("SCAN outbox");
  });

  test("has something due where its time has come, or was never meant so far ahead", () => {
    for (const [aheadMs, isDue] of [
      [0, true],
      [1_000, false],
      [DAY_MS, true],
    ] as const) {
      const db = newDatabase();
      fill(db, 1, { next_at: NOW + aheadMs });
      expect([aheadMs, hasDue(db, NOW)]).toEqual([aheadMs, isDue]);
    }
  });

  test("that is full is asked within a blink", () => {
    const db = newDatabase();
    fill(db, MOST_NOTICES, { next_at: NOW + 1000 });
    const asked = { now: NOW, isForced: false, runId: null, ownSinkIds: [] };
    const spans = Array.from({ length: 5 }, () => {
      const began = performance.now();
      expect(hasDue(db, NOW)).toBe(false);
      expect(selectDue(db, asked, 200)).toEqual([]);
      return performance.now() - began;
    });
    expect(Math.min(...spans)).toBeLessThan(1_000);
  });
});

describe("what sinks were told", () => {
  test("is bounded by its count, the longest untouched first", () => {
    const db = newDatabase();
    const insertion = db.query(
      "INSERT INTO told (job, sink_id, sink, remind_every_ms, since, updated_at) " +
        "VALUES (?, 's', '{}', 1, 1, ?)",
    );
    db.transaction(() => {
      for (let number = 0; number < MOST_TOLD; number += 1) {
        insertion.run(`job-${number}`, NOW - MOST_TOLD + number);
      }
    })();
    tellOne(db, 1);
    expect(countOf(db, "told")).toBe(MOST_TOLD);
    expect(db.query("SELECT 1 FROM told WHERE job = 'job-0'").get()).toBeNull();
  });
});
