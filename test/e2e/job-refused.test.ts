/**
 * A run that its job has refused (78), as `status`, `why`, `report` and those who are told see it,
 * on the compiled binary: it is told, and hides no night before it.
 */
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { harmless, type JobPlace, makeJob } from "../support/job-place.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const REFUSED = "config_error, status 78: it cannot be gone on with as it was asked to";

async function askOf({ scene: own }: JobPlace, ...words: readonly string[]): Promise<string> {
  const { status, stdout } = await own.startProgram([RELEASE, ...words]).ended;
  expect(status).toBe(0);
  return stdout.toString();
}

async function reportOf(job: JobPlace): Promise<{ readonly jobs: readonly unknown[] }> {
  return JSON.parse(await askOf(job, "report", "--json"));
}

test(
  "after a bad night leaves that the last run, and is no second failure",
  async () => {
    const job = makeJob(scene, "bad", { a: harmless("exit 4") });
    const hook = ["--on-failure", `echo told >>"${job.path("told")}"`];
    expect((await job.job("run", ...hook)).status).toBe(4);
    mkdirSync(job.path("other"));
    copyFileSync(job.file, job.path("other", "bad.json"));
    const other = [RELEASE, "job", "run", ...hook, job.path("other", "bad.json")];
    expect((await job.scene.startProgram(other).ended).status).toBe(78);
    const decided = await job.job("resume", ...hook, "--accept-unknown", "a=done");
    expect(decided.status).toBe(78);
    expect(await askOf(job, "status")).toMatch(/^ {2}bad {2}failed, status 4, /m);
    expect(await askOf(job, "status", "bad")).toMatch(/^ {2}bad {2}failed, status 4, /m);
    const why = await askOf(job, "why", "bad");
    expect(why).toStartWith(`bad: ${REFUSED}, so that no step was started; 2 in a row\n`);
    expect(why).toMatch(/^ {2}said +watchdog: job bad is not run: there is nothing to decide /m);
    expect(why).toMatch(/^bad: failed, status 4: a step of it has failed$/m);
    expect((await reportOf(job)).jobs).toMatchObject([
      {
        runs: 3,
        bad: 1,
        skipped: 2,
        failures_in_row: 1,
        last: { outcome: "failed" },
        skipped_because: "its job cannot be gone on with as it was asked to",
        needs: [{ because: "failed", text: "failed (step-failed)" }],
      },
    ]);
    expect(job.lines("told")).toEqual(["told"]);
  },
  LIMIT_MS,
);

test(
  "after a good one needs nobody, and nobody is told that it is well again",
  async () => {
    const job = makeJob(scene, "good", { a: harmless("true") });
    const hook = ["--on", `failure,recovered=echo told >>"${job.path("told")}"`];
    expect((await job.job("run", ...hook)).status).toBe(0);
    expect((await job.job("resume", ...hook)).status).toBe(78);
    expect((await job.job("run", ...hook)).status).toBe(0);
    expect((await job.job("resume", ...hook)).status).toBe(78);
    expect(await askOf(job, "status", "good")).toMatch(/^ {2}good {2}ok, status 0, /m);
    expect(await askOf(job, "why", "good")).toContain("\n\ngood: ok, status 0: ");
    const [row] = (await reportOf(job)).jobs;
    expect(row).toMatchObject({ good: 2, bad: 0, skipped: 2, last: { fate: "good" }, needs: [] });
    expect(job.lines("told")).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "alone needs somebody: the next one would be refused, too",
  async () => {
    const job = makeJob(scene, "alone", { a: harmless("true") });
    expect((await job.job("resume")).status).toBe(78);
    expect(await askOf(job, "status", "alone")).toMatch(/config_error, status 78, .*job-refused/);
    const [row] = (await reportOf(job)).jobs;
    expect(row).toMatchObject({ last: null, needs: [{ because: "always-skipped" }] });
  },
  LIMIT_MS,
);

test(
  "because what was known of the job is lost is a failure, and is told",
  async () => {
    const job = makeJob(scene, "lost", { a: harmless("exit 4") });
    const hook = ["--on-failure", `echo told >>"${job.path("told")}"`];
    expect((await job.job("run")).status).toBe(4);
    const state = job.scene.stateDirectory;
    for (const name of readdirSync(state)) {
      if (name.startsWith("journal.db")) rmSync(`${state}/${name}`);
    }
    expect((await job.job("run", ...hook)).status).toBe(78);
    expect(await askOf(job, "status", "lost")).toMatch(/config_error, status 78, .*job-lost/);
    const [row] = (await reportOf(job)).jobs;
    expect(row).toMatchObject({ bad: 1, skipped: 0, failures_in_row: 1 });
    expect(job.lines("told")).toEqual(["told"]);
  },
  LIMIT_MS,
);
