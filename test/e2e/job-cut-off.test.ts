/**
 * An unsafe step that is ended because its job is, on the compiled binary: whoever ended it is told
 * that nobody knows, and how to decide. And what settle says is said.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { harmless, type JobPlace, makeJob, unsafe } from "../support/job-place.ts";
import { query } from "../support/own-state.ts";
import { openScene, RELEASE, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

const PAY = "echo pay >>log; until [ -e go ]; do sleep 0.02; done";

async function startPaying(job: JobPlace, ...options: readonly string[]): Promise<Started> {
  const run = job.start("run", ...options);
  await waitFor(() => job.lines("log").includes("pay"), "the step");
  return run;
}

function toldOf(stderr: string): string[] {
  return stderr.split("\n").filter((line) => /nobody knows|accept-unknown|settle/.test(line));
}

const decideLines = (job: JobPlace, step = "pay"): string[] => [
  `watchdog: nobody knows whether ${step} has happened: a person must decide`,
  `watchdog: hint: watchdog job resume --accept-unknown '${step}=retry|fail|done' ${job.file}`,
];

describe("a job that ends in an unsafe step", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "by %s: without settle a person is told to decide, and how",
    async (signal) => {
      const job = makeJob(scene, signal, { pay: unsafe(PAY), more: harmless("true") });
      const run = await startPaying(job);
      run.kill(signal);
      const ended = await run.ended;
      expect([ended.signal, toldOf(ended.stderr)]).toEqual([signal, decideLines(job)]);
      expect(job.steps()[0]).toBe("pay interrupted stopped 1");
      // As the line says.
      expect((await job.job("resume", "--accept-unknown", "pay=done")).status).toBe(0);
      expect(job.lines("log")).toEqual(["pay"]);
    },
    LIMIT_MS,
  );

  test(
    "by watchdog stop: the same",
    async () => {
      const job = makeJob(scene, "stop", { pay: unsafe(PAY) });
      const run = await startPaying(job);
      expect((await job.scene.startProgram([RELEASE, "stop", "stop"]).ended).status).toBe(0);
      expect(toldOf((await run.ended).stderr)).toEqual(decideLines(job));
    },
    LIMIT_MS,
  );

  test(
    "by the time limit of the job: the same",
    async () => {
      const job = makeJob(scene, "limit", { pay: unsafe(PAY) });
      const { status, stderr } = await job.job("run", "--timeout", "4s");
      expect([status, job.lines("log")]).toEqual([124, ["pay"]]);
      expect(toldOf(stderr)).toEqual(decideLines(job));
    },
    LIMIT_MS,
  );

  test.each([
    ["without", undefined],
    ["with", "exit 0"],
  ])(
    "that hears no TERM, %s settle: the same, although its runner is killed with it",
    async (name, settle) => {
      const more = settle === undefined ? {} : { settle };
      const job = makeJob(scene, `deaf-${name}`, { pay: unsafe(`trap '' TERM; ${PAY}`, more) });
      const run = await startPaying(job, "--kill-after", "100ms");
      const stop = [RELEASE, "stop", `deaf-${name}`];
      expect((await job.scene.startProgram(stop).ended).status).toBe(0);
      const asked = "watchdog: the next job resume asks settle whether pay has happened";
      const lines = settle === undefined ? decideLines(job) : [asked];
      expect(toldOf((await run.ended).stderr)).toEqual(lines);
      expect(job.steps()).toEqual(["pay running - 1"]);
    },
    LIMIT_MS,
  );

  test(
    "with a runner that was killed: nothing is said of a job that is another run's by now",
    async () => {
      const job = makeJob(scene, "taken", { pay: unsafe(`trap '' TERM; ${PAY}`) });
      const run = await startPaying(job, "--kill-after", "100ms");
      query(job.scene, "UPDATE jobs SET run_id = 'another'");
      expect((await job.scene.startProgram([RELEASE, "stop", "taken"]).ended).status).toBe(0);
      expect(toldOf((await run.ended).stderr)).toEqual([]);
      expect(job.steps()).toEqual(["pay running - 1"]);
    },
    LIMIT_MS,
  );

  test(
    "with settle: the next resume asks it, and says what it has said",
    async () => {
      const job = makeJob(scene, "asked", { pay: unsafe(PAY, { settle: "exit 0" }) });
      const run = await startPaying(job);
      run.kill("SIGTERM");
      expect(toldOf((await run.ended).stderr)).toEqual([
        "watchdog: the next job resume asks settle whether pay has happened",
      ]);
      const { status, stderr } = await job.job("resume");
      expect([status, toldOf(stderr)]).toEqual([
        0,
        ["watchdog: step pay has happened, as its settle says"],
      ]);
    },
    LIMIT_MS,
  );

  test(
    "of one without side effects nothing is said",
    async () => {
      const job = makeJob(scene, "harmless", { pay: harmless(PAY) });
      const run = await startPaying(job);
      run.kill("SIGTERM");
      expect(toldOf((await run.ended).stderr)).toEqual([]);
    },
    LIMIT_MS,
  );
});

test(
  "what settle says within the run is said, too",
  async () => {
    const pay = unsafe("kill -9 $$", { settle: "[ -e happened ]" });
    const job = makeJob(scene, "within", { pay });
    writeFileSync(job.path("happened"), "");
    const { status, stderr } = await job.job("run");
    expect([status, stderr.split("\n").filter((line) => line.includes("settle"))]).toEqual([
      0,
      ["watchdog: step pay has happened, as its settle says"],
    ]);
  },
  LIMIT_MS,
);
