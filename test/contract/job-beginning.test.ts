/**
 * What earlier jobs of a name have done cannot be read: then nobody knows which steps are
 * unchanged, and no job is begun.
 */
import { afterAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { closeSync, openSync, writeSync } from "node:fs";
import { NOTHING_ASKED } from "../../src/core/job-asked.ts";
import { ArtifactHandle } from "../../src/job/artifact-handle.ts";
import { decideBeginning } from "../../src/job/begin-job.ts";
import { recallJob } from "../../src/journal/job-queries.ts";
import { beginJob, written } from "../support/job-scene.ts";
import { jobOf, step } from "../support/job-specs.ts";
import { openJournalScene } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

/** A job of one step that was done. */
async function makeDone(): Promise<string> {
  const state = scene.newState();
  const store = await beginJob(state, ["a"], ["a"]);
  await written(store.finish({ state: "done", because: "all-done", exitStatus: 0 }));
  store.close();
  return state;
}

/** Of all that is read of a job, only the search among earlier ones goes by this index. */
function breakIndex(state: string): void {
  const path = `${state}/journal.db`;
  const db = new Database(path);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'steps_done'";
  const root = db.query<{ rootpage: number }, []>(sql).get()?.rootpage ?? 0;
  const size = db.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
  db.close(true);
  expect([root > 1, size >= 512]).toEqual([true, true]);
  const fd = openSync(path, "r+");
  writeSync(fd, new Uint8Array(size), 0, size, (root - 1) * size);
  closeSync(fd);
}

async function decide(state: string) {
  const looks = { artifacts: new ArtifactHandle(new URL("file:///none")), caller: {} };
  const order = { spec: jobOf([step("a")]), asked: NOTHING_ASKED };
  const run = { runId: "run-5", generation: 5 };
  return decideBeginning({ order, stateDirectory: state, run, looks });
}

test("nothing is decided, and the reason is told", async () => {
  const state = await makeDone();
  const whole = await decide(state);
  expect(whole).toMatchObject({ kind: "decided", decision: { kind: "begin" } });
  breakIndex(state);
  // The job itself can be read: it is the others that cannot.
  expect((await recallJob(state, "nightly", 0)).kind).toBe("known");
  expect(await decide(state)).toEqual({ kind: "unreadable", reason: expect.any(String) });
});
