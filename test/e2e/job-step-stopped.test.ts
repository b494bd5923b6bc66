/**
 * A step that is a run of its own and is ended by `watchdog stop JOB/STEP`, while nobody has asked
 * for the end of its job, on the compiled binary.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { waitForRow } from "../support/ask.ts";
import { harmless, type JobPlace, makeJob, unsafe } from "../support/job-place.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const TERMINATED = 143;
const UNTIL_GO = "until [ -e go ]; do sleep 0.02; done";

interface StoppedJob {
  readonly status: number | null;
  readonly stderr: string;
}

/** Ends the step while its command runs, and the journal knows of it: its run has no lease. */
async function stopStep(job: JobPlace, name: string, step: string): Promise<StoppedJob> {
  const run = job.start("run");
  await waitFor(() => job.lines("log").includes(step), `step ${step} to run`);
  await waitForRow(job.scene, `${name}/${step}`, "running");
  const { status, stdout } = await job.scene.startProgram([RELEASE, "stop", `${name}/${step}`])
    .ended;
  expect([status, stdout.toString()]).toEqual([
    0,
    expect.stringContaining(`stopped ${name}/${step} `),
  ]);
  return run.ended;
}

describe("a step that is stopped alone", () => {
  test(
    "is not tried again, and runs when the job goes on; what needs it not is not harmed",
    async () => {
      const job = makeJob(scene, "rs", {
        a: harmless(`echo a >>log; ${UNTIL_GO}`, { retries: 3, backoff: "1ms", log: "off" }),
        b: harmless("echo b >>log", { needs: ["a"] }),
        c: harmless("echo c >>log"),
      });
      const { status, stderr } = await stopStep(job, "rs", "a");
      expect([status, job.lines("log")]).toEqual([TERMINATED, ["a", "c"]]);
      expect(stderr).toContain("step a was stopped on request");
      expect(stderr).toContain("stopped on request, and run again when the job goes on: a");
      expect(stderr).not.toContain("a person must decide");
      expect([...job.steps(), job.state()]).toEqual([
        "a interrupted stopped 1",
        "b pending - 0",
        "c done exited 1",
        "interrupted",
      ]);
      const why = await job.scene.startProgram([RELEASE, "why", "rs"]).ended;
      expect(why.stdout.toString()).toContain("a step of it was stopped on request");
      writeFileSync(job.path("go"), "");
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["a", "c", "a", "b"]);
    },
    LIMIT_MS,
  );

  test(
    "and is unsafe is unknown: 3, and a person must decide",
    async () => {
      const job = makeJob(scene, "un", {
        pay: unsafe(`echo pay >>log; ${UNTIL_GO}`, { retries: 3, backoff: "1ms", log: "off" }),
        after: harmless("echo after >>log", { needs: ["pay"] }),
      });
      const { status, stderr } = await stopStep(job, "un", "pay");
      expect([status, job.lines("log")]).toEqual([3, ["pay"]]);
      expect(stderr).toContain("nobody knows whether pay has happened");
      expect(job.steps()).toEqual(["pay unknown no-settle 1", "after pending - 0"]);
    },
    LIMIT_MS,
  );

  test.each([
    [0, 0, "done settled-happened 1", ["pay", "after"]],
    [1, TERMINATED, "failed settled-not-happened 1", ["pay"]],
    [2, 3, "unknown settle-unclear 1", ["pay"]],
  ])(
    "and is unsafe asks its settle, which says %d, and is not tried again whatever that says",
    async (says, status, state, log) => {
      const name = `settle-${says}`;
      const more = { retries: 3, backoff: "1ms", log: "off", settle: `exit ${says}` };
      const job = makeJob(scene, name, {
        pay: unsafe(`echo pay >>log; ${UNTIL_GO}`, more),
        after: harmless("echo after >>log", { needs: ["pay"] }),
      });
      expect((await stopStep(job, name, "pay")).status).toBe(status);
      expect([job.steps()[0], job.lines("log")]).toEqual([`pay ${state}`, log]);
    },
    LIMIT_MS,
  );
});
