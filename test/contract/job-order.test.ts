/** An order to the runner of a job that comes from nobody who has the lease of the job. */
import { expect, test } from "bun:test";
import { ORDER_DESCRIPTOR } from "../../src/core/hook-order.ts";
import { NOTHING_ASKED } from "../../src/core/job-asked.ts";
import { type JobOrder, renderJobOrder } from "../../src/core/job-order.ts";
import { harmless, makeJob } from "../support/job-place.ts";
import { jobOf, step } from "../support/job-specs.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const RUN_ID = "01900000-0000-7000-8000-000000000001";

test(
  "an order without the lease of the job is not carried out",
  async () => {
    const job = makeJob(scene, "unleased", { one: harmless("echo one >>log") });
    const order: JobOrder = {
      spec: jobOf([step("one", { command: { kind: "shell", text: "echo one >>log" } })], {
        directory: job.directory,
      }),
      asked: NOTHING_ASKED,
      maxParallel: 1,
      runWords: new Map(),
      nestedWords: [],
      place: [],
      masks: [],
      tells: "all",
    };
    await Bun.write(job.path("order"), renderJobOrder(order));
    const line = `exec "$0" __job ${ORDER_DESCRIPTOR}<>${job.path("order")}`;
    const env = { WATCHDOG_RUN_ID: RUN_ID, WATCHDOG_JOB: "nightly" };
    const words = ["bash", "-c", line, RELEASE];
    const { status, stderr } = await job.scene.startProgram(words, { env }).ended;
    expect([status, stderr, job.lines("log")]).toEqual([64, "", []]);
  },
  LIMIT_MS,
);
