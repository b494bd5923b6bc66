/**
 * The points of a job that are not those of a step in its course: before a step, at the end of the
 * job, where a decision is written, and where artifacts are read and removed.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { harmless, type JobPlace, makeJob, unsafe } from "../support/job-place.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
let strikes = 0;
afterEach(() => waitFor(() => scene.findProcesses().length === 0, "nobody of the job to be left"));

/** Runs the job with one fault, which must have fired, once. */
async function strike(job: JobPlace, fault: string): Promise<number> {
  strikes += 1;
  const evidence = scene.path(`edge-${strikes}`);
  const { status } = await job.fail(fault, evidence, "run");
  await waitFor(() => scene.findProcesses().length === 0, "nobody of the job to be left");
  const [point = ""] = /^[\w.]+/.exec(fault) ?? [];
  expect(readEvidence(evidence).map((one) => one.point)).toEqual([point]);
  return status;
}

const STATUS = { kill: 137, throw: 125, term: 143 } as const;

describe.each(["kill", "throw"] as const)("%s", (act) => {
  test.each([
    ["s1", "none"],
    ["s1", "unsafe"],
    ["s2", "unsafe"],
  ] as const)(
    "before step %s (%s): it was not begun, and is now",
    async (hit, effects) => {
      const of = (name: string) => (name === hit && effects === "unsafe" ? unsafe : harmless);
      const job = makeJob(scene, `next-${act}-${hit}-${effects}`, {
        s1: of("s1")("echo s1 >>log"),
        s2: of("s2")("echo s2 >>log", { needs: ["s1"] }),
      });
      expect(await strike(job, `step.next@${hit}=${act}`)).toBe(STATUS[act]);
      expect(job.steps()).toContain(`${hit} pending - 0`);
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["s1", "s2"]);
    },
    LIMIT_MS,
  );

  test(
    "at the end of the job: all is done, and nothing is done again",
    async () => {
      const job = makeJob(scene, `finish-${act}`, { pay: unsafe("echo pay >>log") });
      expect(await strike(job, `job.finish=${act}`)).toBe(STATUS[act]);
      expect([job.state(), job.steps()]).toEqual(["running", ["pay done exited 1"]]);
      expect([(await job.job("run")).status, job.state()]).toEqual([0, "done"]);
      expect(job.lines("log")).toEqual(["pay"]);
    },
    LIMIT_MS,
  );

  test(
    "where the answer of settle is written: it is asked again",
    async () => {
      const job = makeJob(scene, `settle-${act}`, {
        pay: unsafe("echo pay >>log; kill -9 $$", { settle: "echo asked >>log" }),
      });
      expect(await strike(job, `step.change.commit=${act}`)).toBe(STATUS[act]);
      expect(job.steps()).toEqual(["pay interrupted killed-by-signal 1"]);
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["pay", "asked", "asked"]);
    },
    LIMIT_MS,
  );
});

describe("an artifact that cannot be", () => {
  test.each(["artifact.read=eio", "artifact.hashed=throw"])(
    "hashed is none: %s",
    async (fault) => {
      const name = `unread-${fault.replaceAll(/\W/g, "-")}`;
      const job = makeJob(scene, name, {
        make: harmless("echo make >>log; echo x >out", { artifacts: ["out"] }),
        after: harmless("echo after >>log", { needs: ["make"] }),
      });
      expect(await strike(job, fault)).toBe(65);
      expect(job.steps()).toEqual(["make failed artifact-unreadable 1", "after pending - 0"]);
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log")).toEqual(["make", "make", "after"]);
    },
    LIMIT_MS,
  );

  test(
    "removed before its step runs again keeps it from running",
    async () => {
      const job = makeJob(scene, "unremoved", {
        make: harmless("echo make >>log; mkdir -p out; echo x >out/x; [ -e go ]", {
          artifacts: ["out"],
        }),
      });
      expect((await job.job("run")).status).toBe(1);
      expect(await strike(job, "artifact.remove=eio")).toBe(65);
      expect(job.lines("log")).toEqual(["make"]);
      await Bun.write(job.path("go"), "");
      expect([(await job.job("run")).status, job.lines("log")]).toEqual([0, ["make", "make"]]);
    },
    LIMIT_MS,
  );
});
