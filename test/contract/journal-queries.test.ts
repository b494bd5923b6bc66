/** What reading commands are answered. */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, symlinkSync } from "node:fs";
import { Journal } from "../../src/journal/journal.ts";
import { placeOfJournal } from "../../src/journal/places.ts";
import { addToSpool } from "../../src/journal/spool.ts";
import type { JournalEntry } from "../../src/core/journal-entry.ts";
import {
  findRun,
  type JournalAnswer,
  lastRunOf,
  lastRuns,
  readEvents,
  readHistory,
  runningRuns,
} from "../../src/journal/queries.ts";
import {
  ended,
  inspect,
  lease,
  openJournalScene,
  refusal,
  runId,
  started,
} from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

function stateWith(...entries: JournalEntry[]): string {
  const state = scene.newState();
  const journal = new Journal(state, () => undefined);
  for (const entry of entries) journal.put(entry);
  journal.close(1000);
  return state;
}

function valueOf<T>(answer: JournalAnswer<T>): T {
  if (answer.kind !== "read") throw new Error(`found ${answer.kind}`);
  return answer.value;
}

/** So many hours after the first. */
function startedAt(hours: number): { started_at: string } {
  return { started_at: new Date(Date.UTC(2025, 2, 4, hours)).toISOString() };
}

const LOCKED = { outcome: "locked", status_of: "watchdog", child_pid: null } as const;

const STATE = stateWith(
  ended(1, [], { job: "backup" }),
  ended(2, [], { job: "nightly" }),
  started(3, [], { job: "nightly" }),
  ended(4, [], { job: "nightly", ...LOCKED }),
  ended(5, [], { job: "refused", ...LOCKED }),
  refusal(4),
);

describe("the history", () => {
  test("is newest first, of all jobs or of one, and no longer than asked", () => {
    const idsOf = (answer: ReturnType<typeof readHistory>) =>
      valueOf(answer).map((run) => run.runId);
    expect(idsOf(readHistory(STATE, { limit: 9 }))).toEqual([5, 4, 3, 2, 1].map(runId));
    expect(idsOf(readHistory(STATE, { limit: 2 }))).toEqual([5, 4].map(runId));
    expect(idsOf(readHistory(STATE, { target: "nightly", limit: 2 }))).toEqual([4, 3].map(runId));
    expect(idsOf(readHistory(STATE, { target: "none", limit: 2 }))).toEqual([]);
  });

  test("is that of a key, too, and of one run", () => {
    const gpu = { kind: "lane", name: 'g"pu' };
    const state = stateWith(
      ended(1, [{ ...gpu, generation: 1 }], { job: "train" }),
      ended(2, [{ kind: "lane", name: "gp", generation: 1 }], { job: "train" }),
      ended(3, [{ ...gpu, generation: 2 }], { job: "render" }),
      ended(4, [], { job: "train" }),
      ended(5, [lease("adopted", 1)], { job: "other" }),
    );
    const of = (target: string) =>
      valueOf(readHistory(state, { target, limit: 9 })).map((run) => run.runId);
    expect(of('lane:g"pu')).toEqual([3, 1].map(runId));
    expect(of("lane:g")).toEqual([]);
    expect(of("job:train")).toEqual([4, 2, 1].map(runId));
    expect(of("job:adopted")).toEqual([runId(5)]);
    expect(of(runId(2))).toEqual([runId(2)]);
    expect(valueOf(findRun(state, 'lane:g"pu'))?.runId).toBe(runId(3));
    expect(valueOf(findRun(state, "job:train"))?.runId).toBe(runId(4));
  });

  test("puts what came late through the spool where its start says", () => {
    const state = stateWith(ended(1, [], startedAt(1)), ended(3, [], startedAt(3)));
    addToSpool(placeOfJournal(state), [
      { id: "late", entry: ended(2, [], startedAt(2)) },
      { id: "later", entry: started(4, [], { ...startedAt(4), job: "other" }) },
      { id: "first", entry: ended(5, [], { ...startedAt(0), job: "other" }) },
    ]);
    const ids = valueOf(readHistory(state, { limit: 9 })).map((run) => run.runId);
    expect(ids).toEqual([4, 3, 2, 1, 5].map(runId));
    expect(valueOf(lastRunOf(state, "nightly"))?.runId).toBe(runId(3));
    expect(valueOf(lastRuns(state, 9)).map((run) => run.runId)).toEqual([4, 3].map(runId));
  });

  test("has its events beside it", () => {
    expect(valueOf(readEvents(STATE, { job: "nightly", limit: 9 }))).toMatchObject([
      { name: "refused", runId: runId(4), key: "job:nightly" },
    ]);
    expect(valueOf(readEvents(STATE, { job: "backup", limit: 9 }))).toEqual([]);
  });
});

describe("a run", () => {
  test("is found by its id, by the name of its job, and by the beginning of one id", () => {
    expect(valueOf(findRun(STATE, runId(1)))?.job).toBe("backup");
    expect(valueOf(findRun(STATE, "nightly"))?.runId).toBe(runId(3));
    expect(valueOf(findRun(STATE, runId(1).slice(0, -1)))).toBeUndefined(); // five begin so
    const alone = stateWith(ended(12));
    expect(valueOf(findRun(alone, runId(12).slice(0, 8)))?.runId).toBe(runId(12));
    expect(valueOf(findRun(alone, runId(12).slice(0, 7)))).toBeUndefined();
    expect(valueOf(findRun(alone, "%"))).toBeUndefined();
  });

  test("that was refused does not hide the one that runs", () => {
    expect(valueOf(lastRunOf(STATE, "nightly"))).toMatchObject({ runId: runId(3), outcome: null });
    expect(valueOf(lastRunOf(STATE, "refused"))).toMatchObject({ outcome: "locked" });
    expect(valueOf(lastRunOf(STATE, "none"))).toBeUndefined();
  });

  test("that still runs is listed, and only those", () => {
    expect(valueOf(runningRuns(STATE)).map((run) => run.runId)).toEqual([runId(3)]);
  });

  test("is listed once for each job, the last one", () => {
    const listed = valueOf(lastRuns(STATE, 9)).map((run) => [run.job, run.runId]);
    expect(listed).toEqual([
      ["refused", runId(5)],
      ["nightly", runId(3)],
      ["backup", runId(1)],
    ]);
    expect(valueOf(lastRuns(STATE, 1))).toHaveLength(1);
  });

  test("whose row somebody has changed by hand is still a row", () => {
    const state = stateWith(ended(1));
    inspect(state, "UPDATE runs SET record = '{', leases = '7', state = 'odd'");
    expect(valueOf(readHistory(state, { limit: 9 }))).toMatchObject([
      { runId: runId(1), state: "ended", leases: [], record: undefined },
    ]);
  });
});

describe("where there is no journal", () => {
  test("and entries wait that cannot be read in, that is told", () => {
    const state = scene.newState();
    symlinkSync(`${state}/elsewhere`, `${state}/journal.lock`);
    addToSpool(placeOfJournal(state), [{ id: "waits", entry: ended(1) }]);
    expect(readHistory(state, { limit: 9 })).toMatchObject({ kind: "missing", waiting: 1 });
  });

  test("that is the answer, and nothing is made", () => {
    const state = scene.newState();
    expect(readHistory(state, { limit: 9 })).toEqual({ kind: "missing" });
    expect(findRun(state, "x")).toEqual({ kind: "missing" });
    expect(readdirSync(state)).toEqual([]);
    expect(readHistory(`${state}/none`, { limit: 9 })).toEqual({ kind: "missing" });
  });

  test("a foreign database with other tables is an answer, too", () => {
    const state = stateWith(ended(1));
    inspect(state, "ALTER TABLE runs RENAME COLUMN job TO work");
    expect(readHistory(state, { limit: 9 })).toEqual({
      kind: "unreadable",
      reason: expect.stringContaining("no such column"),
    });
  });
});
