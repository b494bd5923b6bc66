/** `watchdog keep` in a step of a job, on the compiled binary: what it starts outlives the step. */
import { afterEach, expect, test } from "bun:test";
import { harmless, makeJob } from "../support/job-place.ts";
import { findByCommand } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const KEPT = "sleep 96431";
const LEFT = "sleep 96432";

afterEach(async () => {
  for (const pid of findByCommand(scene, KEPT)) process.kill(pid, "SIGKILL");
  await waitFor(() => findByCommand(scene, KEPT).length === 0, `no '${KEPT}' any more`);
});

test.each([
  ["started directly", {}],
  ["that is a run of its own", { max_parallel: 2 }],
])(
  "a step %s keeps it, and nothing beside it",
  async (_, more) => {
    const left = `(setsid ${LEFT} >/dev/null 2>&1 &)`;
    const isThere = `until pgrep -fx '${KEPT}' && pgrep -fx '${LEFT}'; do sleep 0.02; done`;
    const steps = {
      start: harmless(`${RELEASE} keep -- ${KEPT}; ${left}; ${isThere} >/dev/null`),
      look: harmless(`pgrep -fx '${LEFT}' >left; pgrep -fx '${KEPT}' >kept`, { needs: ["start"] }),
    };
    const job = makeJob(scene, `kept-${"max_parallel" in more}`, steps, more);
    const { status, stderr } = await job.job("run");
    expect([status, job.steps()]).toEqual([0, ["start done exited 1", "look done exited 1"]]);
    const kept = findByCommand(scene, KEPT);
    expect([kept.map(String), job.lines("left")]).toEqual([job.lines("kept"), []]);
    expect(stderr).not.toContain(KEPT);
    expect(stderr).toContain(LEFT);
  },
  LIMIT_MS,
);
