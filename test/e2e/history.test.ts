/** `watchdog history`: how runs ended, and what of it a program can read. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { ask, askJson, askLines, waitForHolder, waitForRow } from "../support/ask.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

describe("the history", () => {
  test("shows the runs of a job newest first, with the outcome of each", async () => {
    for (const [job, command] of [
      ["mixed", ["true"]],
      ["other", ["true"]],
      ["mixed", ["sh", "-c", "exit 3"]],
      ["mixed", ["sh", "-c", "kill -KILL $$"]],
      ["mixed", ["/no/such/program"]],
    ] as const) {
      await scene.run(["--name", job, "--", ...command]);
    }
    await scene.run(["--name", "mixed", "--timeout", "100ms", "--", "sleep", "303"]);
    const lines = await askLines(scene, ["history", "mixed"]);
    const shown = lines.map((line) => line.split(/ {2,}/).slice(1, 3).join(" "));
    expect(shown).toEqual(["timeout 124", "not_found 127", "signaled 137", "failed 3", "ok 0"]);
    const { format, job, runs } = await askJson(scene, ["history", "mixed"]);
    expect([format, job]).toEqual([1, "mixed"]);
    expect(runs.map((run: { exit_status: number }) => run.exit_status)).toEqual([
      124, 127, 137, 3, 0,
    ]);
    expect(runs.map((run: { run_id: string }) => run.run_id)).toEqual(
      lines.map((line) => /[0-9a-f-]{36}/.exec(line)?.[0]),
    );
    const all = await askJson(scene, ["history", "--limit", "4"]);
    expect(all.runs).toHaveLength(4);
    expect((await askJson(scene, ["history", "other"])).runs).toHaveLength(1);
    const [last, ...more] = await askLines(scene, ["history", "mixed", "--limit", "1"]);
    expect([last?.includes(runs[0].run_id), more]).toEqual([true, []]);
  });

  test("tells the record of a run as its result file does", async () => {
    await scene.run(["--name", "same", ...scene.recordTo("same"), "--", "true"]);
    const { runs } = await askJson(scene, ["history", "same"]);
    const written = scene.readRecord("same");
    for (const name of Object.keys(written)) {
      expect([name, runs[0][name]]).toEqual([name, written[name]]);
    }
  });

  test("says who held the key of a run that was refused, and which run goes on", async () => {
    const holder = scene.start(["--name", "busy", "--", "sleep", "304"]);
    const { run_id: runId } = await waitForHolder(scene, "busy");
    await waitForRow(scene, "busy", "running");
    expect((await scene.run(["--name", "busy", "--", "true"])).status).toBe(75);
    const [refused, running] = await askLines(scene, ["history", "busy"]);
    expect(refused).toMatch(/ locked +75 /);
    expect(refused).toContain(`job:busy was held by run ${runId} (pid ${holder.pid}, `);
    expect(running).toMatch(new RegExp(` running +- +- +${runId} +pid ${holder.pid}$`));
    holder.kill("SIGTERM");
    await holder.ended;
  });

  test("says that a run was abandoned, and who has written that down", async () => {
    const run = scene.start(["--name", "killed", "--", "sleep", "305"]);
    await waitForHolder(scene, "killed");
    run.kill("SIGKILL");
    await run.ended;
    const row = await waitForRow(scene, "killed", "ended");
    expect(row).toMatchObject({ outcome: "abandoned", exit_status: null });
    const [line] = await askLines(scene, ["history", "killed"]);
    expect(line).toMatch(/ abandoned +- .*its guard has written this$/);
  });

  test("is empty where nothing ever ran, and of an unknown job", async () => {
    const nowhere = ["--state-dir", scene.path("nowhere")];
    expect(await askLines(scene, ["history", ...nowhere])).toEqual(["no run is known"]);
    expect((await askJson(scene, ["history", ...nowhere])).runs).toEqual([]);
    expect(await askLines(scene, ["history", "nobody"])).toEqual(["no run of nobody is known"]);
  });

  test("that is broken is told in a line, with 125", async () => {
    const state = scene.path("broken");
    await scene.run(["--state-dir", state, "--no-lease", "--", "true"]);
    writeFileSync(`${state}/journal.db`, "torn".repeat(2_000));
    const { status, stdout, stderr } = await ask(scene, ["history", "--state-dir", state]);
    expect([status, stdout.toString()]).toEqual([125, ""]);
    expect(stderr).toMatch(/^watchdog: journal: [^\n]*\n$/);
  });
});
