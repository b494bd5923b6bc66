/** What is told of jobs: in the order of their files, and quickly where there are many steps. */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { readJob, readLastDone, readNewestJob } from "../../src/journal/job-queries.ts";
import type { StepRecord } from "../../src/core/step-record.ts";
import type { JournalAnswer } from "../../src/journal/queries.ts";
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
  running,
  written,
} from "../support/job-scene.ts";
import { inspect, openJournalScene } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

/** As `newJob` makes it. */
const JOB = { name: "nightly", directory: "/srv" };

function valueOf<T>(answer: JournalAnswer<T>): T {
  if (answer.kind !== "read") throw new Error(`found ${JSON.stringify(answer)}`);
  return answer.value;
}

/** Job NUMBER, all of whose steps are done as `record` says, or as they are. */
async function addJob(
  state: string,
  number: number,
  steps: readonly string[],
  end: "done" | "failed" = "done",
): Promise<void> {
  const { store } = openJobStore(state, number);
  await written(store.begin(newJob(steps, { jobId: jobIdOf(number) })));
  for (const step of steps) {
    await written(store.startStep(running(step)));
    await written(store.completeStep(done(step), artifactsOf(step)));
  }
  await written(store.finish({ state: end, because: null, exitStatus: end === "done" ? 0 : 3 }));
  store.close();
}

describe("the newest job of a name", () => {
  test("is the last that was begun, whatever the clock says, in its file's order", async () => {
    const state = scene.newState();
    await addJob(state, 5, ["z", "a", "m"]);
    const { store } = openJobStore(state, 6);
    const early = { jobId: jobIdOf(2), createdAt: 1 };
    await written(store.begin(newJob(["z", "m", "a"], early)));
    await written(store.startStep(running("m")));
    await written(store.endStep(failed("m")));
    await written(store.startStep(running("m", 2)));
    store.close();
    const { record, attempts } = jobOf(state);
    expect([record.jobId, record.steps.map(({ step }) => step)]).toEqual([
      jobIdOf(2),
      ["z", "m", "a"],
    ]);
    expect(attempts.map(({ step, attempt, state: is }) => [step, attempt, is])).toEqual([
      ["m", 1, "failed"],
      ["m", 2, "running"],
    ]);
    expect(valueOf(readJob(state, jobIdOf(5)))?.record.artifacts.map(({ path }) => path)).toEqual([
      "out/z",
      "out/z.d",
      "out/a",
      "out/a.d",
      "out/m",
      "out/m.d",
    ]);
    expect(valueOf(readJob(state, jobIdOf(7)))).toBeUndefined();
    expect(valueOf(readNewestJob(state, "other"))).toBeUndefined();
  });

  test("is asked for without making or changing anything", async () => {
    const state = scene.newState();
    for (const answer of [
      readNewestJob(state, "nightly"),
      readJob(state, JOB_ID),
      readLastDone(state, JOB, ["a"]),
    ]) {
      expect(answer).toEqual({ kind: "missing" });
    }
    expect(readdirSync(state)).toEqual([]);
    (await beginJob(state, ["a"])).close();
    const rows = inspect(state, "SELECT * FROM jobs");
    jobOf(state);
    expect(inspect(state, "SELECT * FROM jobs")).toEqual(rows);
  });
});

describe("the last time that a step was done", () => {
  test("is that of the newest job in which it was, and comes with its artifacts", async () => {
    const state = scene.newState();
    await addJob(state, 1, ["a", "b", "c"]);
    await addJob(state, 2, ["a", "b"], "failed");
    const { store } = openJobStore(state, 3);
    await written(store.begin(newJob(["a", "b", "c", "d"], { jobId: jobIdOf(3) })));
    const unchanged = pending("a", { state: "done", because: "unchanged", inputPrint: "f" });
    const artifacts = artifactsOf("a").slice(0, 1);
    await written(store.changeSteps([{ record: unchanged, artifacts }]));
    await written(store.startStep(running("b")));
    await written(store.endStep(failed("b")));
    store.close();
    const found = valueOf(readLastDone(state, JOB, ["a", "b", "c", "d", "none"]));
    expect([...found].map(([step, { jobId }]) => [step, jobId])).toEqual([
      ["a", jobIdOf(3)],
      ["c", jobIdOf(1)],
    ]);
    expect(found.get("a")).toMatchObject({ record: { because: "unchanged" }, artifacts });
    expect(found.get("c")).toEqual({
      jobId: jobIdOf(1),
      record: { ...done("c"), generation: 1 },
      artifacts: artifactsOf("c"),
    });
    for (const other of [{ name: "other" }, { directory: "/srv/copy" }]) {
      expect(valueOf(readLastDone(state, { ...JOB, ...other }, ["a"]))).toEqual(new Map());
    }
  });

  test("is not that of a step that was sent back since", async () => {
    const state = scene.newState();
    await addJob(state, 1, ["a"]);
    const store = openJobStore(state, 2).store;
    await written(store.begin(newJob(["a"], { jobId: jobIdOf(2) })));
    await written(store.startStep(running("a")));
    await written(store.completeStep(done("a"), []));
    await written(store.changeSteps([{ record: pending("a", { attempt: 1 }) }]));
    store.close();
    expect(valueOf(readLastDone(state, JOB, ["a"])).has("a")).toBe(false);
  });

  test("is none where a newer job has tried it, and was not told that it is done", async () => {
    const state = scene.newState();
    const since = {
      running: pending("running"),
      interrupted: pending("interrupted", { state: "interrupted", because: "stopped" }),
      failed: failed("failed"),
      refused: pending("refused", { state: "failed", because: "accepted-fail" }),
      unknown: pending("unknown", { state: "unknown", because: "no-settle" }),
      again: pending("again", { because: "accepted-retry" }),
      redone: pending("redone", { because: "asked" }),
      begun: pending("begun", { attempt: 1, because: "settled-not-happened" }),
      // Nothing has become of these.
      left: pending("left"),
      back: pending("back", { because: "needs-changed" }),
      // It has left the file.
      gone: undefined,
    };
    const names = Object.keys(since);
    await addJob(state, 1, names);
    const steps = Object.values(since).flatMap((record) => (record === undefined ? [] : [record]));
    const begin = async (number: number, records: readonly StepRecord[]) => {
      const { store } = openJobStore(state, number);
      const changes = records.map((record) => ({ record }));
      await written(store.begin(newJob([], { jobId: jobIdOf(number), steps: changes })));
      return store;
    };
    const second = await begin(2, steps);
    await written(second.startStep(running("running")));
    second.close();
    const found = () => [...valueOf(readLastDone(state, JOB, names)).keys()].toSorted();
    expect(found()).toEqual(["back", "gone", "left"]);
    // A still newer job that has not come to them takes nothing of that back.
    (
      await begin(
        3,
        names.map((name) => pending(name)),
      )
    ).close();
    expect(found()).toEqual(["back", "gone", "left"]);
    await addJob(state, 4, ["failed"]);
    expect(found()).toEqual(["back", "failed", "gone", "left"]);
  });
});

/** CPU of this process, so that others on the machine do not count. */
function cpuMs(act: () => unknown): number {
  const before = process.cpuUsage();
  act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

test("ten thousand steps are written, and found again, in a moment", async () => {
  const state = scene.newState();
  const names = Array.from({ length: 10_000 }, (_, index) => `step-${index}`);
  const steps = names.map((step) => ({
    record: done(step),
    artifacts: artifactsOf(step).slice(0, 1),
  }));
  for (const number of [1, 2, 3]) {
    const { store } = openJobStore(state, number);
    await written(store.begin(newJob([], { jobId: jobIdOf(number), steps })));
    await written(store.finish({ state: "done", because: null, exitStatus: 0 }));
    store.close();
  }
  const job = () => readNewestJob(state, "nightly");
  const last = () => readLastDone(state, JOB, names);
  expect([valueOf(job())?.record.steps.length, valueOf(last()).size]).toEqual([10_000, 10_000]);
  // 0.03 and 0.06 s; a query that looks at each row of each job again for each step takes minutes.
  expect(Math.min(...[1, 2, 3].map(() => cpuMs(job)))).toBeLessThan(200);
  expect(Math.min(...[1, 2, 3].map(() => cpuMs(last)))).toBeLessThan(200);
});
