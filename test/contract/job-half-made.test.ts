/**
 * A journal that another process is just making: for a moment its file is empty and its -wal is
 * not, which is what a broken one looks like. A job waits for it, and still refuses one that stays
 * so.
 */
import { afterAll, expect, test } from "bun:test";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { recallJob } from "../../src/journal/job-queries.ts";
import { wakeAfter } from "../../src/os/timers.ts";
import { newJob, openJobStore, written } from "../support/job-scene.ts";
import { openJournalScene } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());
const MADE_AFTER_MS = 300;

/** @returns makes it whole again */
function halveJournal(state: string): () => void {
  const path = `${state}/journal.db`;
  renameSync(path, `${path}.whole`);
  writeFileSync(path, "", { mode: 0o600 });
  writeFileSync(`${path}-wal`, "not yet", { mode: 0o600 });
  return () => {
    rmSync(`${path}-wal`);
    renameSync(`${path}.whole`, path);
  };
}

async function makeState(): Promise<string> {
  const state = scene.newState();
  const { store } = openJobStore(state, 1);
  await written(store.begin(newJob(["one"])));
  store.close();
  return state;
}

test("is read, and written, as soon as it is whole", async () => {
  const state = await makeState();
  wakeAfter(MADE_AFTER_MS, halveJournal(state));
  expect((await recallJob(state, "nightly")).kind).toBe("known");
  const other = scene.newState();
  const first = openJobStore(other, 1).store;
  await written(first.begin(newJob(["one"])));
  first.close();
  wakeAfter(MADE_AFTER_MS, halveJournal(other));
  const { store } = openJobStore(other, 2);
  const { jobId } = newJob(["one"]);
  expect((await store.adopt(jobId)).kind).toBe("written");
  store.close();
}, 60_000);

test("that stays so is refused, and nothing is begun anew", async () => {
  const state = await makeState();
  const mend = halveJournal(state);
  expect((await recallJob(state, "nightly")).kind).not.toBe("none");
  expect((await recallJob(state, "nightly")).kind).not.toBe("known");
  mend();
}, 60_000);
