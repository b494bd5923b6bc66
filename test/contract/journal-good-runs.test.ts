/** What the journal tells about a job's good runs, for the comparison with the next one. */
import { afterAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import type { JournalEntry } from "../../src/core/journal-entry.ts";
import type { RunRecord } from "../../src/core/run-record.ts";
import { Journal } from "../../src/journal/journal.ts";
import { ended, openJournalScene, runId } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const GOOD = { outcome: "ok", because: "exited", exit_status: 0 } as const;
const ODD = { outcome: "bad_output", because: "suspicious", exit_status: 65 } as const;

function stateWith(...entries: JournalEntry[]): string {
  const state = scene.newState();
  const journal = new Journal(state, () => undefined);
  for (const entry of entries) journal.put(entry);
  journal.close(1_000);
  return state;
}

function goodRuns(state: string, job = "nightly", limit = 20) {
  const journal = new Journal(state, () => undefined);
  try {
    return journal.goodRuns(job, limit);
  } finally {
    journal.close(0);
  }
}

function numbersOf(found: ReturnType<typeof goodRuns>): (number | string)[] {
  if (found === "unread") return [found];
  return found.map(({ isOk, record }) => {
    const number = Number(record.run_id.slice(-12));
    return isOk ? number : `${number} odd`;
  });
}

const at = (number: number, changes: Partial<RunRecord>): JournalEntry => {
  const startedAt = new Date(Date.parse("2026-01-01T00:00:00Z") + number * 1_000).toISOString();
  return ended(number, [], { started_at: startedAt, ...changes });
};

test("those that went well and those that were only odd, of this job, newest first", () => {
  const state = stateWith(
    at(1, GOOD),
    at(2, {}),
    at(3, ODD),
    at(4, { ...ODD, because: "file-empty" }),
    at(5, { ...GOOD, job: "other" }),
    at(6, GOOD),
  );
  expect(numbersOf(goodRuns(state))).toEqual([6, "3 odd", 1]);
  expect(numbersOf(goodRuns(state, "nightly", 2))).toEqual([6, "3 odd"]);
  expect(numbersOf(goodRuns(state, "other"))).toEqual([5]);
  expect(numbersOf(goodRuns(state, "none"))).toEqual([]);
});

test("none where there is no journal, and nothing is made by asking", () => {
  const state = scene.newState();
  expect(goodRuns(state)).toEqual([]);
  expect(numbersOf(goodRuns(state))).toEqual([]);
});

test("a record of an earlier version, or one that cannot be read, is no trouble", () => {
  const state = stateWith(at(1, GOOD), at(2, GOOD), at(3, GOOD));
  const db = new Database(`${state}/journal.db`);
  const remove = "json_remove(record, '$.checks', '$.artifacts', '$.suspicions')";
  db.run(`UPDATE runs SET record = ${remove} WHERE run_id = ?`, [runId(2)]);
  db.run("UPDATE runs SET record = '{' WHERE run_id = ?", [runId(3)]);
  db.close(true);
  expect(numbersOf(goodRuns(state))).toEqual([2, 1]);
});

test("a broken journal is unread, not empty", () => {
  const state = stateWith(at(1, GOOD));
  writeFileSync(`${state}/journal.db`, "no database at all, but long enough to be taken for one");
  expect(goodRuns(state)).toBe("unread");
});

test("a job that has failed a hundred thousand times is asked about in no time", () => {
  const state = stateWith(at(1, GOOD));
  const db = new Database(`${state}/journal.db`);
  db.run(
    "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) " +
      "INSERT INTO runs (run_id, job, state, outcome, because, sort_at, started_at, pid, record) " +
      "SELECT 'r' || i, 'nightly', 'ended', 'failed', 'exited', 4000000000000 + i, i, 1, " +
      "json_object('filler', hex(zeroblob(1000))) FROM n",
  );
  db.close(true);
  const spans = Array.from({ length: 5 }, () => {
    const startedAt = performance.now();
    // Too far back to be found: only the last 1,000 are looked through.
    expect(numbersOf(goodRuns(state))).toEqual([]);
    return performance.now() - startedAt;
  });
  // 50 ms on a quiet machine are many; reading all 100,000 takes seconds, each time.
  expect(Math.min(...spans)).toBeLessThan(500);
}, 60_000);
