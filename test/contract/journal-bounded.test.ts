/**
 * The journal as a file: with rows that go as fast as they come it grows no more, and nothing is
 * ever moved in it to make it smaller, which would hold up whoever starts at that moment.
 */
import { afterAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { applyEntry } from "../../src/journal/apply.ts";
import { Journal } from "../../src/journal/journal.ts";
import { pruneEvents, pruneRuns } from "../../src/journal/retention.ts";
import { ended, inspect, openJournalScene, refusal } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const DAY_MS = 86_400_000;
const LIMITS = {
  mostRuns: 200,
  mostEvents: 200,
  mostCircuits: 10,
  mostSteps: 100,
  longestMs: 400 * DAY_MS,
};

function newJournal(): string {
  const state = scene.newState();
  const journal = new Journal(state, () => undefined);
  journal.put(ended(0));
  journal.close(5_000);
  return state;
}

/** Runs and events of the given numbers, of sizes that wander, each in a transaction. */
function fill(db: Database, from: number, to: number): void {
  for (let number = from; number < to; number += 1) {
    const command = ["sh", "-c", "x".repeat(100 + ((number * 977) % 3_000))];
    db.transaction(() => {
      applyEntry(db, { id: `run-${number}`, entry: ended(number, [], { command }) });
      applyEntry(db, { id: `event-${number}`, entry: refusal(number) });
      pruneRuns(db, Date.now(), LIMITS);
      pruneEvents(db, Date.now(), LIMITS);
    })();
  }
}

test("with rows that go as fast as they come it stays as large as it is", () => {
  const state = newJournal();
  const db = new Database(`${state}/journal.db`);
  const bytes = (): number => {
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    return statSync(`${state}/journal.db`).size;
  };
  fill(db, 1, 400);
  const full = bytes();
  fill(db, 400, 1_200);
  expect(bytes()).toBeLessThan(full * 1.1);
  const [counts] = db
    .query("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM events)")
    .values();
  expect(counts).toEqual([200, 200]);
  db.close(true);
});

test("it is never vacuumed: what is free in it is used again", () => {
  expect(inspect(newJournal(), "PRAGMA auto_vacuum")).toEqual([[0]]);
  const places = readdirSync("src", { recursive: true, encoding: "utf8" });
  const sources = places.filter((path) => path.endsWith(".ts"));
  expect(sources.length).toBeGreaterThan(100);
  const found = sources.flatMap((path) => {
    const lines = readFileSync(`src/${path}`, "utf8").split("\n");
    return lines.filter((line) => /vacuum/i.test(line) && !/^\s*(\/?\*|\/\/)/.test(line));
  });
  expect(found).toEqual([]);
});
