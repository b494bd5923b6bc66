/** Versions of the database, and the steps between them. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  addColumn,
  decideVersion,
  hasTables,
  migrate,
  type Migration,
  MIGRATIONS,
  newestVersion,
  readVersion,
  renderVersion,
} from "../../../src/journal/schema.ts";

describe("a version", () => {
  test.each([
    [0, "migrate"],
    [1, "unknown"],
    [999, "unknown"],
    [-1, "unknown"],
    [1000, "migrate"],
    [1002, "migrate"],
    [1003, "current"],
    [1004, "current"],
    [1999, "current"],
    [2000, "newer"],
    [9999, "newer"],
  ] as const)("%d is %s for a watchdog of 1003", (found, decision) => {
    expect(decideVersion(found, 1003)).toBe(decision);
  });

  test("is shown as major and minor", () => {
    expect([1001, 2042, 7].map(renderVersion)).toEqual(["1.1", "2.42", "0.7"]);
  });

  test("of the steps grows, and stays within the first major", () => {
    const versions = MIGRATIONS.map((step) => step.version);
    expect(versions).toEqual(versions.toSorted((one, other) => one - other));
    expect(versions.every((version) => version > 1000 && version < 2000)).toBe(true);
    expect(newestVersion()).toBe(versions.at(-1) ?? 0);
    expect(newestVersion([])).toBe(0);
  });
});

const VERSIONS = MIGRATIONS.map(({ version }) => version);
const NEWEST = newestVersion();
const NEXT = NEWEST + 1;

const STEPS: readonly Migration[] = [
  ...MIGRATIONS,
  { version: NEXT, apply: (db) => addColumn(db, "runs", "later", "TEXT NOT NULL DEFAULT 'x'") },
];

describe("migrating", () => {
  test("makes the tables, and says so", () => {
    const db = new Database(":memory:");
    expect(hasTables(db)).toBe(false);
    migrate(db, 5);
    expect(hasTables(db)).toBe(true);
    expect(db.query("SELECT * FROM schema").values()).toEqual(VERSIONS.map((one) => [one, 5]));
    expect(readVersion(db)).toBe(NEWEST);
  });

  test("adds to a database with rows, which stay", () => {
    const db = new Database(":memory:");
    migrate(db, 5);
    db.run(
      "INSERT INTO runs (run_id, job, state, started_at, pid) VALUES ('r', 'j', 'ended', 1, 1)",
    );
    migrate(db, 6, STEPS);
    expect(db.query("SELECT run_id, later FROM runs").values()).toEqual([["r", "x"]]);
    const taken = VERSIONS.map((one) => [one, 5]);
    expect(db.query("SELECT * FROM schema").values()).toEqual([...taken, [NEXT, 6]]);
    expect(readVersion(db)).toBe(NEXT);
  });

  test("can be repeated over what is there: the number was lost", () => {
    const db = new Database(":memory:");
    migrate(db, 5, STEPS);
    db.run("PRAGMA user_version = 0");
    migrate(db, 7, STEPS);
    expect(readVersion(db)).toBe(NEXT);
    expect(db.query("SELECT applied_at FROM schema").values()).toEqual(STEPS.map(() => [5]));
  });

  test("undoes a step that fails, and leaves the version of the one before", () => {
    const db = new Database(":memory:");
    const fails: Migration = {
      version: NEXT,
      apply: (on) => {
        on.run("CREATE TABLE half (a)");
        throw new Error("no room");
      },
    };
    expect(() => migrate(db, 5, [...MIGRATIONS, fails])).toThrow("no room");
    expect(db.inTransaction).toBe(false);
    expect(readVersion(db)).toBe(NEWEST);
    expect(db.query("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").values()).toEqual([
      [0],
    ]);
  });
});
