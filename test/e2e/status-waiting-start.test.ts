/**
 * A start that waits for its dependencies has the lock of its key, and no grant yet: others are
 * told that it waits, whether or not it is the one that asks.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { ask, askJson, askLines } from "../support/ask.ts";
import { openScene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const BOUNDS = ["--probe-backoff", "50ms..100ms", "--probe-max-attempts", "100000"];
const LOCKED = 75;

/** Behind a file that is not there yet. */
function startBehind(job: string, file: string): Started {
  const probe = ["--probe", `ready=cmd:test -e ${file}`, ...BOUNDS];
  return scene.start(["--name", job, "--log", "off", ...probe, "--", "echo", "ran"]);
}

test(
  "is told as such by status, lease show and whoever is refused, for each of those that wait",
  async () => {
    const file = scene.path("ready");
    const jobs = ["asks", "looks"];
    const runs = jobs.map((job) => startBehind(job, file));
    for (const [index, job] of jobs.entries()) {
      const pid = runs[index]?.pid;
      const shown = await waitFor(async () => {
        const lease = await askJson(scene, ["lease", "show", `job:${job}`]);
        return lease.waiting_start_pid === null ? false : lease;
      }, `a start of ${job} that waits`);
      expect(shown).toMatchObject({ because: "being-acquired", waiting_start_pid: pid });
      const lines = await askLines(scene, ["status"]);
      expect(lines).toContain(`job:${job}  held: a start (pid ${pid}) waits for its dependencies`);
      const refused = await ask(scene, ["run", "-v", "--name", job, "--", "true"]);
      expect(refused.status).toBe(LOCKED);
      expect(refused.stderr).toContain(
        `is had by a start that waits for its dependencies (pid ${pid})`,
      );
    }
    writeFileSync(file, "");
    for (const run of runs) {
      const { status, stdout } = await run.ended;
      expect([status, stdout.toString()]).toEqual([0, "ran\n"]);
    }
    for (const job of jobs) {
      const { verdict, waiting_start_pid } = await askJson(scene, ["lease", "show", `job:${job}`]);
      expect([verdict, waiting_start_pid]).toEqual(["free", null]);
    }
  },
  LIMIT_MS,
);

test(
  "negative twin: a run that goes on waits for nothing",
  async () => {
    const run = scene.start(["--name", "on", "--probe", "on=cmd:true", "--", "sleep", "90411"]);
    const shown = await waitFor(async () => {
      const lease = await askJson(scene, ["lease", "show", "job:on"]);
      return lease.because === "beat-fresh" ? lease : false;
    }, "the run");
    expect(shown.waiting_start_pid).toBeNull();
    run.kill("SIGTERM");
    await run.ended;
  },
  LIMIT_MS,
);
