/**
 * A job that runs several steps at the same time, on the compiled binary: what has ended is written
 * down at once, whatever another step is at. A crash until then would leave an unsafe step unknown.
 */
import { expect, test } from "bun:test";
import { truncateSync, writeFileSync } from "node:fs";
import { makeJob } from "../support/job-place.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
/** Sparse: it takes no place, and longer to read than any test waits. */
const HUGE_BYTES = 2 ** 40;
const TERMINATED = 143;

test(
  "a step ends while the inputs of another one are read, before the reading is over",
  async () => {
    const job = makeJob(
      scene,
      "read",
      {
        a: { command: "echo a >>log", side_effects: "unsafe" },
        b: { command: "echo b >>log", side_effects: "none", inputs: ["huge"] },
        c: { command: "echo c >>log", side_effects: "none", needs: ["a"] },
      },
      { max_parallel: 2 },
    );
    writeFileSync(job.path("huge"), "");
    truncateSync(job.path("huge"), HUGE_BYTES);
    const run = job.start("run");
    await waitFor(() => job.lines("log").includes("c"), "those that do not wait for it");
    const [a, b] = job.steps();
    expect([a, b]).toEqual(["a done exited 1", "b pending - 0"]);
    run.kill("SIGTERM");
    expect((await run.ended).status).toBe(TERMINATED);
    expect(job.lines("log")).toEqual(["a", "c"]);
  },
  LIMIT_MS,
);

test(
  "a step ends while the settle of another one is asked",
  async () => {
    const settle = "echo s >>asked; until [ -e go ]; do sleep 0.02; done; exit 0";
    const job = makeJob(
      scene,
      "settle",
      {
        a: { command: "kill -9 $$", side_effects: "unsafe", settle },
        b: {
          command: "until [ -e asked ]; do sleep 0.02; done; echo b >>log",
          side_effects: "unsafe",
        },
        c: { command: "echo c >>log", side_effects: "none", needs: ["b"] },
        d: { command: "echo d >>log", side_effects: "none", needs: ["a", "c"] },
      },
      { max_parallel: 2 },
    );
    const run = job.start("run");
    await waitFor(() => job.lines("log").includes("c"), "those that do not wait for it");
    expect(job.steps()[0]).toBe("a interrupted killed-by-signal 1");
    writeFileSync(job.path("go"), "");
    expect((await run.ended).status).toBe(0);
    expect([job.lines("log"), job.steps()[0]]).toEqual([
      ["b", "c", "d"],
      "a done settled-happened 1",
    ]);
  },
  LIMIT_MS,
);
