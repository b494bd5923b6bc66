/**
 * What a person asks of a job on the line, on the compiled binary: to decide about a step, to run
 * one alone, to run from one on.
 */
import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { harmless, makeJob, unsafe } from "../support/job-place.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

describe("a decision about a step", () => {
  test(
    "is refused where no job is unfinished: nothing is begun anew, and nothing paid twice",
    async () => {
      const job = makeJob(scene, "over", { pay: unsafe("echo pay >>log") });
      const words = ["--accept-unknown", "pay=done"];
      const early = await job.job("run", ...words);
      expect([early.status, job.lines("log")]).toEqual([78, []]);
      expect((await job.job("run")).status).toBe(0);
      for (const verb of ["run", "resume", "plan"]) {
        const { status, stderr } = await job.job(verb, ...words);
        expect([verb, status, job.lines("log")]).toEqual([verb, 78, ["pay"]]);
        expect(stderr).toContain("no job of this name is unfinished");
        expect(stderr).toContain("hint: watchdog job status over");
      }
    },
    LIMIT_MS,
  );
});

describe("what an earlier job has done", () => {
  test(
    "is not taken over by --from or --only where a newer job has tried it and failed",
    async () => {
      const job = makeJob(scene, "charged", {
        charge: unsafe("echo charge >>log; [ ! -e broken ]"),
        receipt: harmless("echo receipt >>log", { needs: ["charge"] }),
      });
      expect((await job.job("run")).status).toBe(0);
      writeFileSync(job.path("broken"), "");
      expect((await job.job("run")).status).toBe(1);
      const night = ["charge", "receipt", "charge"];
      for (const flag of ["--from", "--only"]) {
        const { status, stderr } = await job.job("run", "--fresh", flag, "receipt");
        expect([flag, status, job.lines("log")]).toEqual([flag, 78, night]);
        expect(stderr).toContain("charge");
      }
    },
    LIMIT_MS,
  );

  test(
    "is not taken over where a person has called it failed since",
    async () => {
      const job = makeJob(scene, "called", {
        charge: unsafe("echo charge >>log; [ ! -e broken ] || kill -9 $$"),
        receipt: harmless("echo receipt >>log", { needs: ["charge"] }),
      });
      expect((await job.job("run")).status).toBe(0);
      writeFileSync(job.path("broken"), "");
      expect((await job.job("run")).status).toBe(3);
      expect((await job.job("run", "--accept-unknown", "charge=fail")).status).not.toBe(0);
      const { status } = await job.job("run", "--fresh", "--only", "receipt");
      expect([status, job.lines("log")]).toEqual([78, ["charge", "receipt", "charge"]]);
    },
    LIMIT_MS,
  );

  test(
    "is unchanged no longer where a newer job has failed at it",
    async () => {
      const job = makeJob(scene, "unchanged", {
        build: {
          command: "echo build >>log; echo built >out; [ ! -e broken ]",
          inputs: [],
          artifacts: ["out"],
        },
      });
      expect((await job.job("run")).status).toBe(0);
      expect([(await job.job("run")).status, job.lines("log")]).toEqual([0, ["build"]]);
      writeFileSync(job.path("broken"), "");
      expect((await job.job("run", "--redo", "build")).status).toBe(1);
      rmSync(job.path("broken"));
      expect((await job.job("run", "--fresh")).status).toBe(0);
      expect(job.lines("log")).toEqual(["build", "build", "build"]);
    },
    LIMIT_MS,
  );
});
