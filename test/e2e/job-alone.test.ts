/**
 * One step of a job alone (`--only`), on the compiled binary: the others stay as they are, and
 * nobody takes it for a success of the job.
 */
import { afterAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { askJson, askLines } from "../support/ask.ts";
import { harmless, makeJob, unsafe } from "../support/job-place.ts";
import { query } from "../support/own-state.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

const pings: string[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) => {
    pings.push(new URL(url).pathname);
    return new Response("OK");
  },
});
afterAll(() => server.stop(true));

const RECORD = "SELECT * FROM steps WHERE step = 'pay'";

test(
  "leaves a step that has failed as it is, and is no success of its job for anybody",
  async () => {
    const job = makeJob(scene, "failed", {
      pay: unsafe("echo pay >>log; [ -e go ]"),
      clean: harmless("echo clean >>log; [ -e ready ]"),
    });
    const hook = `echo $WATCHDOG_EVENT >>${job.path("told")}`;
    const words = ["--every=1h", `--on=failure,recovered,success=${hook}`];
    expect((await job.job("run", ...words)).status).toBe(1);
    const before = query(job.scene, RECORD);
    writeFileSync(job.path("ready"), "");
    const alone = await job.job("run", ...words, "--only", "clean", ...scene.recordTo("alone"));
    expect([alone.status, alone.stderr]).toEqual([0, expect.not.stringContaining("pay")]);
    expect(job.lines("log")).toEqual(["pay", "clean", "clean"]);
    expect(scene.readRecord("alone")).toMatchObject({
      outcome: "ok",
      because: "only-done",
      steps: { total: 2, done: 1, failed: ["pay"] },
    });
    expect([query(job.scene, RECORD), job.state()]).toEqual([before, "failed"]);

    expect(job.lines("told")).toEqual(["failure"]);
    const report = await askJson(job.scene, ["report"]);
    expect(report).toMatchObject({
      totals: { runs: 2, good: 0, bad: 1, partial: 1 },
      jobs: [{ job: "failed", last: { outcome: "failed" }, failures_in_row: 1 }],
      needs: [{ job: "failed", because: "failed" }],
    });
    const told = async (...asked: string[]) => (await askLines(job.scene, asked)).join("\n");
    expect(await told("report")).toContain("1 bad, 1 of one step (--only)");
    const why = await told("why", "failed");
    expect(why).toContain("says nothing about the job as a whole");
    expect(why).toContain("failed: failed, status 1: a step of it has failed");
    expect(await told("history", "failed")).toContain("one step alone (--only), which says");
    for (const asked of [["status"], ["status", "failed"]]) {
      const status = await askJson(job.scene, asked);
      expect(status).toMatchObject({ last_runs: [{ outcome: "failed" }] });
    }
    const patrol = await askJson(job.scene, ["patrol"]);
    expect(patrol).toMatchObject({ jobs: [{ last_success_at: null, last_failure: "failed" }] });

    writeFileSync(job.path("go"), "");
    expect((await job.job("run", ...words)).status).toBe(0);
    expect(job.lines("told")).toEqual(["failure", "recovered"]);
    const well = await askJson(job.scene, ["patrol"]);
    expect(well).toMatchObject({ jobs: [{ last_success_at: expect.any(String) }] });
  },
  LIMIT_MS,
);

test(
  "ends with its own status while another one waits for a person, and asks nobody about that",
  async () => {
    const job = makeJob(scene, "unknown", {
      pay: unsafe("echo pay >>log; kill -9 $$", { settle: "echo asked >>log; exit 2" }),
      clean: harmless("echo clean >>log; [ ! -e broken ]"),
    });
    expect((await job.job("run")).status).toBe(3);
    const before = query(job.scene, RECORD);
    const log = ["pay", "asked", "clean"];
    expect(job.lines("log")).toEqual(log);
    const alone = await job.job("run", "--only", "clean", "--redo", "clean");
    expect([alone.status, job.lines("log")]).toEqual([0, [...log, "clean"]]);
    expect(alone.stderr).toContain("a person must decide");
    writeFileSync(job.path("broken"), "");
    expect((await job.job("run", "--only", "clean", "--redo", "clean")).status).toBe(1);
    rmSync(job.path("broken"));
    expect([query(job.scene, RECORD), job.state()]).toEqual([before, "unknown"]);
    // A person has called it failed: it is not run, and the line that runs it after all is told.
    expect((await job.job("resume", "--accept-unknown", "pay=fail")).status).not.toBe(0);
    const refused = await job.job("run", "--only", "pay");
    expect(refused.status).toBe(137);
    expect(refused.stderr).toContain(`hint: watchdog job resume --redo pay ${job.file}`);
  },
  LIMIT_MS,
);

test(
  "asks no settle of another that was killed, which stays interrupted",
  async () => {
    const job = makeJob(scene, "killed", {
      pay: unsafe("echo pay >>log; while [ ! -e go ]; do sleep 0.05; done", {
        settle: "echo asked >>log; exit 1",
      }),
      clean: harmless("echo clean >>log"),
    });
    const run = job.start("run");
    await waitFor(() => existsSync(job.path("log")), "the step");
    run.kill("SIGKILL");
    await run.ended;
    await waitFor(() => job.scene.findProcesses().length === 0, "the guard to have ended all");
    expect((await job.job("run", "--only", "clean")).status).toBe(0);
    expect(job.lines("log")).toEqual(["pay", "clean"]);
    expect(job.steps()).toEqual(["pay interrupted watchdog-killed 1", "clean done exited 1"]);
    writeFileSync(job.path("go"), "");
    expect((await job.job("run")).status).toBe(0);
    expect(job.lines("log")).toEqual(["pay", "clean", "asked", "pay"]);
  },
  LIMIT_MS,
);

test(
  "of a step that is done runs nothing, and says so with the line that runs it",
  async () => {
    const job = makeJob(scene, "done", {
      pay: unsafe("kill -9 $$", { settle: "echo asked >>log; exit 2" }),
      clean: harmless("echo clean >>log"),
    });
    expect((await job.job("run")).status).toBe(3);
    const log = job.lines("log");
    const line =
      "watchdog: step clean is done and is not run; --only clean --redo clean runs it again\n";
    const plan = await job.job("plan", "--only", "clean");
    expect([plan.status, plan.stderr]).toEqual([0, line]);
    expect(String(plan.stdout)).toContain("0 of 2 steps to run");
    const run = await job.job("run", "--only", "clean");
    expect([run.status, run.stderr, job.lines("log")]).toEqual([
      0,
      expect.stringContaining(line),
      log,
    ]);
    const again = await job.job("run", "--only", "clean", "--redo", "clean");
    expect([again.status, again.stderr]).toEqual([0, expect.not.stringContaining("not run")]);
    expect(job.lines("log")).toEqual([...log, "clean"]);
  },
  LIMIT_MS,
);

test(
  "plans no settle of another step",
  async () => {
    const job = makeJob(scene, "planned", {
      pay: unsafe("touch begun; while :; do sleep 0.05; done", { settle: "exit 0" }),
      clean: harmless("echo clean >>log"),
    });
    const run = job.start("run");
    await waitFor(() => existsSync(job.path("begun")), "the step");
    run.kill("SIGKILL");
    await run.ended;
    await waitFor(() => job.scene.findProcesses().length === 0, "the guard to have ended all");
    const planOf = async (...words: readonly string[]) =>
      String((await job.job("plan", ...words)).stdout);
    expect(await planOf()).toMatch(/pay +is asked/);
    const alone = await planOf("--only", "clean");
    expect(alone).toContain("1 of 2 steps to run");
    expect(alone).toMatch(/pay +stays interrupted/);
  },
  LIMIT_MS,
);

test(
  "a job that was begun for it is over, and its status says so",
  async () => {
    const job = makeJob(scene, "over", {
      one: harmless("echo one >>log"),
      two: harmless("echo two >>log"),
      three: harmless("echo three >>log"),
    });
    const statusOf = async () => String((await job.job("status")).stdout);
    expect((await job.job("run", "--only", "one")).status).toBe(0);
    // More of its steps: it is over all the same.
    expect((await job.job("run", "--only", "two")).status).toBe(0);
    const status = await statusOf();
    expect(status).toStartWith("job over  over: it was begun for one step alone\n");
    expect(status).not.toContain("can be resumed");
    expect(status).toContain("job run begins anew; to run what this one has left\n");
    expect((await job.job("run")).status).toBe(0);
    expect(job.lines("log")).toEqual(["one", "two", "one", "two", "three"]);
    expect(await statusOf()).toStartWith("job over  done\n");
  },
  LIMIT_MS,
);

test(
  "is no ping: the service counts the runs of the whole job",
  async () => {
    const job = makeJob(scene, "pinged", { one: harmless("true"), two: harmless("true") });
    const ping = `--ping=${server.url}pinged`;
    expect((await job.job("run", ping)).status).toBe(0);
    expect(pings.splice(0)).toEqual(["/pinged/start", "/pinged/0"]);
    expect((await job.job("run", ping, "--only", "two")).status).toBe(0);
    expect(pings).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "is compared with no run of the whole job, and no such run with it",
  async () => {
    const job = makeJob(scene, "usual", { one: harmless("true"), two: harmless("true") });
    let count = 0;
    const suspicionsOf = async (...words: readonly string[]) => {
      count += 1;
      const record = `usual-${count}`;
      expect((await job.job("run", ...words, ...scene.recordTo(record))).status).toBe(0);
      return scene.readRecord(record)["suspicions"];
    };
    const makeLong = () => {
      const db = new Database(`${job.scene.stateDirectory}/journal.db`);
      db.run("UPDATE runs SET record = json_set(record, '$.duration_ms', 2400000)");
      db.close(true);
    };
    for (let at = 0; at < 4; at += 1) expect(await suspicionsOf()).toEqual([]);
    expect(await suspicionsOf("--only", "two")).toEqual([]);
    makeLong();
    // Four are too few to say what is usual.
    expect(await suspicionsOf()).toEqual([]);
    makeLong();
    expect(await suspicionsOf("--only", "two")).toEqual([]);
    expect(await suspicionsOf()).toMatchObject([{ measure: "duration_ms", runs: 5 }]);
  },
  LIMIT_MS,
);
