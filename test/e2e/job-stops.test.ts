/**
 * A job of many steps that is told to end while it looks, and not while a step runs, on the
 * compiled binary: nothing is started after that, however long the look would take.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from "node:fs";
import { findRunners, type JobPlace, makeJob } from "../support/job-place.ts";
import { isDead } from "../support/processes.ts";
import { openScene, RELEASE, type Started } from "../support/scene.ts";
import { KEY, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
/** Sparse: it takes no place, and longer to read than any test waits. */
const HUGE_BYTES = 2 ** 40;

function makeHuge(job: JobPlace, name: string): void {
  writeFileSync(job.path(name), "");
  truncateSync(job.path(name), HUGE_BYTES);
}

/** Somebody of the job has it open. */
async function waitForReader(job: JobPlace, name: string): Promise<void> {
  const isRead = (pid: number): boolean => listOpenFiles(pid).includes(job.path(name));
  await waitFor(() => job.scene.findProcesses().some(isRead), `a reader of ${name}`);
}

function listOpenFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  } catch {
    return []; // ENOENT: closed meanwhile, or the process is gone
  }
}

const unsafe = (command: string, more: object = {}) => ({
  command,
  side_effects: "unsafe",
  ...more,
});

async function stop(run: Started): Promise<number | null> {
  run.kill("SIGTERM");
  return (await run.ended).status;
}

const TERMINATED = 143;
const INTERRUPTED = 130;

describe("told to end", () => {
  test.each([1, 2])(
    "while the inputs of a step are read, with %d at a time: the step is not started",
    async (max_parallel) => {
      const first = { command: "echo a >>log", side_effects: "none" };
      const job = makeJob(
        scene,
        `input-${max_parallel}`,
        { a: first, u: unsafe("echo u >>log", { needs: ["a"], inputs: ["huge"] }) },
        { max_parallel },
      );
      makeHuge(job, "huge");
      const run = job.start("run");
      await waitForReader(job, "huge");
      expect(await stop(run)).toBe(TERMINATED);
      expect(job.lines("log")).toEqual(["a"]);
      expect([job.steps()[1], job.state()]).toEqual(["u pending - 0", "interrupted"]);
    },
    LIMIT_MS,
  );

  test(
    "while artifacts are read again: what is known of the job is as it was",
    async () => {
      const job = makeJob(scene, "artifact", {
        a: { command: "echo a >a", artifacts: ["a"] },
        u: unsafe("echo u >>log; exit 4", { needs: ["a"] }),
      });
      expect((await job.job("run")).status).toBe(4);
      makeHuge(job, "a");
      const run = job.start("run");
      await waitForReader(job, "a");
      expect(await stop(run)).toBe(TERMINATED);
      expect([job.lines("log"), job.steps()]).toEqual([
        ["u"],
        ["a done exited 1", "u failed exited 1"],
      ]);
    },
    LIMIT_MS,
  );

  test(
    "while settle is asked: it is asked again, and no person need decide",
    async () => {
      const settle = "echo s >>asked; [ -e known ] || sleep 96401; exit 0";
      const job = makeJob(scene, "settle", {
        u: unsafe("echo u >>log; [ $(wc -l <log) -gt 1 ] || kill -9 $$", { settle }),
      });
      const first = job.start("run");
      await waitFor(() => existsSync(job.path("asked")), "settle within the run");
      expect(await stop(first)).toBe(TERMINATED);
      expect(job.steps()).toEqual(["u interrupted killed-by-signal 1"]);
      const second = job.start("resume");
      await waitFor(() => job.lines("asked").length === 2, "settle of the resume");
      expect(await stop(second)).toBe(TERMINATED);
      expect(job.steps()).toEqual(["u interrupted killed-by-signal 1"]);
      writeFileSync(job.path("known"), "");
      expect((await job.job("resume")).status).toBe(0);
      expect([job.steps(), job.lines("log")]).toEqual([["u done settled-happened 1"], ["u"]]);
    },
    LIMIT_MS,
  );

  test(
    "twice while a step runs: the job ends by the signal that came first",
    async () => {
      const traps = "trap 'echo HUP >>log' HUP; trap 'exit 1' TERM";
      const job = makeJob(scene, "first", {
        a: {
          command: `${traps}; echo a >>log; while :; do sleep 0.02; done`,
          side_effects: "none",
        },
      });
      const run = job.start("run");
      await waitFor(() => job.lines("log").length === 1, "the step");
      run.kill("SIGHUP");
      await waitFor(() => job.lines("log").includes("HUP"), "the first signal");
      run.kill("SIGTERM");
      expect((await run.ended).signal).toBe("SIGHUP");
    },
    LIMIT_MS,
  );
});

describe("at a terminal", () => {
  test(
    "a step that Ctrl-C has ended before its runner heard of it is the last",
    async () => {
      const job = makeJob(scene, "key", {
        a: unsafe("echo $$ >first; exec sleep 96402"),
        b: unsafe("echo b >>log"),
      });
      const { scene: own } = job;
      const terminal = openTerminal(own, [RELEASE, "job", "run", job.file]);
      await waitFor(() => job.lines("first").length === 1, "the first step");
      const [runner = Number.NaN] = findRunners(terminal.pid);
      // It finds both at once when it goes on: that of the key, and that of the child.
      process.kill(runner, "SIGSTOP");
      terminal.type(KEY.interrupt);
      await waitFor(() => isDead(Number(job.lines("first")[0])), "the end of the first step");
      process.kill(runner, "SIGCONT");
      expect(await terminal.ended).toBe(INTERRUPTED);
      expect([job.lines("log"), job.steps(), job.state()]).toEqual([
        [],
        ["a interrupted stopped 1", "b pending - 0"],
        "interrupted",
      ]);
    },
    LIMIT_MS,
  );
});
