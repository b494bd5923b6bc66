/** Which jobs of many steps go, and which never do. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { applyEntry } from "../../../src/journal/apply.ts";
import { endJob, findOwnJob, insertJob } from "../../../src/journal/job-rows.ts";
import { BATCH, pruneJobs, RETENTION } from "../../../src/journal/retention.ts";
import { migrate } from "../../../src/journal/schema.ts";
import { artifactsOf, done, jobIdOf, newJob } from "../../support/job-scene.ts";
import { ended, runId } from "../../support/journal-scene.ts";

const DAY_MS = 86_400_000;
const AT = Date.parse("2025-03-04T05:06:07.089Z");
const LATER = AT + 1000 * DAY_MS;
const LIMITS = { ...RETENTION, mostRuns: 10, mostSteps: 1000 };
const NONE = { leases: [], generation: 0 };

/** A journal in which enough runs bear out that it is LATER. */
function open(): Database {
  const db = new Database(":memory:");
  migrate(db, 0);
  db.transaction(() => {
    for (let number = 1; number <= 5; number += 1) {
      const started_at = new Date(LATER).toISOString();
      const entry = { ...ended(number, [], { started_at }), at: LATER };
      applyEntry(db, { id: `run-${number}`, entry });
    }
  })();
  return db;
}

interface Added {
  readonly name?: string;
  readonly state?: "done" | "failed";
  readonly at?: number;
  readonly steps?: number;
}

/** Job NUMBER, as the run of that number leaves it. */
function add(db: Database, number: number, added: Added = {}): void {
  const { name = "nightly", state = "done", at = LATER, steps = 1 } = added;
  const owner = { runId: runId(number), ...NONE };
  const names = Array.from({ length: steps }, (_, index) => `s${index}`);
  const records = names.map((step) => ({ record: done(step), artifacts: artifactsOf(step) }));
  const jobId = jobIdOf(number);
  db.transaction(() => {
    insertJob({ db, owner, at }, newJob([], { jobId, name, steps: records }));
    const job = findOwnJob(db, jobId, owner);
    if (!("kind" in job)) {
      endJob({ db, job, owner, at }, { state, because: null, exitStatus: 0 });
    }
  })();
}

function numbersOf(db: Database): number[] {
  const rows = db.query<{ job_id: string }, []>("SELECT job_id FROM jobs ORDER BY seq").all();
  return rows.map(({ job_id }) => Number(job_id.slice(-6)));
}

function count(db: Database, table: string): number {
  return Number(db.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0]);
}

test("the limits are those of runs, and 200,000 steps", () => {
  expect([RETENTION.mostRuns, RETENTION.mostSteps]).toEqual([100_000, 200_000]);
});

describe("a job that nobody needs any more", () => {
  test("goes by count, with all its steps and artifacts", () => {
    const db = open();
    for (let number = 1; number <= 14; number += 1) add(db, number);
    expect(pruneJobs(db, LATER, LIMITS)).toBe(4);
    expect(numbersOf(db)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    expect([count(db, "steps"), count(db, "artifacts")]).toEqual([10, 20]);
    expect(pruneJobs(db, LATER, LIMITS)).toBe(0);
  });

  test("goes by age", () => {
    const db = open();
    add(db, 1, { at: LATER - 401 * DAY_MS });
    add(db, 2, { at: LATER - 399 * DAY_MS });
    add(db, 3, { at: LATER - 399 * DAY_MS });
    expect(pruneJobs(db, LATER, LIMITS)).toBe(1);
    expect(numbersOf(db)).toEqual([2, 3]);
  });

  test("does not go by a clock that no other run bears out", () => {
    const db = open();
    add(db, 1);
    add(db, 2);
    expect(pruneJobs(db, LATER + 500 * DAY_MS, LIMITS)).toBe(0);
  });

  test("goes by how many steps came after it", () => {
    const db = open();
    for (let number = 1; number <= 4; number += 1) add(db, number, { steps: 400 });
    expect(pruneJobs(db, LATER, LIMITS)).toBe(1);
    expect(numbersOf(db)).toEqual([2, 3, 4]);
    add(db, 5, { steps: 999 });
    expect(pruneJobs(db, LATER, LIMITS)).toBe(2);
    expect(numbersOf(db)).toEqual([4, 5]);
  });

  test("is one that was left unfinished when a newer one was begun", () => {
    const db = open();
    add(db, 1, { state: "failed", at: AT });
    add(db, 2, { state: "failed", at: AT });
    expect(pruneJobs(db, LATER, LIMITS)).toBe(1);
    expect(numbersOf(db)).toEqual([2]);
  });

  test(`goes with at most ${BATCH - 1} others, and not with many rows at once`, () => {
    const db = open();
    for (let number = 1; number <= 40; number += 1) add(db, number, { at: AT });
    expect(pruneJobs(db, LATER, LIMITS)).toBe(BATCH);
    const wide = open();
    for (let number = 1; number <= 3; number += 1) add(wide, number, { steps: 20_000, at: AT });
    expect(pruneJobs(wide, LATER, LIMITS)).toBe(1);
    expect(pruneJobs(wide, LATER, LIMITS)).toBe(1);
    expect(numbersOf(wide)).toEqual([3]);
    expect(count(wide, "artifacts")).toBe(40_000);
  });
});

describe("a job that is needed stays:", () => {
  test("the newest of its name while it is unfinished, whatever its age and place", () => {
    const db = open();
    add(db, 1, { name: "old", state: "failed", at: AT });
    for (let number = 2; number <= 40; number += 1) add(db, number, { steps: 100 });
    while (pruneJobs(db, LATER, LIMITS) > 0);
    expect(numbersOf(db)).toEqual([1, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40]);
  });

  test("the last one that is done, by which a step is known to be unchanged", () => {
    const db = open();
    add(db, 1, { at: AT });
    add(db, 2, { at: AT });
    for (let number = 3; number <= 6; number += 1) add(db, number, { state: "failed", at: AT });
    for (let number = 7; number <= 9; number += 1) add(db, number, { name: "other" });
    while (pruneJobs(db, LATER, LIMITS) > 0);
    expect(numbersOf(db)).toEqual([2, 6, 7, 8, 9]);
  });

  test("but the last done one of a name goes when it is beyond both limits", () => {
    const db = open();
    for (let number = 1; number <= 14; number += 1) {
      add(db, number, { name: `backup-${number}`, at: number <= 2 ? AT : LATER });
    }
    while (pruneJobs(db, LATER, LIMITS) > 0);
    expect(numbersOf(db)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  });

  test("many that are needed do not keep others from going", () => {
    const db = open();
    for (let number = 1; number <= 3 * BATCH; number += 1) {
      add(db, number, { name: `once-${number}`, state: "failed", at: AT });
    }
    add(db, 100, { at: AT });
    add(db, 101);
    expect(pruneJobs(db, LATER, LIMITS)).toBe(1);
    expect(numbersOf(db)).not.toContain(100);
  });
});

test("each new job takes some of the old ones along", () => {
  const db = open();
  add(db, 1, { at: AT });
  add(db, 2, { at: AT });
  add(db, 3);
  expect(numbersOf(db)).toEqual([2, 3]);
});
