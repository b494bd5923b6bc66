/**
 * A job file that is edited between two runs of an unfinished job, on the compiled binary: what was
 * done is not forgotten on its account.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { makeJob } from "../support/job-place.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

const UPLOAD = { command: "echo up >>log", side_effects: "unsafe" };
const CHECK = { command: "echo check >>log; [ -e go ]", side_effects: "none" };

test(
  "an unsafe step that is done, taken out of the file and put back again does not run again",
  async () => {
    const job = makeJob(scene, "back", { upload: UPLOAD, check: CHECK });
    expect((await job.job("run")).status).toBe(1);
    job.write({ check: CHECK });
    expect((await job.job("run")).status).toBe(1);
    job.write({ check: CHECK, upload: UPLOAD });
    writeFileSync(job.path("go"), "");
    expect((await job.job("run")).status).toBe(0);
    expect(job.lines("log")).toEqual(["up", "check", "check", "check"]);
    expect(job.state()).toBe("done");
  },
  LIMIT_MS,
);

test(
  "a harmless one runs again",
  async () => {
    const harmless = { ...UPLOAD, side_effects: "none" };
    const job = makeJob(scene, "harmless", { upload: harmless, check: CHECK });
    expect((await job.job("run")).status).toBe(1);
    job.write({ check: CHECK });
    writeFileSync(job.path("go"), "");
    expect((await job.job("run")).status).toBe(0);
    expect(job.steps()).toEqual(["check done exited 2"]);
  },
  LIMIT_MS,
);

test(
  "without a step about which somebody must decide it is refused, and told how to go on",
  async () => {
    const unclear = { ...UPLOAD, command: "echo up >>log; kill -9 $$" };
    const job = makeJob(scene, "unclear", { upload: unclear, check: CHECK });
    expect((await job.job("run")).status).toBe(3);
    job.write({ other: unclear, check: CHECK });
    const { status, stderr } = await job.job("run");
    expect([status, job.lines("log").filter((line) => line === "up")]).toEqual([78, ["up"]]);
    expect(stderr).toContain(": put upload back into the file under the old name, and decide;");
    expect(stderr).toContain("hint: watchdog job status unclear\n");
    expect(stderr).not.toContain("job run --fresh");
    // As it says: put back, and decided.
    job.write({ upload: unclear, check: CHECK });
    const decided = await job.job("run", "--accept-unknown", "upload=done");
    expect([decided.status, job.lines("log").filter((line) => line === "up")]).toEqual([1, ["up"]]);
  },
  LIMIT_MS,
);

test(
  "a directory that begins with a slash is taken as it is",
  async () => {
    const step = { command: "pwd", side_effects: "none", cwd: scene.directory };
    const job = makeJob(scene, "away", { step });
    const { status, stdout } = await job.job("run");
    expect([status, stdout.toString()]).toEqual([0, `${scene.directory}\n`]);
  },
  LIMIT_MS,
);

test(
  "a step that was run as an unsafe one stays so until it is run as another",
  async () => {
    const pay = (command: string) => ({ command, side_effects: "none" });
    const job = makeJob(scene, "stays", { pay: { ...UPLOAD }, check: CHECK });
    expect((await job.job("run")).status).toBe(1);
    // It moves, so that something of it is written; it is not run.
    job.write({ check: CHECK, pay: pay(UPLOAD.command) });
    expect((await job.job("run")).status).toBe(1);
    job.write({ check: CHECK, pay: pay("echo again >>log") });
    writeFileSync(job.path("go"), "");
    expect((await job.job("run")).status).toBe(3);
    expect(job.lines("log")).toEqual(["up", "check", "check", "check"]);
    expect(job.steps()).toContain("pay unknown definition-changed 1");
  },
  LIMIT_MS,
);
