/** `watchdog stop`: a run is ended by its own watchdog, with its tree, and nobody else is. */
import { describe, expect, test } from "bun:test";
import { ask, askJson, askLines, waitForHolder, waitForRow } from "../support/ask.ts";
import { findByCommand, readStatusLine, waitForCommand } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

describe("stop", () => {
  test("ends the run and its tree, waits for it, and says so", async () => {
    const script = "sleep 310 & exec sleep 311";
    const run = scene.start([
      "--name",
      "plain",
      ...scene.recordTo("plain"),
      "--",
      "sh",
      "-c",
      script,
    ]);
    const { run_id: runId } = await waitForHolder(scene, "plain");
    await waitForCommand(scene, "sleep 310");
    expect(await askLines(scene, ["stop", "plain"])).toEqual([`stopped plain (run ${runId})`]);
    expect(findByCommand(scene, "sleep 310")).toEqual([]);
    expect(findByCommand(scene, "sleep 311")).toEqual([]);
    expect((await run.ended).status).toBe(143);
    expect(scene.readRecord("plain")).toMatchObject({ outcome: "stopped", because: "terminated" });
    expect(await askJson(scene, ["lease", "show", "job:plain"])).toMatchObject({ verdict: "free" });
  });

  test("takes the id of a run, and leaves the others alone", async () => {
    const one = scene.start(["--name", "one", "--", "sleep", "312"]);
    const other = scene.start(["--name", "other", "--", "sleep", "313"]);
    const { run_id: runId } = await waitForHolder(scene, "one");
    await waitForHolder(scene, "other");
    expect(await askLines(scene, ["stop", runId])).toEqual([`stopped one (run ${runId})`]);
    await one.ended;
    expect(findByCommand(scene, "sleep 313")).toHaveLength(1);
    other.kill("SIGTERM");
    await other.ended;
  });

  test("has a tree killed that ignores TERM, after the grace", async () => {
    const script = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    const run = scene.start(["--name", "stubborn", "--", "sh", "-c", script]);
    const { run_id: runId } = await waitForHolder(scene, "stubborn");
    await waitFor(
      async () => (await ask(scene, ["logs", "stubborn"])).stdout.toString() === "ready\n",
      "the trap",
    );
    const ended = await ask(scene, ["stop", "--kill-after", "300ms", "stubborn"]);
    expect([ended.status, ended.stdout.toString()]).toEqual([
      0,
      `stopped stubborn (run ${runId})\n`,
    ]);
    expect(ended.stderr).toContain("sent TERM once more");
    expect((await run.ended).status).toBe(137);
  });

  test("continues a watchdog that was stopped", async () => {
    const run = scene.start(["--name", "frozen", "--", "sleep", "314"]);
    await waitForHolder(scene, "frozen");
    run.kill("SIGSTOP");
    await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "a stopped watchdog");
    const { status, stderr } = await ask(scene, ["stop", "frozen"]);
    expect([status, stderr.includes("was stopped")]).toEqual([0, true]);
    await run.ended;
  });

  test("finds a run without a lease, and must be told which where there are two", async () => {
    const first = scene.start(["--no-lease", "--name", "bare", "--", "sleep", "315"]);
    const { run_id: firstId } = await waitForRow(scene, "bare", "running");
    const second = scene.start(["--no-lease", "--name", "bare", "--", "sleep", "316"]);
    await waitFor(
      async () => (await askJson(scene, ["status", "bare"])).runs.length === 2,
      "two runs of one name",
    );
    const { status, stderr } = await ask(scene, ["stop", "bare"]);
    expect([status, stderr.includes("means 2 runs")]).toEqual([64, true]);
    expect(findByCommand(scene, "sleep 315")).toHaveLength(1);
    expect(findByCommand(scene, "sleep 316")).toHaveLength(1);
    expect(await askLines(scene, ["stop", firstId])).toEqual([`stopped bare (run ${firstId})`]);
    expect((await ask(scene, ["stop", "bare"])).status).toBe(0);
    await Promise.all([first.ended, second.ended]);
  });

  test("of what does not run is 1, with how it last ended", async () => {
    await scene.run(["--name", "done", "--", "true"]);
    const done = await ask(scene, ["stop", "done"]);
    expect([done.status, done.stdout.length]).toEqual([1, 0]);
    expect(done.stderr).toStartWith('watchdog: "done" is not running; last run: ok, status 0, ');
    const unknown = await ask(scene, ["stop", "nobody"]);
    expect([unknown.status, unknown.stderr]).toEqual([
      1,
      'watchdog: no run is known of "nobody"\nwatchdog: hint: watchdog status\n',
    ]);
  });

  test("of the run that it is a part of is refused with 77", async () => {
    const script = `"$0" stop inside; echo "status $?"`;
    const { stdout, stderr, status } = await scene.run([
      "--name",
      "inside",
      "--",
      "sh",
      "-c",
      script,
      RELEASE,
    ]);
    expect([status, stdout.toString()]).toEqual([0, "status 77\n"]);
    expect(stderr).toContain("this command is a part of it");
  });

  test("of a run whose watchdog is dead signals nobody", async () => {
    const run = scene.start(["--name", "killed", "--", "sleep", "317"]);
    await waitForHolder(scene, "killed");
    run.kill("SIGKILL");
    await run.ended;
    await waitForRow(scene, "killed", "ended");
    const { status, stderr } = await ask(scene, ["stop", "killed"]);
    expect(status).toBe(1);
    expect(stderr).toContain("its lease job:killed was not given back: its watchdog is dead");
  });
});
