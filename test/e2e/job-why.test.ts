/**
 * `watchdog why` in the morning, about a job of many steps: which step it was, and how to go on.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { makeJob } from "../support/job-place.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

function unsafe(command: string, more: object = {}): object {
  return { command, side_effects: "unsafe", ...more };
}

test(
  "steps that failed, and those about which somebody must decide, are named",
  async () => {
    const job = makeJob(scene, "ended", {
      dump: unsafe("true"),
      pack: unsafe("exit 4", { needs: ["dump"] }),
      upload: unsafe("kill -9 $$", { needs: ["dump"] }),
    });
    expect((await job.job("run")).status).toBe(3);
    const { stdout } = await job.scene.startProgram([RELEASE, "why", "ended"]).ended;
    const text = stdout.toString();
    expect(text).toContain("nobody knows whether a step of it has happened");
    expect(text).toMatch(/steps +1 of 3 done; failed: pack; unknown: upload\n/);
    expect(text).toMatch(new RegExp(`to go on +watchdog job status ${job.file}\n`));
  },
  LIMIT_MS,
);

test(
  "of a run that was killed, those that it was at; of a job that is done there is nothing to do",
  async () => {
    const job = makeJob(scene, "killed", {
      dump: unsafe("true"),
      upload: unsafe("echo up >>log; until [ -e go ]; do sleep 0.02; done", { needs: ["dump"] }),
    });
    const why = async () => {
      const { stdout } = await job.scene.startProgram([RELEASE, "why", "killed"]).ended;
      return stdout.toString();
    };
    const run = job.start("run");
    await waitFor(() => job.lines("log").includes("up"), "the second step");
    expect(await why()).toMatch(/steps +1 of 2 done; running: upload\n/);
    run.kill("SIGKILL");
    await run.ended;
    await waitFor(() => job.scene.findProcesses().length === 0, "the guard to have ended all");
    expect(await why()).toMatch(/steps +1 of 2 done; interrupted: upload\n/);
    writeFileSync(job.path("go"), "");
    expect((await job.job("resume", "--accept-unknown", "upload=retry")).status).toBe(0);
    expect(await why()).toMatch(/steps +2 of 2 done\n(?! *to go on)/);
  },
  LIMIT_MS,
);
