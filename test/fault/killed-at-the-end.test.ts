/**
 * Killed between the decision of the outcome and R5: journal and result file never tell two ends,
 * whoever writes them, and whom nobody was to end lives on.
 */
import { describe, expect, test } from "bun:test";
import { findAnywhere } from "../support/processes.ts";
import { FAULTS, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { FaultCase, type Past } from "./lease-fault-case.ts";
import { SHORT } from "./lease-sweep.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;

async function prepare(past: Past = "released"): Promise<FaultCase> {
  return new FaultCase(scene).prepare(past);
}

/** State and outcome of the result file. */
function resultOf(one: FaultCase): unknown[] {
  const result = one.json("result");
  return [result?.["state"], result?.["outcome"]];
}

describe("with its guard", () => {
  test(
    "the guard tells the end that was decided, though the next run was faster",
    async () => {
      const one = await prepare();
      await one.start("release.R3=kill,bury.record=stop", SHORT).ended;
      const guard = await waitFor(() => one.look().helpers[0], "its guard");
      await one.waitForStop(guard);
      const next = await one.come("next");
      // The twin: the next run can only tell that it was abandoned.
      expect([next.status, one.rows()]).toEqual([0, ["abandoned", "ok 0"]]);
      expect(resultOf(one)).toEqual(["running", null]);
      process.kill(guard, "SIGCONT");
      await one.waitForHelpers();
      expect(one.rows()).toEqual(["failed 7", "ok 0"]);
      expect(resultOf(one)).toEqual(["ended", "failed"]);
      expect(one.keys()).toEqual(Array(2).fill(expect.stringMatching(/^released 3 ours /)));
    },
    LIMIT_MS,
  );

  test.each(["release.R2", "release.R3", "release.R4"])(
    "what was kept lives on, killed at %s",
    async (point) => {
      const one = await prepare();
      const sleep = `sleep 9412${point.slice(-1)}`;
      const script = `"${FAULTS}" keep -- ${sleep} >/dev/null 2>&1; exit 7`;
      try {
        await one.start(`${point}=kill`, script).ended;
        await one.waitForHelpers();
        expect(one.rows()).toEqual(["failed 7"]);
        expect(findAnywhere(sleep)).toHaveLength(1);
      } finally {
        one.endMembers();
      }
    },
    LIMIT_MS,
  );
});

describe("with its guard killed, too,", () => {
  test.each([
    ["release.R2", ["abandoned"], ["running", null]],
    ["release.R3", ["abandoned"], ["running", null]],
    ["release.R4", ["failed 7"], ["ended", "failed"]],
  ] as const)(
    "at %s the next run says nothing that the result file does not bear",
    async (point, told, result) => {
      const one = await prepare();
      const run = one.start(`${point}=stop`, SHORT);
      await one.waitForStop();
      const { helpers } = one.look();
      expect(helpers).toHaveLength(2);
      const guards = helpers.filter((pid) => pid !== run.pid);
      for (const pid of guards) process.kill(pid, "SIGKILL");
      run.kill("SIGKILL");
      await run.ended;
      await one.waitForHelpers();
      const next = await one.come("next");
      expect([next.status, one.rows()]).toEqual([0, [...told, "ok 0"]]);
      expect(resultOf(one)).toEqual([...result]);
    },
    LIMIT_MS,
  );
});
