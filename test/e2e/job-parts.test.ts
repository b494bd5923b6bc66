/**
 * A part of a job of many steps: one step alone by day, and what the night makes of it; what a
 * report says of the steps of a job.
 */
import { expect, test } from "bun:test";
import { harmless, makeJob, unsafe } from "../support/job-place.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

const STEPS = {
  dump: harmless("echo dump >>log; date +%s%N >out", { artifacts: ["out"] }),
  load: harmless("echo load >>log", { needs: ["dump"] }),
  last: harmless("echo last >>log", { needs: ["load"] }),
};

test(
  "a step that was run alone does not take the first steps from the night",
  async () => {
    const job = makeJob(scene, "only", STEPS);
    expect((await job.job("run")).status).toBe(0);
    expect((await job.job("run", "--only=load")).status).toBe(0);
    expect(job.lines("log").slice(3)).toEqual(["load"]);
    const night = await job.job("run");
    expect([night.status, night.stderr]).toEqual([0, ""]);
    expect(job.lines("log").slice(4)).toEqual(["dump", "load", "last"]);
  },
  LIMIT_MS,
);

test(
  "who asks for more of it goes on with it",
  async () => {
    const job = makeJob(scene, "more", STEPS);
    expect((await job.job("run")).status).toBe(0);
    expect((await job.job("run", "--only=load")).status).toBe(0);
    const { status, stderr } = await job.job("resume");
    expect([status, stderr]).toEqual([0, expect.stringContaining("goes on where it was")]);
    expect(job.lines("log").slice(4)).toEqual(["last"]);
  },
  LIMIT_MS,
);

test(
  "an unsafe one of which nobody knows is not forgotten by the night",
  async () => {
    const job = makeJob(scene, "unclear", {
      pay: unsafe("echo pay >>log"),
      last: harmless("true"),
    });
    expect((await job.job("run")).status).toBe(0);
    job.write({ pay: unsafe("echo pay >>log; kill -9 $$"), last: harmless("true") });
    expect((await job.job("run", "--only=pay")).status).toBe(3);
    expect([(await job.job("run")).status, job.lines("log")]).toEqual([3, ["pay", "pay"]]);
  },
  LIMIT_MS,
);

test(
  "nor is one that called its work good and left nothing of it",
  async () => {
    const job = makeJob(scene, "bare", {
      pay: unsafe("echo pay >>log", { artifacts: ["receipt"] }),
      last: harmless("true"),
    });
    expect((await job.job("run", "--only=pay")).status).toBe(65);
    expect([(await job.job("run")).status, job.lines("log")]).toEqual([3, ["pay"]]);
  },
  LIMIT_MS,
);

test(
  "of a step that is a run the report tells by its job alone",
  async () => {
    const job = makeJob(scene, "told", { bad: harmless("exit 7", { idle_timeout: "1m" }) });
    expect((await job.job("run")).status).toBe(7);
    const asked = job.scene.startProgram([RELEASE, "report", "--json"]);
    const { needs, jobs } = JSON.parse((await asked.ended).stdout.toString());
    expect(jobs.map((one: { job: string }) => one.job).toSorted()).toEqual(["told", "told/bad"]);
    expect(needs.map((one: { job: string }) => one.job)).toEqual(["told"]);
  },
  LIMIT_MS,
);

test(
  "a step that is a run has the number of its attempt",
  async () => {
    const command = 'echo "$WATCHDOG_ATTEMPT" >>log; [ "$WATCHDOG_ATTEMPT" = 2 ]';
    const more = { retries: 3, backoff: "10ms", idle_timeout: "1m" };
    const job = makeJob(scene, "attempts", { flaky: harmless(command, more) });
    expect([(await job.job("run")).status, job.lines("log")]).toEqual([0, ["1", "2"]]);
  },
  LIMIT_MS,
);
