/**
 * A job on a disk that takes nothing, or nothing more in the middle of a transaction; what is on
 * the disk before a step is started; and the marker beside the journal, when it cannot be trusted.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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
  partsOf,
  recall,
  runJobProgram,
  running,
  statesOf,
  written,
  WRITTEN,
} from "../support/job-scene.ts";
import { inspect, openJournalScene } from "../support/journal-scene.ts";
import { rootTest } from "../support/scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const LIMIT_MS = 60_000;
/** The last line of the program. */
const ENDED = "ended";

describe("a marker", () => {
  test.each([
    ["that is empty", (path: string) => writeFileSync(path, "")],
    ["that is no marker", (path: string) => writeFileSync(path, '{"format":1}')],
    [
      "of another job",
      (path: string) =>
        writeFileSync(path, '{"format":1,"name":"other","job_id":"x","run_id":"y"}'),
    ],
    ["that is a directory", (path: string) => mkdirSync(path)],
    ["that is a FIFO", (path: string) => void Bun.spawnSync(["mkfifo", path])],
    ["that is a link to a good one", (path: string) => symlinkSync("../moved", path)],
    ["that is too long", (path: string) => writeFileSync(path, "x".repeat(100_000))],
  ])("%s counts as one of a lost job, and is read no further", async (_, plant) => {
    const state = await leaveJob(scene.newState());
    const path = `${state}/jobs/nightly`;
    renameSync(path, `${state}/moved`);
    plant(path);
    expect(await recall(state)).toMatchObject({
      kind: "lost",
      reason: expect.stringContaining(path),
    });
  });

  test("that is gone comes back with the run that goes on", async () => {
    const state = await leaveJob(scene.newState());
    rmSync(`${state}/jobs`, { recursive: true });
    expect(await recall(state)).toMatchObject({ kind: "known" });
    const { store } = openJobStore(state, 2);
    await written(store.adopt(JOB_ID));
    expect(readFileSync(`${state}/jobs/nightly`, "utf8")).toContain(JOB_ID);
    store.close();
  });

  test("of a newer job is not removed by the end of an older one", async () => {
    const state = scene.newState();
    const none = { leases: [], generation: 0 };
    const { store: old } = openJobStore(state, 1, none);
    await written(old.begin(newJob(["a"])));
    const { store } = openJobStore(state, 2, none);
    await written(store.begin(newJob(["a"], { jobId: jobIdOf(2) })));
    await written(old.finish({ state: "done", because: null, exitStatus: 0 }));
    expect(readFileSync(`${state}/jobs/nightly`, "utf8")).toContain(jobIdOf(2));
    old.close();
    store.close();
  });
});

describe("a disk that takes nothing", () => {
  test(
    "of more than no byte: the step is not started, and what was there is as it was",
    async () => {
      const state = scene.newState();
      (await beginJob(state, ["a", "b"])).close();
      const run = await runJobProgram([state, "blind", "2", "a", "b"], {
        under: ["prlimit", "--fsize=0"],
      });
      expect([run.status, run.stderr]).toEqual([0, ""]);
      expect(run.lines).toEqual([
        expect.stringContaining('"unwritten","because":"unusable"'),
        ENDED,
      ]);
      expect(statesOf(state)).toEqual(["a pending 0", "b pending 0"]);
      expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    },
    LIMIT_MS,
  );

  rootTest("in a directory that is mounted read-only: nothing is begun", async () => {
    const state = await leaveJob(scene.newState());
    const readOnly = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';
    const under = ["unshare", "-m", "sh", "-c", readOnly, state];
    for (const how of ["apart", "blind"]) {
      const run = await runJobProgram([state, how, "2", "a", "b"], { under });
      expect([run.status, run.stderr]).toEqual([0, ""]);
      const kind = how === "blind" ? "unwritten" : "unreadable";
      expect(run.lines).toEqual([expect.stringContaining(`{"kind":"${kind}"`), ENDED]);
    }
    expect(statesOf(state)).toEqual(["a done 1", "b running 1"]);
  });

  rootTest(
    "at each transaction of a job in turn: no row changes, and later it goes on",
    async () => {
      const state = scene.newState();
      await Bun.$`mount -t tmpfs -o size=4m,mode=700 watchdog-test ${state}`.quiet();
      try {
        const fill = (): void => writeFileSync(`${state}/fill`, new Uint8Array(3_500_000));
        const unfill = (): void => rmSync(`${state}/fill`);
        const { store } = openJobStore(state);
        const calls = [
          () => store.begin(newJob(["a", "b"])),
          () => store.startStep(running("a")),
          () => store.completeAndStart(done("a"), artifactsOf("a"), [running("b")]),
          () => store.completeStep(done("b"), artifactsOf("b")),
          () => store.finish({ state: "done", because: null, exitStatus: 0 }),
        ];
        const seen: unknown[] = [];
        for (const call of calls) {
          fill();
          const result = await Promise.resolve().then(call);
          expect(result).toMatchObject({
            kind: "unwritten",
            because: "unusable",
            reason: expect.stringContaining("nearly full"),
          });
          unfill();
          expect(seen.length === 0 ? [] : statesOf(state)).toEqual((seen.at(-1) ?? []) as string[]);
          expect(await call()).toEqual(WRITTEN);
          seen.push(statesOf(state));
        }
        expect(seen).toEqual([
          ["a pending 0", "b pending 0"],
          ["a running 1", "b pending 0"],
          ["a done 1", "b running 1"],
          ["a done 1", "b done 1"],
          ["a done 1", "b done 1"],
        ]);
        store.close();
      } finally {
        await Bun.$`umount --lazy ${state}`.quiet();
      }
    },
  );
});

describe("a disk that takes nothing more", () => {
  // The journal is there, and its -wal begins at 0: at each limit another transaction fails.
  test.each([8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48])(
    "after %d pages: every step that has run is known to, and the next run goes on",
    async (pages) => {
      const state = scene.newState();
      (await beginJob(state, ["a", "b", "c", "d"])).close();
      const words = [state, "apart", "2", "a", "b", "c", "d"];
      const under = ["prlimit", `--fsize=${pages * 4096}`];
      const run = await runJobProgram(words, { under });
      expect([run.status, run.stderr, run.lines.at(-1)]).toEqual([0, "", ENDED]);
      const ran = run.lines.filter((line) => line.startsWith("runs ")).map((line) => line.slice(5));
      const job = jobOf(state);
      expect(partsOf(job)).toEqual([]);
      const begun = job.record.steps.filter(({ attempt }) => attempt > 0).map(({ step }) => step);
      // Begun in the journal and not run: the answer was lost. Run and not begun: never.
      expect(ran.filter((step) => !begun.includes(step))).toEqual([]);
      const isDone = job.record.state === "done";
      expect(isDone).toBe(!run.lines.some((line) => line.includes("unwritten")));
      if (!isDone) expect((await runJobProgram(words)).lines.at(-1)).toBe(ENDED);
      expect(jobOf(state).record.state).toBe("done");
      expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    },
    LIMIT_MS,
  );
});

const hasStrace = Bun.which("strace") !== null;

/** What was asked of the kernel about the journal, the marker and the output, in order. */
async function traceOf(how: string): Promise<string[]> {
  const state = scene.newState();
  const trace = `${scene.newState()}/trace`;
  const calls = "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink";
  const under = ["strace", "-f", "-y", "-s", "16", "-e", calls, "-o", trace];
  const run = await runJobProgram([state, how, "1", "a", "b", "c"], { under });
  expect(run.lines).toEqual(["runs a", "runs b", "runs c", ENDED]);
  return readFileSync(trace, "utf8").split("\n").flatMap(eventOf);
}

function eventOf(line: string): string[] {
  const runs = /write\(1<.*"(runs \w)/.exec(line)?.[1];
  if (runs !== undefined) return [runs];
  if (/pwrite64\(\d+<.*journal\.db-wal>/.test(line)) return ["wal"];
  if (/(fdatasync|fsync)\(\d+<.*journal\.db-wal>/.test(line)) return ["sync"];
  if (/rename.*jobs\/nightly"/.test(line)) return ["marker"];
  if (/fsync\(\d+<.*\/jobs>/.test(line)) return ["marker synced"];
  return /unlink.*jobs\/nightly"/.test(line) ? ["marker gone"] : [];
}

test.skipIf(!hasStrace).each(["apart", "joined"])(
  "before a step is started (%s), its start and the marker are on the disk",
  async (how) => {
    const events = await traceOf(how);
    for (const step of ["a", "b", "c"]) {
      const before = events.slice(0, events.indexOf(`runs ${step}`));
      expect(before.lastIndexOf("sync")).toBeGreaterThan(before.lastIndexOf("wal"));
      expect(before.lastIndexOf("wal")).toBeGreaterThan(before.lastIndexOf("runs"));
      expect(before.indexOf("marker synced")).toBeGreaterThan(before.indexOf("marker"));
      expect(before.indexOf("marker")).toBeGreaterThan(0);
    }
    // Between two steps there is at least one commit, and its fsync.
    const between = events.slice(events.indexOf("runs a"), events.indexOf("runs b"));
    expect(between.filter((event) => event === "sync").length).toBe(how === "apart" ? 2 : 1);
    const after = events.slice(events.indexOf("runs c"));
    expect(after.indexOf("marker gone")).toBeGreaterThan(
      after.lastIndexOf("sync", after.indexOf("marker gone")),
    );
    expect(
      after.slice(0, after.indexOf("marker gone")).filter((one) => one === "sync").length,
    ).toBe(2);
  },
  LIMIT_MS,
);
