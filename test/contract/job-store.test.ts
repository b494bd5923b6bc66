/**
 * What one run writes about its job: the whole of it or nothing, as the run that has the job, and
 * never a step over what was done. Real files, real locks of SQLite.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { Journal } from "../../src/journal/journal.ts";
import { addToSpool } from "../../src/journal/spool.ts";
import { listSpool } from "../../src/journal/spool.ts";
import { placeOfJournal } from "../../src/journal/places.ts";
import {
  artifactsOf,
  beginJob,
  done,
  failed,
  JOB_ID,
  jobIdOf,
  jobOf,
  newJob,
  openJobStore,
  pending,
  recall,
  running,
  statesOf,
  written,
  WRITTEN,
} from "../support/job-scene.ts";
import {
  ended,
  inspect,
  lease,
  openJournalScene,
  runId,
  started,
} from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const TABLES = ["jobs", "steps", "artifacts", "step_attempts", "leases"];

/** Every row of a job, and what the journal knows of generations. */
function rowsOf(state: string): unknown[][][] {
  return TABLES.map((table) => inspect(state, `SELECT * FROM ${table}`));
}

describe("a job", () => {
  test("is in the journal from its beginning to its end, with all that it left", async () => {
    const state = scene.newState();
    const { store, told } = openJobStore(state, 4);
    expect(await store.begin(newJob(["a", "b"]))).toEqual(WRITTEN);
    expect(jobOf(state).record).toMatchObject({
      jobId: JOB_ID,
      name: "nightly",
      file: "/srv/nightly.yaml",
      state: "running",
      runId: runId(4),
      generation: 4,
      endedAt: null,
    });
    expect(jobOf(state).sideEffects).toEqual(
      new Map([
        ["a", "none"],
        ["b", "none"],
      ]),
    );
    expect(await store.startStep(running("a"))).toEqual(WRITTEN);
    expect(statesOf(state)).toEqual(["a running 1", "b pending 0"]);
    expect(await store.completeStep(done("a"), artifactsOf("a"))).toEqual(WRITTEN);
    expect(await store.startStep(running("b"))).toEqual(WRITTEN);
    expect(await store.endStep(failed("b"))).toEqual(WRITTEN);
    expect(await store.startStep(running("b", 2))).toEqual(WRITTEN);
    const detail = "exit status 0";
    expect(await store.completeStep({ ...done("b", 2), detail }, [])).toEqual(WRITTEN);
    expect(await store.finish({ state: "done", because: null, exitStatus: 0 })).toEqual(WRITTEN);
    store.close();
    const { record, attempts, exitStatus } = jobOf(state);
    expect(record.steps).toEqual([
      { ...done("a"), generation: 4 },
      { ...done("b", 2), generation: 4, detail },
    ]);
    expect(record.artifacts).toEqual(artifactsOf("a"));
    expect(
      attempts.map(({ step, attempt, state: is, exitCode }) => [step, attempt, is, exitCode]),
    ).toEqual([
      ["a", 1, "done", 0],
      ["b", 1, "failed", 3],
      ["b", 2, "done", 0],
    ]);
    expect([record.state, exitStatus, told]).toEqual(["done", 0, []]);
    expect(record.endedAt).toBeNumber();
  });

  test("leaves the files of the journal and its marker behind, for nobody else", async () => {
    const state = scene.newState();
    (await beginJob(state, ["a"])).close();
    expect(readdirSync(state).toSorted()).toEqual(["jobs", "journal.db", "journal.lock"]);
    for (const name of ["journal.db", "jobs/nightly"]) {
      expect([name, statSync(`${state}/${name}`).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect(statSync(`${state}/jobs`).mode & 0o777).toBe(0o700);
  });

  test("is taken over by the next run, which alone writes from then on", async () => {
    const state = scene.newState();
    const first = await beginJob(state, ["a", "b"], ["a"]);
    await written(first.startStep(running("b")));
    const { store } = openJobStore(state, 2);
    const interrupted = { state: "interrupted", because: "watchdog-killed", attempt: 1 } as const;
    expect(await store.adopt(JOB_ID, [{ record: pending("b", interrupted) }])).toEqual(WRITTEN);
    expect(statesOf(state)).toEqual(["a done 1", "b interrupted 1"]);
    expect(jobOf(state).attempts).toMatchObject([
      { step: "a", state: "done" },
      { step: "b", state: "interrupted", because: "watchdog-killed", endedAt: null },
    ]);
    expect(jobOf(state).record.artifacts).toEqual(artifactsOf("a"));
    const rows = rowsOf(state);
    expect(await first.completeStep(done("b"), artifactsOf("b"))).toMatchObject({ kind: "fenced" });
    expect(rowsOf(state)).toEqual(rows);
    await written(store.startStep(running("b", 2)));
    await written(store.completeStep(done("b", 2), artifactsOf("b")));
    await written(store.finish({ state: "done", because: null, exitStatus: 0 }));
    expect(jobOf(state).record).toMatchObject({ runId: runId(2), generation: 2, state: "done" });
    first.close();
    store.close();
  });

  test("without a lease belongs to the last run that took it over", async () => {
    const state = scene.newState();
    const none = { leases: [], generation: 0 };
    const { store: first } = openJobStore(state, 1, none);
    await written(first.begin(newJob(["a"])));
    const { store } = openJobStore(state, 2, none);
    await written(store.adopt(JOB_ID));
    const rows = rowsOf(state);
    expect(await first.startStep(running("a"))).toEqual({
      kind: "fenced",
      reason: `job ${JOB_ID} was taken over by run ${runId(2)}`,
    });
    expect(await first.finish({ state: "done", because: null, exitStatus: 0 })).toMatchObject({
      kind: "fenced",
    });
    expect(rowsOf(state)).toEqual(rows);
    expect(existsSync(`${state}/jobs/nightly`)).toBe(true);
    expect(await store.startStep(running("a"))).toEqual(WRITTEN);
  });
});

describe("steps that do not run", () => {
  test("are changed all at once, and lose their artifacts unless they are done", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a", "b", "c"], ["a", "b"]);
    const sentBack = { record: pending("a", { because: "artifact-changed", attempt: 1 }) };
    const unchanged = {
      record: pending("c", { state: "done", because: "unchanged" }),
      artifacts: artifactsOf("c").slice(0, 1),
    };
    expect(await store.changeSteps([sentBack, unchanged])).toEqual(WRITTEN);
    expect(statesOf(state)).toEqual(["a pending 1", "b done 1", "c done 0"]);
    const paths = jobOf(state).record.artifacts.map(({ path }) => path);
    expect(paths).toEqual(["out/b", "out/b.d", "out/c"]);
    store.close();
  });

  test("follow their file: new ones come, gone ones go, others get another place", async () => {
    const state = scene.newState();
    (await beginJob(state, ["a", "b", "c"], ["a", "b"])).close();
    const { store } = openJobStore(state, 2);
    const changes = [
      { record: pending("new"), position: 0, sideEffects: "unsafe" as const },
      { record: done("a"), position: 1 },
      { record: pending("last") },
    ];
    expect(await store.adopt(JOB_ID, changes, ["b"])).toEqual(WRITTEN);
    expect(statesOf(state)).toEqual(["new pending 0", "a done 1", "c pending 0", "last pending 0"]);
    expect(jobOf(state).sideEffects.get("new")).toBe("unsafe");
    expect(jobOf(state).record.artifacts).toEqual(artifactsOf("a"));
    await written(store.changeSteps([{ record: pending("b") }]));
    expect(await store.startStep(running("b"))).toEqual(WRITTEN);
    store.close();
  });

  test("are not changed in part", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a", "b"], ["a"]);
    const rows = rowsOf(state);
    const good = { record: pending("a", { because: "asked", attempt: 1 }) };
    for (const bad of [
      { record: running("b") },
      { record: pending("b"), artifacts: artifactsOf("b") },
    ]) {
      expect(await store.changeSteps([good, bad])).toMatchObject({
        kind: "unwritten",
        because: "contradiction",
      });
      expect(rowsOf(state)).toEqual(rows);
    }
    expect(await store.changeSteps([good])).toEqual(WRITTEN);
    store.close();
  });
});

describe("a mistake of the runner writes nothing:", () => {
  test.each([
    ["a step that is done is not started", running("a", 2)],
    ["a step that is unknown is not started", running("u", 2)],
    ["a step that runs is not started", running("r", 2)],
    ["an attempt that was is not started again", running("f", 1)],
    ["a step that is not there is not started", running("x", 1)],
    ["a step is not started in another state", { ...running("p"), state: "done" as const }],
  ])("%s", async (_, record) => {
    const state = await withSteps();
    const { store } = openJobStore(state, 2);
    await written(store.adopt(JOB_ID));
    await written(store.startStep(running("r")));
    const rows = rowsOf(state);
    expect(await store.startStep(record)).toMatchObject({ because: "contradiction" });
    const both = store.completeAndStart(done("r"), artifactsOf("r"), [record]);
    expect(await both).toMatchObject({ kind: "unwritten", because: "contradiction" });
    expect(rowsOf(state)).toEqual(rows);
    expect(await store.startStep(running("f", 2))).toEqual(WRITTEN);
    expect(await store.startStep(running("p"))).toEqual(WRITTEN);
    store.close();
  });

  test.each([
    ["a step that does not run is not completed", done("p")],
    ["another attempt is not completed", done("r", 2)],
    ["a step is not completed as a failed one", failed("r")],
  ])("%s", async (_, record) => {
    const state = await withSteps();
    const { store } = openJobStore(state, 2);
    await written(store.adopt(JOB_ID));
    await written(store.startStep(running("r")));
    const rows = rowsOf(state);
    const result = await store.completeStep(record, artifactsOf(record.step));
    expect(result).toMatchObject({ kind: "unwritten", because: "contradiction" });
    expect(await store.endStep(done("r"))).toMatchObject({ because: "contradiction" });
    expect(rowsOf(state)).toEqual(rows);
    expect(await store.completeStep(done("r"), artifactsOf("r"))).toEqual(WRITTEN);
    store.close();
  });

  /** Steps that are done, unknown, failed, and two that have not begun, left by run 1. */
  async function withSteps(): Promise<string> {
    const state = scene.newState();
    const store = await beginJob(state, ["a", "u", "f", "p", "r"], ["a"]);
    await written(store.startStep(running("u")));
    await written(store.endStep({ ...failed("u"), state: "unknown", because: "no-settle" }));
    await written(store.startStep(running("f")));
    await written(store.endStep(failed("f")));
    store.close();
    return state;
  }

  test("a job that is done, or was left for a newer one, is not taken over", async () => {
    const state = scene.newState();
    (await beginJob(state, ["a"])).close();
    const { store } = openJobStore(state, 2);
    await written(store.begin(newJob(["a"], { jobId: jobIdOf(2) })));
    const { store: third } = openJobStore(state, 3);
    const left = `job ${JOB_ID} was left: a newer one of that name was begun`;
    expect(await third.adopt(JOB_ID)).toMatchObject({ because: "contradiction", reason: left });
    await written(store.finish({ state: "done", because: null, exitStatus: 0 }));
    const rows = rowsOf(state);
    expect(await third.adopt(jobIdOf(2))).toMatchObject({ because: "contradiction" });
    expect(await third.begin(newJob(["a"]))).toMatchObject({ because: "contradiction" });
    expect(rowsOf(state)).toEqual(rows);
    store.close();
    third.close();
  });
});

describe("a generation that the journal knows", () => {
  /** Run 2 was granted the key, as its supervisor has written it down. */
  function advance(state: string, generation: number): void {
    const journal = new Journal(state, () => undefined);
    journal.put(started(2, [lease("nightly", generation)]));
    journal.close(1000);
  }

  test.each([
    ["startStep", (store) => store.startStep(running("b"))],
    ["completeStep", (store) => store.completeStep(done("r"), artifactsOf("r"))],
    [
      "completeAndStart",
      (store) => store.completeAndStart(done("r"), artifactsOf("r"), [running("b")]),
    ],
    ["endStep", (store) => store.endStep(failed("r"))],
    ["changeSteps", (store) => store.changeSteps([{ record: pending("a", { attempt: 1 }) }])],
    ["finish", (store) => store.finish({ state: "done", because: null, exitStatus: 0 })],
    ["adopt", (store) => store.adopt(JOB_ID)],
    ["begin", (store) => store.begin(newJob(["z"], { jobId: jobIdOf(9) }))],
  ] satisfies [string, (store: Awaited<ReturnType<typeof beginJob>>) => Promise<unknown>][])(
    "and is larger lets %s change no row; one that is not lets it write",
    async (_, act) => {
      const state = scene.newState();
      const store = await beginJob(state, ["a", "b", "r"], ["a"]);
      await written(store.startStep(running("r")));
      advance(state, 2);
      const rows = rowsOf(state);
      const marker = readFileSync(`${state}/jobs/nightly`, "utf8");
      expect(await act(store)).toEqual({
        kind: "fenced",
        reason: `job:nightly has generation 2 of run ${runId(2)}, found an entry of generation 1`,
      });
      expect(rowsOf(state)).toEqual(rows);
      expect(readFileSync(`${state}/jobs/nightly`, "utf8")).toBe(marker);
      store.close();

      const other = scene.newState();
      const free = await beginJob(other, ["a", "b", "r"], ["a"]);
      await written(free.startStep(running("r")));
      expect(await act(free)).toEqual(WRITTEN);
      free.close();
    },
  );

  test("and waits in the spool lets nothing be written, and is left there", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a"]);
    const place = placeOfJournal(state);
    const spool = (number: number): void =>
      void addToSpool(place, [
        { id: crypto.randomUUID(), entry: started(number, [lease("nightly", number)]) },
      ]);
    spool(1);
    expect(await store.startStep(running("a"))).toEqual(WRITTEN);
    spool(2);
    const rows = rowsOf(state);
    expect(await store.completeStep(done("a"), [])).toMatchObject({
      kind: "fenced",
      reason: expect.stringContaining("waits in the spool"),
    });
    expect(rowsOf(state)).toEqual(rows);
    expect(listSpool(place)).toHaveLength(2);
    store.close();
  });

  test("of any key of the run counts, and is raised where it is missing or smaller", async () => {
    const state = scene.newState();
    const leases = [lease("nightly", 7), { kind: "lane", name: "db", generation: 3 }];
    const { store } = openJobStore(state, 1, { leases, generation: 7 });
    await written(store.begin(newJob(["a"])));
    const known = "SELECT kind, name, generation, run_id FROM leases ORDER BY kind";
    expect(inspect(state, known)).toEqual([
      ["job", "nightly", 7, runId(1)],
      ["lane", "db", 3, runId(1)],
    ]);
    inspect(state, "UPDATE leases SET generation = 4 WHERE kind = 'lane'");
    expect(await store.startStep(running("a"))).toMatchObject({ kind: "fenced" });
    store.close();
  });

  test("stays with a job whose run was written down as ended", async () => {
    const state = scene.newState();
    const store = await beginJob(state, ["a"]);
    const journal = new Journal(state, () => undefined);
    journal.put(ended(2, [lease("nightly", 2)]));
    journal.close(1000);
    expect(await store.startStep(running("a"))).toMatchObject({ kind: "fenced" });
    store.close();
  });
});

test("nothing is written before a job was begun or taken over", async () => {
  const { store } = openJobStore(scene.newState());
  expect(() => store.startStep(running("a"))).toThrow("begun or taken over");
  expect(store.jobId).toBeUndefined();
  await written(store.begin(newJob(["a"])));
  expect(store.jobId).toBe(JOB_ID);
  store.close();
});

test("secrets of the environment do not go with what is told about a step", async () => {
  const state = scene.newState();
  const store = await beginJob(state, ["a"]);
  await written(store.startStep(running("a")));
  const detail = "exit status 3 of curl --header 'Authorization: Bearer abcdefghijklmnop1234'";
  await written(store.endStep({ ...failed("a"), detail }));
  expect(jobOf(state).record.steps[0]?.detail).not.toContain("abcdefghijklmnop1234");
  store.close();
});

test("a name that is no file name has a marker all the same", async () => {
  const state = scene.newState();
  const name = "../../nightly of \u00fc/..";
  const { store } = openJobStore(state, 1, { leases: [], generation: 0 });
  await written(store.begin(newJob(["a"], { name })));
  expect(readdirSync(`${state}/jobs`)).toHaveLength(1);
  expect(await recall(state, name)).toMatchObject({ kind: "known" });
  await written(store.finish({ state: "done", because: null, exitStatus: 0 }));
  expect(readdirSync(`${state}/jobs`)).toEqual([]);
  store.close();
});
