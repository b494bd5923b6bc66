/**
 * What the runner of a job must not do, on the compiled binary: each of these was done by a runner
 * that was broken on purpose, and seen by nobody.
 */
import { describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { harmless, makeJob, unsafe } from "../support/job-place.ts";
import { query } from "../support/own-state.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

test(
  "a step is not tried more often than its retries allow",
  async () => {
    const flaky = 'echo "$WATCHDOG_ATTEMPT" >>log; [ "$WATCHDOG_ATTEMPT" = 6 ] || exit 4';
    const job = makeJob(scene, "bounded", {
      flaky: harmless(flaky, { retries: 2, backoff: "10ms" }),
    });
    expect((await job.job("run")).status).toBe(4);
    expect([job.lines("log"), job.steps()]).toEqual([["1", "2", "3"], ["flaky failed exited 3"]]);
  },
  LIMIT_MS,
);

test(
  "what needs a step is not begun when its settle says that it has not happened",
  async () => {
    const job = makeJob(scene, "settled", {
      pay: unsafe("echo pay >>log; kill -9 $$", { settle: "exit 1" }),
      after: harmless("echo after >>log", { needs: ["pay"] }),
    });
    // The status of the command that has died of KILL, as a shell shows it.
    expect((await job.job("run")).status).toBe(137);
    expect([job.lines("log"), job.steps()]).toEqual([
      ["pay"],
      ["pay failed settled-not-happened 1", "after pending - 0"],
    ]);
    // Nobody need say so again: the next run begins it.
    expect([(await job.job("run")).status, job.lines("log")]).toEqual([137, ["pay", "pay"]]);
  },
  LIMIT_MS,
);

test(
  "an unsafe step of which settle says that it has not happened is tried again as often as allowed",
  async () => {
    const command = 'echo "$WATCHDOG_ATTEMPT" >>log; [ "$WATCHDOG_ATTEMPT" = 3 ] || kill -9 $$';
    const more = { settle: "echo asked >>log; exit 1", retries: 2, backoff: "10ms" };
    const job = makeJob(scene, "settled-again", { pay: unsafe(command, more) });
    expect((await job.job("run")).status).toBe(0);
    expect(job.lines("log")).toEqual(["1", "asked", "2", "asked", "3"]);
    // The negative twin: what settle does not tell is tried by nobody.
    job.write({ pay: unsafe(command, { ...more, settle: "echo asked >>log; exit 7" }) });
    expect((await job.job("run")).status).toBe(3);
    expect(job.lines("log").slice(5)).toEqual(["1", "asked"]);
  },
  LIMIT_MS,
);

test(
  "an owner no longer waits for nothing: the steps that run are ended, 76",
  async () => {
    const gated = "echo a >>log; until [ -e go ]; do sleep 0.02; done";
    const job = makeJob(scene, "fenced", {
      ends: harmless(gated),
      stays: harmless("echo b >>log; until [ -e never ]; do sleep 0.02; done"),
    });
    const run = job.start("run", "--max-parallel=2");
    await waitFor(() => job.lines("log").length === 2, "both steps");
    query(job.scene, "UPDATE leases SET generation = generation + 7 WHERE name = 'fenced'");
    await Bun.write(job.path("go"), "");
    expect((await run.ended).status).toBe(76);
    expect(job.scene.findProcesses()).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "told to end while one settle is asked, it asks no other",
  async () => {
    const pay = (name: string) =>
      unsafe(`echo ${name} >>log; sleep 0.3; kill -9 $$`, {
        settle: `echo ${name} >>asked; [ -e known ] || sleep 96411; exit 0`,
      });
    const job = makeJob(scene, "asked", { one: pay("one"), two: pay("two") });
    const first = job.start("run", "--max-parallel=2");
    await waitFor(() => job.lines("log").length === 2, "both steps");
    first.kill("SIGTERM");
    await first.ended;
    expect([job.steps(), existsSync(job.path("asked"))]).toEqual([
      ["one interrupted stopped 1", "two interrupted stopped 1"],
      false,
    ]);
    const second = job.start("resume");
    await waitFor(() => job.lines("asked").length === 1, "settle of the first");
    second.kill("SIGTERM");
    expect((await second.ended).status).toBe(143);
    expect(job.lines("asked")).toEqual(["one"]);
    await Bun.write(job.path("known"), "");
    expect((await job.job("resume")).status).toBe(0);
    expect(job.lines("log").toSorted()).toEqual(["one", "two"]);
  },
  LIMIT_MS,
);

test(
  "an unsafe step that has failed keeps its number when it is taken out and put back",
  async () => {
    const pay = unsafe('echo "pay $WATCHDOG_ATTEMPT" >>log; [ -e go ]');
    const check = harmless("[ -e go ]");
    const job = makeJob(scene, "number", { pay, check });
    expect((await job.job("run")).status).toBe(1);
    job.write({ check });
    expect((await job.job("run")).status).toBe(1);
    job.write({ pay, check });
    await Bun.write(job.path("go"), "");
    expect((await job.job("run")).status).toBe(0);
    expect(job.lines("log")).toEqual(["pay 1", "pay 2"]);
  },
  LIMIT_MS,
);

describe("what a step has read", () => {
  test(
    "is known of a resume, too: of steps that were done before it, what they have left",
    async () => {
      const make = harmless("echo content >out", { inputs: [], artifacts: ["out"] });
      const use = harmless("echo use >>log; [ -e go ] && cat out >copy", {
        needs: ["make"],
        inputs: [],
        artifacts: ["copy"],
      });
      const job = makeJob(scene, "known", { make, use });
      expect((await job.job("run")).status).toBe(1);
      await Bun.write(job.path("go"), "");
      expect((await job.job("run")).status).toBe(0);
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["use", "use"]);
      expect(job.steps()).toEqual(["make done unchanged 0", "use done unchanged 0"]);
    },
    LIMIT_MS,
  );

  test(
    "is what lies in its own directory: a copy of the job has done nothing yet",
    async () => {
      const push = unsafe("basename $PWD >>../log", { inputs: ["part"] });
      const job = makeJob(scene, "copied", { push });
      await Bun.write(job.path("part"), "content");
      const run = async (file: string) =>
        (await job.scene.startProgram([RELEASE, "job", "run", file]).ended).status;
      expect([await run(job.file), await run(job.file)]).toEqual([0, 0]);
      const copy = `${job.directory}-2`;
      cpSync(job.directory, copy, { recursive: true });
      expect([await run(`${copy}/copied.json`), await run(job.file)]).toEqual([0, 0]);
      expect(job.lines("../log")).toEqual(["job-copied", "job-copied-2"]);
    },
    LIMIT_MS,
  );

  test(
    "is the caller's variable, where it names one",
    async () => {
      const job = makeJob(scene, "variable", {
        make: harmless('echo "$MODE" >>log; echo x >out', {
          inputs: [],
          env: { MODE: null },
          artifacts: ["out"],
        }),
      });
      const run = async (mode: string) => {
        const words = [RELEASE, "job", "run", job.file];
        return (await job.scene.startProgram(words, { env: { MODE: mode } }).ended).status;
      };
      expect([await run("a"), await run("a"), await run("b"), await run("b")]).toEqual([
        0, 0, 0, 0,
      ]);
      expect(job.lines("log")).toEqual(["a", "b"]);
    },
    LIMIT_MS,
  );
});

describe("the question of an unsafe step", () => {
  test(
    "is asked where the step works",
    async () => {
      const job = makeJob(scene, "there", {
        pay: unsafe("echo pay >>../log; : >here; kill -9 $$", {
          cwd: "sub",
          settle: "[ -e here ]",
        }),
      });
      mkdirSync(job.path("sub"));
      expect((await job.job("run")).status).toBe(0);
      expect([job.lines("log"), job.steps()]).toEqual([["pay"], ["pay done settled-happened 1"]]);
    },
    LIMIT_MS,
  );

  test(
    "has the time limit of the step, and says nothing when it is over",
    async () => {
      const job = makeJob(scene, "late", {
        pay: unsafe("kill -9 $$", { timeout: "1s", settle: "sleep 30; exit 0" }),
      });
      expect((await job.job("run")).status).toBe(3);
      expect(job.steps()).toEqual(["pay unknown settle-unclear 1"]);
    },
    LIMIT_MS,
  );
});

test(
  "what an attempt has half written is gone before the next one",
  async () => {
    const half = 'cat out >>seen; echo "$WATCHDOG_ATTEMPT" >out; [ "$WATCHDOG_ATTEMPT" = 2 ]';
    const job = makeJob(scene, "again", {
      make: harmless(half, { retries: 1, backoff: "10ms", artifacts: ["out"] }),
    });
    expect((await job.job("run")).status).toBe(0);
    expect([job.lines("seen"), job.lines("out")]).toEqual([[], ["2"]]);
  },
  LIMIT_MS,
);

test(
  "a step that was ended by its time limit makes the job one",
  async () => {
    const job = makeJob(scene, "limit", { slow: harmless("sleep 96413", { timeout: "200ms" }) });
    expect((await job.job("run", ...scene.recordTo("limit"))).status).toBe(124);
    expect(scene.readRecord("limit")["outcome"]).toBe("timeout");
  },
  LIMIT_MS,
);

test(
  "of several at a time each step is a run of its own",
  async () => {
    const job = makeJob(scene, "own", { a: harmless("true"), b: harmless("true") });
    expect((await job.job("run", "--max-parallel=2")).status).toBe(0);
    const runs = query(job.scene, "SELECT job FROM runs ORDER BY job").flat();
    expect(runs).toEqual(["own", "own/a", "own/b"]);
  },
  LIMIT_MS,
);

test(
  "it is fenced by the lease of its own job, whatever other job's lease the run has",
  async () => {
    const job = makeJob(scene, "zoo", { a: harmless("true") });
    for (let round = 0; round < 3; round += 1) {
      expect((await job.scene.run(["--name", "ant", "--", "true"])).status).toBe(0);
    }
    // By its name the other one comes first, and it was granted more often.
    expect((await job.job("run", "--lock=job:ant")).status).toBe(0);
    const leases = query(job.scene, "SELECT name, generation FROM leases ORDER BY name");
    expect(leases).toEqual([
      ["ant", 4],
      ["zoo", 1],
    ]);
    expect(query(job.scene, "SELECT generation FROM steps")).toEqual([[1]]);
  },
  LIMIT_MS,
);

test(
  "what settle or a person calls done has its artifacts, of whatever age",
  async () => {
    const make = unsafe("echo x >out; kill -9 $$", { artifacts: ["out"] });
    const job = makeJob(scene, "left", { make: { ...make, settle: "exit 0" } });
    expect([(await job.job("run")).status, job.steps()]).toEqual([
      0,
      ["make done settled-happened 1"],
    ]);
    const other = makeJob(scene, "left-said", { make });
    expect((await other.job("run")).status).toBe(3);
    expect((await other.job("resume", "--accept-unknown=make=done")).status).toBe(0);
    expect(other.steps()).toEqual(["make done accepted-done 1"]);
    for (const { scene: own } of [job, other]) {
      expect(query(own, "SELECT path, bytes FROM artifacts")).toEqual([["out", 2]]);
    }
    // The negative twin: one that is not there is not called done.
    const gone = makeJob(scene, "left-not", { make: { ...make, settle: "rm out; exit 0" } });
    expect([(await gone.job("run")).status, gone.steps()]).toEqual([
      3,
      ["make unknown artifact-missing 1"],
    ]);
  },
  LIMIT_MS,
);
