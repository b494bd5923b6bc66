/** What `report` counts, out of a real journal: whose run is of the span, and against what. */
import { afterAll, expect, test } from "bun:test";
import type { JournalEntry } from "../../src/core/journal-entry.ts";
import type { RunRecord } from "../../src/core/run-record.ts";
import { Journal } from "../../src/journal/journal.ts";
import { type JobRows, readReportRows } from "../../src/journal/report-queries.ts";
import { ended, openJournalScene, refusal, runId, started } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const HOUR_MS = 3_600_000;
const SINCE = Date.parse("2025-03-10T00:00:00.000Z");

let number = 0;
/** A run that ended, so many hours after the beginning of the span. */
function run(job: string, hours: number, changes: Partial<RunRecord>): JournalEntry {
  number += 1;
  const at = SINCE + hours * HOUR_MS;
  const started_at = new Date(at).toISOString();
  const ended_at = new Date(at + 1_000).toISOString();
  return { ...ended(number, [], { job, started_at, ended_at, ...changes }), at } as JournalEntry;
}

const good = (ms: number) => ({ outcome: "ok", exit_status: 0, duration_ms: ms }) as const;
const LOCKED = { outcome: "locked", because: "lease-held", child_pid: null } as const;

function read(...entries: readonly JournalEntry[]): ReadonlyMap<string, JobRows> {
  const state = scene.newState();
  const journal = new Journal(state, () => undefined);
  for (const entry of entries) journal.put(entry);
  journal.close(5_000);
  const answer = readReportRows(state, SINCE);
  if (answer.kind !== "read") throw new Error(answer.kind);
  return new Map(answer.value.jobs.map((rows) => [rows.job, rows]));
}

test("a run is of the span by its start, and one that still runs is of each", () => {
  number += 1;
  const at = SINCE - 50 * HOUR_MS;
  const record = { job: "long", started_at: new Date(at).toISOString() };
  const jobs = read(
    { ...started(number, [], record), at } as JournalEntry,
    run("nightly", -1, good(1_000)),
    run("nightly", 0, good(1_000)),
    run("nightly", 1, {}),
    run("gone", -1, {}),
  );
  expect([...jobs.keys()].toSorted()).toEqual(["long", "nightly"]);
  expect(jobs.get("nightly")).toMatchObject({ runs: 2, good: 1, skipped: 0 });
  expect(jobs.get("long")).toMatchObject({ runs: 1, good: 0 });
});

test("the last run is the last that was let start, of whatever day, beside its skips", () => {
  const before = run("nightly", -20, good(1_000));
  const jobs = read(before, run("nightly", 1, LOCKED), run("nightly", 2, LOCKED));
  const rows = jobs.get("nightly");
  expect(rows).toMatchObject({ runs: 2, skipped: 2 });
  expect(rows?.last?.outcome).toBe("ok");
  expect(rows?.lastRuns.map(({ outcome }) => outcome)).toEqual(["ok"]);
  expect(rows?.lastSkip?.runId).toBe(runId(number));
});

test("a run that its job has refused is a skip, and hides none that was let start", () => {
  const refused = { outcome: "config_error", because: "job-refused" } as const;
  const jobs = read(run("nightly", 1, {}), run("nightly", 2, refused), run("nightly", 3, refused));
  const rows = jobs.get("nightly");
  expect(rows).toMatchObject({ runs: 3, skipped: 2 });
  expect([rows?.last?.outcome, rows?.lastRuns.length]).toEqual(["failed", 1]);
  expect(rows?.lastSkip?.because).toBe("job-refused");
});

test("what is usual is that of the good runs before the last one", () => {
  const jobs = read(
    run("nightly", -30, good(1_000)),
    run("nightly", -20, good(2_000)),
    run("nightly", -10, { duration_ms: 77 }),
    run("nightly", 1, good(9_000)),
  );
  expect(jobs.get("nightly")?.goodDurationsMs).toEqual([2_000, 1_000]);
});

test("retries and leftovers are those of the span", () => {
  const retried = (hours: number, name = "retried") =>
    ({ ...refusal(1), name, at: SINCE + hours * HOUR_MS }) as JournalEntry;
  const jobs = read(
    run("nightly", 1, {}),
    ...[-1, 0, 2].map((hours) => retried(hours)),
    retried(3, "leftovers"),
    retried(3, "stopped"),
  );
  expect(jobs.get("nightly")?.events).toEqual({ retried: 2, leftovers: 1 });
});
