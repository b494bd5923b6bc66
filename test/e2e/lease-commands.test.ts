/** `watchdog lease list` and `lease show`: keys, verdicts and all that is recorded. */
import { describe, expect, test } from "bun:test";
import { ask, askJson, askLines, waitForHolder } from "../support/ask.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

describe("lease list", () => {
  test("has a line for each key that ever was, held or free", async () => {
    const state = ["--state-dir", scene.path("listed")];
    expect(await askLines(scene, ["lease", "list", ...state])).toEqual(["no lease is known"]);
    await scene.run([...state, "--name", "done", "--lock", "db:odd name/ü", "--", "true"]);
    const held = scene.start([...state, "--name", "going", "--lane", "gpu", "--", "sleep", "308"]);
    const inPlace = { ...scene, startProgram: withState(state) };
    await waitForHolder(inPlace, "going");
    const lines = await askLines(scene, ["lease", "list", ...state]);
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 4).join(" | "))).toEqual([
      "db:odd name/ü | free | R4 released | generation 1",
      "job:done | free | R4 released | generation 1",
      "job:going | held | R2 beat-fresh | generation 1",
      "lane:gpu | held | R2 beat-fresh | generation 1",
    ]);
    expect(lines[3]).toMatch(new RegExp(` pid ${held.pid}, \\S+ +beat \\S+ m?s ago$`));
    const { format, leases } = await askJson(scene, ["lease", "list", ...state]);
    expect(format).toBe(1);
    expect(leases.map(({ key, verdict }: Record<string, string>) => `${key} ${verdict}`)).toEqual([
      "db:odd name/ü free",
      "job:done free",
      "job:going held",
      "lane:gpu held",
    ]);
    held.kill("SIGTERM");
    await held.ended;
  });
});

function withState(state: readonly string[]): typeof scene.startProgram {
  return (argv, options) => scene.startProgram([...argv, ...state], options);
}

describe("lease show", () => {
  test("shows every field of record and beat, merged", async () => {
    const run = scene.start([
      "--name",
      "shown",
      "--heartbeat-interval",
      "5s",
      "--task",
      "T42",
      "--",
      "sleep",
      "309",
    ]);
    const lease = await waitForHolder(scene, "shown");
    expect(lease).toMatchObject({
      format: 1,
      key: "job:shown",
      kind: "job",
      name: "shown",
      generation: 1,
      state: "held",
      job: "shown",
      pid: run.pid,
      heartbeat_interval_ms: 5_000,
      stale_after_ms: 20_000,
      task_id: "T42",
      lane: null,
      run_state: "running",
      command: "sleep 309",
      member_count: 1,
      released_at: null,
    });
    expect(lease.heartbeat_seq).toBeGreaterThan(0);
    expect(lease.children[0].pid).toBeGreaterThan(run.pid);
    const lines = await askLines(scene, ["lease", "show", "task:T42"]);
    expect(lines.map((line) => line.split(/ /, 1)[0])).toEqual(Object.keys(lease));
    run.kill("SIGTERM");
    await run.ended;
    const after = await askJson(scene, ["lease", "show", "job:shown"]);
    expect(after).toMatchObject({ verdict: "free", state: "released", generation: 1 });
    expect(after.released_at).not.toBeNull();
  });

  test("of a key that nobody ever held is free, and makes nothing", async () => {
    const lease = await askJson(scene, ["lease", "show", "lane:never"]);
    expect(lease).toMatchObject({ verdict: "free", because: "never-held", generation: null });
    const { leases } = await askJson(scene, ["lease", "list"]);
    expect(leases.map(({ key }: { key: string }) => key)).not.toContain("lane:never");
  });

  test("does not keep a run from starting, however often it is asked", async () => {
    const looks = Array.from({ length: 20 }, () => ask(scene, ["lease", "show", "job:watched"]));
    const runs = await Promise.all([
      scene.run(["--name", "watched", "--", "true"]),
      ...looks,
      ask(scene, ["lease", "list"]),
    ]);
    expect(runs.map(({ status }) => status).filter((status) => status !== 0)).toEqual([]);
  });
});
