/**
 * A job where its journal is held, broken, removed or of another version: no step is started on its
 * account, no job is begun anew in silence, and nothing of somebody else's is written over.
 */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { writeFileSync } from "node:fs";
import { Journal } from "../../src/journal/journal.ts";
import { newestVersion } from "../../src/journal/schema.ts";
import {
  artifactsOf,
  beginJob,
  done,
  JOB_ID,
  jobIdOf,
  jobOf,
  leaveJob,
  newJob,
  openJobStore,
  pending,
  recall,
  runJobProgram,
  running,
  statesOf,
  written,
  WRITTEN,
} from "../support/job-scene.ts";
import { recallJob } from "../../src/journal/job-queries.ts";
import { ended, holdExclusively, inspect, openJournalScene } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const LIMIT_MS = 60_000;
const UNKNOWN = `journal.db does not know job ${JOB_ID}`;
const LOST = { kind: "lost", reason: `${UNKNOWN}, of which steps have run` } as const;

/** As `mv` does it: another file in the place of the first. */
function replace(state: string, content: Uint8Array | string): void {
  for (const part of ["-wal", "-shm"]) rmSync(`${state}/journal.db${part}`, { force: true });
  writeFileSync(`${state}/journal.db.new`, content);
  renameSync(`${state}/journal.db.new`, `${state}/journal.db`);
}

/** Without what SQLite makes while it is open. */
function filesOf(state: string): string[] {
  const names = readdirSync(state).toSorted();
  return names.filter((name) => !/^journal\.db-(wal|shm)$/.test(name));
}

function brokenNames(state: string): string[] {
  return readdirSync(state).filter((name) => name.includes("broken"));
}

/** What the supervisor of the next run does before its job asks. */
function recordOther(state: string): void {
  const journal = new Journal(state, () => undefined);
  journal.put(ended(8, [], { job: "other" }));
  journal.close(1000);
}

describe("while somebody else holds the database", () => {
  test("a step waits for it, within its limit, and is then written", async () => {
    const state = scene.newState();
    (await beginJob(state, ["a"])).close();
    const { store } = openJobStore(state, 2);
    await written(store.adopt(JOB_ID));
    const holder = await holdExclusively(state);
    let answered = false;
    const result = store.startStep(running("a")).then((found) => {
      answered = true;
      return found;
    });
    await Bun.sleep(200); // it goes on trying meanwhile
    expect(answered).toBe(false);
    await holder.release();
    expect(await result).toEqual(WRITTEN);
    expect(statesOf(state)).toEqual(["a running 1"]);
    store.close();
  });

  test("for longer than that, nothing is written and the store says so", async () => {
    const state = scene.newState();
    (await beginJob(state, ["a"])).close();
    const { store } = openJobStore(state, 2, { limitMs: 300 });
    await written(store.adopt(JOB_ID));
    const holder = await holdExclusively(state);
    expect(await store.startStep(running("a"))).toEqual({
      kind: "unwritten",
      because: "busy",
      reason: "somebody else holds journal.db",
    });
    await holder.release();
    expect(statesOf(state)).toEqual(["a pending 0"]);
    expect(existsSync(`${state}/spool`)).toBe(false);
    expect(await store.startStep(running("a"))).toEqual(WRITTEN);
    store.close();
  });

  test("and keeps readers out too, what is to be resumed is not known yet", async () => {
    const state = await leaveJob(scene.newState());
    const holder = new Database(`${state}/journal.db`, { readwrite: true });
    holder.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    expect(await recall(state)).toMatchObject({ kind: "unreadable" });
    const later = recallJob(state, "nightly", LIMIT_MS);
    holder.close(true);
    expect(await later).toMatchObject({ kind: "known", job: { record: { jobId: JOB_ID } } });
  });

  test(
    "for moments again and again, two jobs are both written as a whole",
    async () => {
      const state = scene.newState();
      const steps = Array.from({ length: 60 }, (_, index) => `s${index}`);
      const work = async (number: number, name: string): Promise<void> => {
        const { store } = openJobStore(state, number, { leases: [], generation: 0 });
        await written(store.begin(newJob(steps, { jobId: jobIdOf(number), name })));
        for (const step of steps) {
          await written(store.startStep(running(step)));
          await written(store.completeStep(done(step), artifactsOf(step)));
        }
        await written(store.finish({ state: "done", because: null, exitStatus: 0 }));
        store.close();
      };
      // One of them is another process, so that their transactions meet.
      const beside = runJobProgram([state, "joined", "3", ...steps]);
      await Promise.all([work(11, "one"), work(12, "two")]);
      expect((await beside).lines).toEqual([...steps.map((step) => `runs ${step}`), "ended"]);
      for (const name of ["one", "two", "nightly"]) {
        const { record, attempts } = jobOf(state, name);
        expect(record.steps.map(({ state }) => state)).toEqual(steps.map(() => "done"));
        expect([record.artifacts.length, attempts.length, record.state]).toEqual([120, 60, "done"]);
      }
      expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    },
    LIMIT_MS,
  );
});

describe("a journal that does not know the job", () => {
  test.each([
    ["removed", (state: string) => rmSync(`${state}/journal.db`)],
    [
      "removed, and begun anew by another run",
      (state: string) => {
        rmSync(`${state}/journal.db`);
        recordOther(state);
      },
    ],
    [
      "broken, and set aside by another run",
      (state: string) => {
        replace(state, "none".repeat(1000));
        recordOther(state);
        expect(brokenNames(state)).toHaveLength(1);
      },
    ],
    ["emptied", (state: string) => replace(state, "")],
    [
      "a copy of before the job",
      (state: string) => {
        const other = scene.newState();
        recordOther(other);
        replace(state, readFileSync(`${other}/journal.db`));
      },
    ],
  ])("(%s) never begins it anew in silence", async (_, spoil) => {
    const state = await leaveJob(scene.newState());
    spoil(state);
    expect(await recall(state)).toEqual(LOST);
    const { store, told } = openJobStore(state, 2);
    const before = filesOf(state);
    expect(await store.adopt(JOB_ID)).toMatchObject({ kind: "unwritten", because: "lost" });
    expect([filesOf(state), told]).toEqual([before, []]);
    // Only where a person says so.
    expect(await store.begin(newJob(["a", "b"], { jobId: jobIdOf(2) }))).toEqual(WRITTEN);
    store.close();
    expect(await recall(state)).toMatchObject({ job: { record: { jobId: jobIdOf(2) } } });
  });

  test("stops the job that had begun in it, before anything else is started", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a", "b"], ["a"]);
    rmSync(`${state}/journal.db`);
    const result = { kind: "unwritten", because: "lost", reason: UNKNOWN };
    expect(await store.startStep(running("b"))).toMatchObject(result);
    expect(existsSync(`${state}/journal.db`)).toBe(false);
    recordOther(state);
    expect(await store.startStep(running("b"))).toEqual(result as never);
    expect(inspect(state, "SELECT count(*) FROM steps")).toEqual([[0]]);
    expect(await recall(state)).toEqual(LOST);
    store.close();
  });

  test("stops it, and is told of by a marker, where that was removed with it", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a", "b"], ["a"]);
    for (const name of readdirSync(state)) rmSync(`${state}/${name}`, { recursive: true });
    expect(await store.startStep(running("b"))).toMatchObject({ because: "lost" });
    store.close();
    expect(await recall(state)).toEqual(LOST);
    // Of somebody who has begun anew since, nothing is written over.
    const other = openJobStore(state, 2).store;
    await written(other.begin(newJob(["a"], { jobId: jobIdOf(2) })));
    expect(await store.startStep(running("b"))).toMatchObject({ kind: "fenced" });
    store.close();
    other.close();
    expect(await recall(state)).toMatchObject({ job: { record: { jobId: jobIdOf(2) } } });
  });

  test("of what its last run has done is no better: a copy that was put back", async () => {
    const state = await leaveJob(scene.newState());
    inspect(state, "PRAGMA wal_checkpoint(TRUNCATE)");
    const copy = readFileSync(`${state}/journal.db`);
    const { store } = openJobStore(state, 2);
    await written(store.adopt(JOB_ID, [{ record: pending("b", { attempt: 1 }) }]));
    await written(store.startStep(running("b", 2)));
    store.close();
    expect(await recall(state)).toMatchObject({ kind: "known" });
    replace(state, copy);
    const reason = `journal.db is a copy from before the last run of job ${JOB_ID} `;
    expect(await recall(state)).toEqual({
      kind: "lost",
      reason: `${reason}(it knows generation 1 of 2)`,
    });
  });

  test("begins a new one where no step of the old one has run, or all of them have", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a"], ["a"]);
    await written(store.finish({ state: "done", because: null, exitStatus: 0 }));
    store.close();
    rmSync(`${state}/journal.db`);
    expect(await recall(state)).toEqual({ kind: "none" });
    expect(await recall(scene.newState())).toEqual({ kind: "none" });
    expect(await recall(`${scene.newState()}/none`)).toEqual({ kind: "none" });
  });

  test("of a job that has failed is missed as well", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a"], ["a"]);
    await written(store.finish({ state: "failed", because: "exited", exitStatus: 3 }));
    store.close();
    expect(await recall(state)).toMatchObject({ kind: "known", job: { exitStatus: 3 } });
    rmSync(`${state}/journal.db`);
    expect(await recall(state)).toEqual(LOST);
  });
});

describe("a broken database", () => {
  test.each([
    ["text", "no database at all".repeat(400)],
    ["zero bytes", new Uint8Array(16_384)],
  ])("(%s) is left where it is, and no job is known or begun", async (_, content) => {
    const state = await leaveJob(scene.newState());
    replace(state, content);
    expect(await recall(state)).toMatchObject({ kind: "unreadable" });
    const { store, told } = openJobStore(state, 2);
    const corrupt = { kind: "unwritten", because: "corrupt" };
    expect(await store.adopt(JOB_ID)).toMatchObject(corrupt);
    expect(await store.begin(newJob(["a"], { jobId: jobIdOf(2) }))).toMatchObject(corrupt);
    store.close();
    expect(readFileSync(`${state}/journal.db`)).toEqual(Buffer.from(content));
    expect([brokenNames(state), told]).toEqual([[], []]);
    expect(readFileSync(`${state}/jobs/nightly`, "utf8")).toContain(JOB_ID);
  });
});

describe("a database of another version", () => {
  test.each([2001, 7])("%d is read, and not altered by a byte", async (version) => {
    const state = await leaveJob(scene.newState());
    inspect(state, `PRAGMA user_version = ${version}`);
    const before = readFileSync(`${state}/journal.db`);
    expect(await recall(state)).toMatchObject({ kind: "known" });
    const { store } = openJobStore(state, 2);
    expect(await store.adopt(JOB_ID)).toMatchObject({ kind: "unwritten", because: "newer" });
    store.close();
    expect(readFileSync(`${state}/journal.db`)).toEqual(before);
  });

  test("of before the jobs is read as one without, and becomes one with them", async () => {
    const state = scene.newState();
    recordOther(state);
    for (const table of ["jobs", "steps", "artifacts", "step_attempts"]) {
      inspect(state, `DROP TABLE ${table}`);
    }
    inspect(state, "DELETE FROM schema WHERE version >= 1006");
    inspect(state, "PRAGMA user_version = 1005");
    const before = readFileSync(`${state}/journal.db`);
    expect(await recall(state)).toEqual({ kind: "none" });
    expect(readFileSync(`${state}/journal.db`)).toEqual(before);
    (await beginJob(state, ["a"], ["a"])).close();
    expect(statesOf(state)).toEqual(["a done 1"]);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[newestVersion()]]);
    expect(inspect(state, "SELECT job FROM runs")).toEqual([["other"]]);
  });

  test("of a newer minor is written by column name; a strange state runs nothing", async () => {
    const state = await leaveJob(scene.newState());
    inspect(state, "ALTER TABLE steps ADD COLUMN later TEXT NOT NULL DEFAULT 'x'");
    inspect(state, "UPDATE steps SET later = 'y', state = 'resting' WHERE step = 'b'");
    inspect(state, "PRAGMA user_version = 1042");
    expect(statesOf(state)).toEqual(["a done 1", "b unknown 1"]);
    const { store } = openJobStore(state, 2);
    await written(store.adopt(JOB_ID));
    expect(await store.startStep(running("b", 2))).toMatchObject({ because: "contradiction" });
    await written(store.begin(newJob(["a", "b"], { jobId: jobIdOf(2) })));
    store.close();
    expect(inspect(state, "SELECT step, later FROM steps ORDER BY job_seq, step")).toEqual([
      ["a", "x"],
      ["b", "y"],
      ["a", "x"],
      ["b", "x"],
    ]);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[1042]]);
  });
});
