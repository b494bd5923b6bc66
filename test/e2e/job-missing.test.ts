/**
 * What a job file names and what is not there, at the compiled binary: an input, which never lets
 * its step be unchanged, and the directory of a step.
 */
import { describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { type JobPlace, harmless, makeJob, unsafe } from "../support/job-place.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

interface Plan {
  readonly steps: readonly { readonly step: string; readonly todo: string; because: string }[];
  readonly missing: readonly string[];
}

async function planOf(job: JobPlace): Promise<Plan> {
  const { status, stdout } = await job.job("plan", "--json");
  expect(status).toBe(0);
  return JSON.parse(stdout.toString());
}

/** Status, and the lines on standard output. */
async function verify(job: JobPlace): Promise<readonly unknown[]> {
  const { status, stdout } = await job.job("verify");
  return [status, ...stdout.toString().trimEnd().split("\n")];
}

async function reasonsOf(job: JobPlace): Promise<readonly string[]> {
  return (await planOf(job)).steps.map(({ step, todo, because }) => `${step} ${todo} ${because}`);
}

describe("an input that is not there", () => {
  test(
    "never lets its step be unchanged, and is named by verify, plan and at the start",
    async () => {
      const copy = { command: "cat data >copy; echo s >>log", inputs: ["dtaa"] };
      const job = makeJob(scene, "typo", { s: { ...copy, artifacts: ["copy"] } });
      writeFileSync(job.path("data"), "one\n");
      expect(await verify(job)).toEqual([1, "step s: its input dtaa is not there"]);
      expect((await job.job("run", "-v")).stderr).toContain("step s: its input dtaa is not there");
      writeFileSync(job.path("data"), "two\n");
      expect(await reasonsOf(job)).toEqual(["s run input-missing"]);
      expect((await planOf(job)).missing).toEqual(["step s: its input dtaa is not there"]);
      const { stdout } = await job.job("plan");
      expect(stdout.toString()).toContain("  s  runs  an input is not there: dtaa\n");
      expect((await job.job("run")).status).toBe(0);
      expect([job.lines("copy"), job.lines("log")]).toEqual([["two"], ["s", "s"]]);
      // As soon as it is there the step runs once more, and is unchanged then.
      writeFileSync(job.path("dtaa"), "");
      expect(await reasonsOf(job)).toEqual(["s run inputs-changed"]);
      expect((await job.job("run")).status).toBe(0);
      expect(await reasonsOf(job)).toEqual(["s nothing unchanged"]);
      expect((await job.job("verify")).status).toBe(0);
    },
    LIMIT_MS,
  );

  test(
    "sends its step back where a job goes on, and an unsafe one to a person",
    async () => {
      const job = makeJob(scene, "back", {
        copy: harmless("echo copy >>log", { inputs: ["dtaa"] }),
        pay: unsafe("echo pay >>log", { inputs: ["dtaa"] }),
        last: harmless("[ -e go ]", { needs: ["copy", "pay"] }),
      });
      expect((await job.job("run")).status).toBe(1);
      const { status, stderr } = await job.job("resume");
      expect([status, job.lines("log")]).toEqual([3, ["copy", "pay", "copy"]]);
      expect(stderr).toContain("step copy runs again: an input is not there: dtaa");
      expect(job.steps()).toEqual([
        "copy done exited 2",
        "pay unknown input-missing 1",
        "last pending exited 1",
      ]);
    },
    LIMIT_MS,
  );

  test(
    "is none while a step before it has not made it, and is one when that has run",
    async () => {
      const job = makeJob(scene, "made", {
        make: harmless("echo one >made", { artifacts: ["made"] }),
        between: harmless("true", { needs: ["make"] }),
        read: harmless("cat made >>log; false", { needs: ["between"], inputs: ["made"] }),
      });
      expect([(await job.job("verify")).status, (await planOf(job)).missing]).toEqual([0, []]);
      expect((await job.job("run")).status).toBe(1);
      expect((await job.job("verify")).status).toBe(0);
      rmSync(job.path("made"));
      expect(await verify(job)).toEqual([
        1,
        "step make: made: is not there",
        "step read: its input made is not there",
      ]);
      // It would be made again.
      expect((await planOf(job)).missing).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("the directory of a step that is not there", () => {
  test(
    "is named by verify and plan, and at the run",
    async () => {
      const job = makeJob(scene, "nowhere", { s: harmless("echo s >>../log", { cwd: "sub" }) });
      const line = `step s: its directory ${job.path("sub")} is not there`;
      expect(await verify(job)).toEqual([1, line]);
      expect((await planOf(job)).missing).toEqual([line]);
      const { status, stderr } = await job.job("run");
      expect([status, job.lines("log")]).toEqual([125, []]);
      expect(stderr).toContain(`could not be started: its directory ${job.path("sub")} is not`);
      mkdirSync(job.path("sub"));
      expect((await job.job("verify")).status).toBe(0);
      expect([(await job.job("run")).status, job.lines("log")]).toEqual([0, ["s"]]);
    },
    LIMIT_MS,
  );

  test(
    "is nothing to be told as long as a step before it may make it",
    async () => {
      const job = makeJob(scene, "coming", {
        make: harmless("mkdir -p sub"),
        use: harmless("echo use >>../log; [ -e go ]", { cwd: "sub", needs: ["make"] }),
        clean: harmless("rm -r sub", { needs: ["use"] }),
      });
      const isSilent = async (): Promise<unknown> => {
        return [(await job.job("verify")).status, (await planOf(job)).missing];
      };
      expect(await isSilent()).toEqual([0, []]);
      expect((await job.job("run")).status).toBe(1);
      rmSync(job.path("sub"), { recursive: true });
      const line = `step use: its directory ${job.path("sub")} is not there`;
      expect(await isSilent()).toEqual([1, [line]]);
      mkdirSync(job.path("sub"));
      appendFileSync(job.path("sub", "go"), "");
      expect((await job.job("run")).status).toBe(0);
      expect(await isSilent()).toEqual([0, []]);
    },
    LIMIT_MS,
  );
});
