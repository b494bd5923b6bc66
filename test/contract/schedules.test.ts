/** What the journal remembers of jobs that are expected, with real files and real transactions. */
import { afterAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import type { JournalEntry } from "../../src/core/journal-entry.ts";
import { MOST_INSTANTS, type PatrolledEntry } from "../../src/core/patrol.ts";
import { basisOf, type JobSchedule } from "../../src/core/schedule.ts";
import { Journal } from "../../src/journal/journal.ts";
import { placeOfJournal } from "../../src/journal/places.ts";
import { readEvents } from "../../src/journal/queries.ts";
import {
  NOTHING_KNOWN,
  type PatrolKnowledge,
  readPatrolKnowledge,
} from "../../src/journal/schedule-queries.ts";
import { addToSpool } from "../../src/journal/spool.ts";
import { abandoned, ended, openJournalScene, started } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const DAILY = { everyMs: 86_400_000, cron: null, timeZone: null };
const NIGHTLY = { everyMs: null, cron: "0 2 * * *", timeZone: "Europe/Berlin" };
/** Of the first entries of the scene. */
const START_AT = Date.parse("2025-03-04T05:06:07.089Z");
const END_AT = START_AT + 1_000;

function put(state: string, ...entries: readonly JournalEntry[]): void {
  const journal = new Journal(state, (line) => {
    throw new Error(line);
  });
  for (const entry of entries) journal.put(entry);
  journal.close(1_000);
}

function declared(entry: JournalEntry, schedule: typeof DAILY | typeof NIGHTLY | null) {
  return { ...entry, schedule } as JournalEntry;
}

function knowledgeOf(state: string): PatrolKnowledge {
  const answer = readPatrolKnowledge(state, { drains: true });
  if (answer.kind === "missing") return NOTHING_KNOWN;
  if (answer.kind !== "read") throw new Error(answer.kind);
  return answer.value;
}

function scheduleIn(state: string): JobSchedule | undefined {
  return knowledgeOf(state).jobs[0]?.schedule;
}

const OK = { outcome: "ok" } as const;
const UNSTARTED = { outcome: "locked", child_pid: null } as const;

describe("a schedule", () => {
  test("is remembered with the start of a run, and its success with the end", () => {
    const state = scene.newState();
    put(state, declared(started(1), DAILY));
    expect(knowledgeOf(state).jobs).toMatchObject([
      {
        schedule: { job: "nightly", ...DAILY, lastStartAt: START_AT, lastSuccessAt: null },
        running: [{ pid: 4711, pidStartTime: 100, startedAt: START_AT }],
        longestGoodMs: undefined,
      },
    ]);
    put(state, declared(ended(1, [], OK), DAILY));
    expect(knowledgeOf(state).jobs).toMatchObject([
      { schedule: { lastSuccessAt: END_AT }, running: [] },
    ]);
    put(state, declared(started(2), DAILY));
    expect(knowledgeOf(state).jobs).toMatchObject([{ longestGoodMs: 1_000 }]);
  });

  test("is measured from the last success: a failure and a refusal are others", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    put(state, declared(started(2), DAILY), declared(ended(2), DAILY));
    put(state, declared(ended(3, [], UNSTARTED), DAILY));
    expect(scheduleIn(state)).toMatchObject({
      lastSuccessAt: END_AT,
      lastFailure: "failed",
      lastFailureAt: END_AT,
      lastRefusal: "locked",
      lastRefusalAt: END_AT,
    });
  });

  test("is not met by a run of one step alone, and not missed by it", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    const later = { ended_at: new Date(END_AT + 60_000).toISOString(), duration_ms: 60_000 };
    const alone = { ...OK, ...later, because: "only-done" } as const;
    put(state, declared(started(2), DAILY), declared(ended(2, [], alone), DAILY));
    expect(scheduleIn(state)).toMatchObject({ lastSuccessAt: END_AT, lastFailureAt: null });
    put(state, declared(started(3), DAILY));
    expect(knowledgeOf(state).jobs).toMatchObject([{ longestGoodMs: 1_000 }]);
    const whole = { ...OK, ...later, because: "all-done" } as const;
    put(state, declared(ended(3, [], whole), DAILY), declared(started(4), DAILY));
    expect(knowledgeOf(state).jobs).toMatchObject([
      { schedule: { lastSuccessAt: END_AT + 60_000 }, longestGoodMs: 60_000 },
    ]);
  });

  test("counts a run whose watchdog was killed as a failure", () => {
    const state = scene.newState();
    put(state, declared(started(1), DAILY), abandoned(1));
    expect(scheduleIn(state)).toMatchObject({ lastFailure: "abandoned", lastSuccessAt: null });
  });

  test("is forgotten with the first start without one, and not with a refusal", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    put(state, declared(ended(2, [], UNSTARTED), null));
    expect(scheduleIn(state)).toMatchObject(DAILY);
    put(state, declared(started(3), null));
    expect(scheduleIn(state)).toBeUndefined();
  });

  test("stays as it is where an entry knows nothing of it", () => {
    const state = scene.newState();
    put(state, declared(started(1), DAILY), ended(1, [], OK));
    expect(scheduleIn(state)).toMatchObject({ ...DAILY, lastSuccessAt: END_AT });
  });

  test("was declared when it was declared like this first", () => {
    const state = scene.newState();
    const later = { ...ended(2, [], UNSTARTED), at: END_AT + 5_000 };
    put(state, declared(started(1), DAILY), declared(later, DAILY));
    expect(scheduleIn(state)).toMatchObject({ declaredAt: START_AT });
    put(state, declared({ ...ended(3, [], UNSTARTED), at: END_AT + 9_000 }, NIGHTLY));
    expect(scheduleIn(state)).toMatchObject({ ...NIGHTLY, declaredAt: END_AT + 9_000 });
  });

  test("goes with a word, once", () => {
    const state = scene.newState();
    put(state, declared(started(1), DAILY));
    put(state, { kind: "schedule-forgotten", at: END_AT, job: "nightly" });
    expect(scheduleIn(state)).toBeUndefined();
  });

  test("is not changed by what comes late through the spool", () => {
    const state = scene.newState();
    const newer = { ended_at: new Date(END_AT + 60_000).toISOString(), ...OK };
    put(state, declared({ ...ended(2, [], newer), at: END_AT + 60_000 }, NIGHTLY));
    const older = [declared(started(1), null), declared(ended(1, [], OK), DAILY)];
    const place = placeOfJournal(state);
    addToSpool(
      place,
      older.map((entry, index) => ({ id: `old-${index}`, entry })),
    );
    expect(scheduleIn(state)).toMatchObject({ ...NIGHTLY, lastSuccessAt: END_AT + 60_000 });
  });
});

interface Seen {
  readonly at?: number;
  readonly because?: "not-started" | null;
  readonly isStalled?: boolean;
  readonly recovered?: readonly string[];
  readonly basis?: Partial<JobSchedule>;
}

function patrolled(state: string, seen: Seen = {}): PatrolledEntry {
  const { at = END_AT + 1e8, because = null, isStalled = false, recovered = [] } = seen;
  const schedule = scheduleIn(state);
  const basis = schedule === undefined ? undefined : { ...basisOf(schedule), ...seen.basis };
  const since = because === null ? null : at - 5;
  const judged = { job: "nightly", because, dueAt: at - 10, since, data: { every_ms: 1 } };
  const about = { subject: "job:nightly", state: "stalled", because: "beat-old", job: "nightly" };
  const key = { kind: "job", name: "nightly" };
  return {
    kind: "patrolled",
    at,
    pid: 9,
    bootId: "boot",
    monotonicMs: 77,
    periodMs: 300_000,
    findings: isStalled ? [{ kind: "lease", ...about, runId: "r1", key }] : [],
    looked: ["lease"],
    recovered,
    jobs: basis === undefined ? [] : [{ ...judged, basis }],
    isExpected: true,
  };
}

function eventsIn(state: string): unknown[] {
  const answer = readEvents(state, { limit: 50 });
  if (answer.kind !== "read") throw new Error(answer.kind);
  return answer.value.map(({ name, job, because }) => [name, job, because]).toReversed();
}

describe("what a patrol has found", () => {
  test("is told once, however often a patrol comes", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    const at = END_AT + 1e8;
    const because = "not-started";
    for (const round of [0, 1, 2]) put(state, patrolled(state, { at: at + round, because }));
    expect(eventsIn(state)).toEqual([["overdue", "nightly", because]]);
    expect(scheduleIn(state)).toMatchObject({ overdueState: because, overdueSince: at - 3 });
  });

  test("is over with a success, and told again when it comes again", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    put(state, patrolled(state, { because: "not-started" }));
    put(state, declared({ ...ended(2, [], OK), at: END_AT + 2e8 }, DAILY));
    expect(scheduleIn(state)).toMatchObject({ overdueState: null, toldAt: null });
    put(state, patrolled(state, { at: END_AT + 3e8, because: "not-started" }));
    expect(eventsIn(state)).toHaveLength(2);
  });

  test("is over where a patrol finds it fine again, and is news the next time", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    put(state, patrolled(state, { because: "not-started" }));
    put(state, patrolled(state, { at: END_AT + 2e8, because: null }));
    expect(scheduleIn(state)).toMatchObject({ overdueState: null, overdueSince: null });
    put(state, patrolled(state, { at: END_AT + 3e8, because: "not-started" }));
    expect(eventsIn(state)).toHaveLength(2);
  });

  test("is not believed of a job that a run was faster about", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    const stale = { because: "not-started", basis: { lastSuccessAt: END_AT - 5 } } as const;
    put(state, patrolled(state, stale));
    expect(eventsIn(state)).toEqual([]);
    expect(scheduleIn(state)).toMatchObject({ overdueState: null });
  });

  test("of a lease is told when it comes, and when the same run beats again", () => {
    const state = scene.newState();
    put(state, patrolled(state, { at: 1, isStalled: true }));
    put(state, patrolled(state, { at: 2, isStalled: true }));
    put(state, patrolled(state, { at: 3, recovered: ["job:nightly"] }));
    expect(eventsIn(state)).toEqual([
      ["stalled", "nightly", "beat-old"],
      ["recovered", "nightly", "beat-old"],
    ]);
    expect(knowledgeOf(state).findings).toEqual([]);
  });

  test("of a lease that somebody else has by now is over without a word", () => {
    const state = scene.newState();
    put(state, patrolled(state, { at: 1, isStalled: true }));
    put(state, patrolled(state, { at: 2 }));
    expect(eventsIn(state)).toEqual([["stalled", "nightly", "beat-old"]]);
    expect(knowledgeOf(state).findings).toEqual([]);
  });

  test("is the same where the entry is read in a second time, out of the spool", () => {
    const state = scene.newState();
    put(state, declared(ended(1, [], OK), DAILY));
    const entry = patrolled(state, { because: "not-started", isStalled: true });
    const named = { id: "one-patrol", entry };
    for (const _ of [1, 2]) addToSpool(placeOfJournal(state), [named]);
    expect(eventsIn(state)).toHaveLength(2);
    expect(knowledgeOf(state).patrol).toMatchObject({ at: entry.at, earlier: [] });
  });

  test("of an older patrol changes nothing after a newer one", () => {
    const state = scene.newState();
    put(state, patrolled(state, { at: 100 }));
    const entry = patrolled(state, { at: 50, isStalled: true });
    addToSpool(placeOfJournal(state), [{ id: "old", entry }]);
    expect(eventsIn(state)).toEqual([]);
    expect(knowledgeOf(state)).toMatchObject({ findings: [], patrol: { at: 100 } });
  });

  test("remembers how often patrols are said to come, over those that say nothing", () => {
    const state = scene.newState();
    put(state, patrolled(state, { at: 1 }), { ...patrolled(state, { at: 2 }), periodMs: null });
    expect(knowledgeOf(state).patrol).toMatchObject({ periodMs: 300_000, earlier: [1] });
    put(state, { ...patrolled(state, { at: 3 }), periodMs: null, isExpected: false });
    expect(knowledgeOf(state).patrol).toMatchObject({ isExpected: false, periodMs: null });
    put(state, { ...patrolled(state, { at: 4 }), periodMs: null });
    expect(knowledgeOf(state).patrol).toMatchObject({ isExpected: true, periodMs: null });
  });
});

test("what only the configuration says is not said over what a run has declared", () => {
  const state = scene.newState();
  put(state, declared(ended(1, [], OK), DAILY));
  const [job, other] = ["nightly", "other"].map((name) => ({ job: name, ...NIGHTLY }));
  const configured = [job, other].flatMap((one) => one ?? []);
  put(state, { ...patrolled(state, { at: END_AT + 5 }), declared: configured });
  const known = knowledgeOf(state).jobs.map(({ schedule }) => schedule);
  expect(known).toMatchObject([
    { job: "nightly", ...DAILY, lastSuccessAt: END_AT },
    { job: "other", ...NIGHTLY, declaredBy: "configuration", lastSuccessAt: null },
  ]);
});

test("of the patrols before so many are remembered as teach how often they come", () => {
  const state = scene.newState();
  for (let at = 1; at <= 40; at += 1) put(state, patrolled(state, { at }));
  const { patrol } = knowledgeOf(state);
  expect(patrol?.earlier).toEqual(Array.from({ length: MOST_INSTANTS }, (_, index) => 28 + index));
});

test("a database of before the schedules is read as one without, and becomes one with them", () => {
  const state = scene.newState();
  put(state, declared(ended(1, [], OK), DAILY));
  const db = new Database(`${state}/journal.db`);
  for (const table of ["schedules", "patrol_findings", "patrols"]) db.run(`DROP TABLE ${table}`);
  db.run("DELETE FROM schema WHERE version >= 1005");
  db.run("PRAGMA user_version = 1003");
  db.close();
  expect(knowledgeOf(state)).toEqual(NOTHING_KNOWN);
  put(state, declared(ended(2, [], OK), DAILY));
  expect(scheduleIn(state)).toMatchObject(DAILY);
});

test("ten thousand jobs are remembered, and of more the longest unseen go", () => {
  const state = scene.newState();
  put(state, declared(started(1), DAILY));
  const db = new Database(`${state}/journal.db`);
  db.run(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) " +
      "INSERT INTO schedules (job, every_ms, declared_at, declared_by, seen_at) " +
      "SELECT 'job-' || i, 1000, 1, 'r', i FROM n",
  );
  db.close();
  put(state, declared({ ...started(2), at: 5 } as JournalEntry, DAILY));
  const names = knowledgeOf(state).jobs.map(({ schedule }) => schedule.job);
  expect(names).toHaveLength(10_000);
  expect(names).toContain("nightly");
  expect(names).not.toContain("job-51");
  expect(names).toContain("job-10050");
});
