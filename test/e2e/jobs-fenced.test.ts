/**
 * The runner of a job that stood still while the job became somebody else's: another lock file and
 * another record stand in the place of its own, and the journal knows a later grant. When it goes
 * on it writes nothing, starts nothing, and leaves with 76.
 */
import { expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { findRunners, harmless, makeJob } from "../support/job-place.ts";
import { placeOf, stealRecord, waitForBeat } from "../support/lease-seen.ts";
import { query } from "../support/own-state.ts";
import { readStatusLine, waitForCommand } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const TABLES = ["jobs", "steps", "step_attempts", "artifacts"];

test(
  "changes no row, starts no step, and leaves with 76",
  async () => {
    const job = makeJob(scene, "stood", {
      one: harmless(
        "echo 1 >>log; until [ -e go ]; do sleep 0.02; done; echo x >out; echo 1e >>log",
        {
          artifacts: ["out"],
        },
      ),
      two: harmless("echo 2 >>log", { needs: ["one"] }),
    });
    const words = ["--heartbeat-interval=150ms", ...scene.recordTo("stood")];
    const run = job.start("run", ...words);
    const place = placeOf(job.scene.stateDirectory, "stood");
    await waitFor(() => job.lines("log").includes("1"), "step 1");
    await waitForBeat(place, 2);
    const [runner = 0] = findRunners(run.pid);
    const stopped = [run.pid, runner];
    for (const pid of stopped) process.kill(pid, "SIGSTOP");
    const standsStill = (pid: number) => readStatusLine(pid, "State")?.startsWith("T") === true;
    await waitFor(() => stopped.every(standsStill), "both to stand still");

    writeFileSync(`${place.lock}.new`, "", { mode: 0o600 });
    renameSync(`${place.lock}.new`, place.lock);
    const other = scene.startProgram(["flock", place.lock, "sleep", "96501"]);
    const [holder = 0] = await waitForCommand(scene, "sleep 96501");
    stealRecord(place);
    query(job.scene, "UPDATE leases SET generation = generation + 5 WHERE name = 'stood'");
    const rowsOf = () => TABLES.map((table) => query(job.scene, `SELECT * FROM ${table}`));
    const before = rowsOf();

    writeFileSync(job.path("go"), "");
    await waitFor(() => job.lines("log").includes("1e"), "the command of step 1 to end");
    for (const pid of stopped.toReversed()) process.kill(pid, "SIGCONT");
    const { status } = await run.ended;
    expect([status, scene.readRecord("stood")["outcome"]]).toEqual([76, "lease_lost"]);
    expect(rowsOf()).toEqual(before);
    expect(job.lines("log")).toEqual(["1", "1e"]);
    process.kill(holder, "SIGTERM");
    await other.ended;
  },
  LIMIT_MS,
);
