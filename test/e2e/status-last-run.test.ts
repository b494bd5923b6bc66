/** The last run of a name, as `watchdog status` shows it: the newest one that is over. */
import { expect, test } from "bun:test";
import { askJson, askLines, waitForHolder, waitForRow } from "../support/ask.ts";
import { killWithGuard } from "../support/killing.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const UNFINISHED = /^ {2}pl {2}unfinished, started .*; its watchdog is not seen here, and its end/;

test("is one that was killed with its guard, and not the good one before it", async () => {
  expect((await scene.run(["--name", "pl", "--", "true"])).status).toBe(0);
  const run = scene.start(["--name", "pl", "--", "sleep", "330"]);
  const { run_id: runId } = await waitForHolder(scene, "pl");
  await waitForRow(scene, "pl", "running");
  // While it goes on, the one before is the last that is over.
  expect((await askLines(scene, ["status", "pl"])).at(-1)).toMatch(/^ {2}pl {2}ok, status 0, /);
  await killWithGuard(run);
  for (const words of [["status", "pl"], ["status", "job:pl"], ["status"]]) {
    expect((await askLines(scene, words)).at(-1)).toMatch(UNFINISHED);
    const { last_runs: last } = await askJson(scene, words);
    expect(last).toMatchObject([{ run_id: runId, state: "running", outcome: null }]);
  }
  expect((await scene.run(["--name", "pl", "--", "true"])).status).toBe(0);
  expect((await askLines(scene, ["status", "pl"])).at(-1)).toMatch(/^ {2}pl {2}ok, status 0, /);
});
