/** `watchdog status`: what runs now, how it is, and how each job last ended. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { ask, askJson, askLines, waitForHolder, waitForRow } from "../support/ask.ts";
import { FAULTS, openScene, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** It is killed long before this is over: status must have time to ask, on any machine. */
const BLOCKED_MS = 60_000;

/** A line of a block by its label. */
function labelled(lines: readonly string[], label: string): string | undefined {
  return lines.find((line) => line.startsWith(`  ${label} `))?.slice(12);
}

describe("status", () => {
  test("without any state says that no lease is held, and makes nothing", async () => {
    const nowhere = scene.path("nowhere");
    expect(await askLines(scene, ["status", "--state-dir", nowhere])).toEqual(["no lease is held"]);
    const { leases, runs, state_directory } = await askJson(scene, [
      "status",
      "--state-dir",
      nowhere,
    ]);
    expect([leases, runs, state_directory]).toEqual([[], [], nowhere]);
    expect(existsSync(nowhere)).toBe(false);
  });

  test("shows a run while it goes on, under its job, its key and its id, and its end", async () => {
    const run = scene.start(["--name", "shown", "--lane", "shown", "--", "sleep", "300"]);
    const { run_id: runId, pid } = await waitForHolder(scene, "shown");
    expect(pid).toBe(run.pid);
    for (const name of ["shown", "job:shown", runId]) {
      const lines = await askLines(scene, ["status", name]);
      expect(lines[0]).toMatch(/^job:shown {2}held since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
      expect(labelled(lines, "run")).toBe(`${runId} (generation 1)`);
      expect(labelled(lines, "owner")).toStartWith(`pid ${pid}, `);
      expect(labelled(lines, "command")).toBe("sleep 300");
      expect(labelled(lines, "state")).toBe("running, 1 process");
      expect(labelled(lines, "beat")).toMatch(/^\d+(\.\d)? m?s ago$/);
      expect(labelled(lines, "verdict")).toBe("held (R2 beat-fresh)");
    }
    const { leases } = await askJson(scene, ["status", "shown"]);
    expect(leases.map(({ key }: { key: string }) => key)).toEqual(["job:shown", "lane:shown"]);
    expect(leases[0]).toMatchObject({ run_id: runId, run_state: "running", member_count: 1 });
    run.kill("SIGTERM");
    await run.ended;
    const after = await askLines(scene, ["status", "shown"]);
    expect(after[0]).toMatch(/^job:shown {2}free since /);
    expect(after.at(-1)).toMatch(/^ {2}shown {2}stopped, status 143, ended .*; terminated$/);
  });

  test("of a name that nobody knows says so, and that is an answer", async () => {
    expect(await askLines(scene, ["status", "nobody"])).toEqual(['nothing is known of "nobody"']);
  });

  test("shows a run without a lease while its watchdog lives", async () => {
    const run = scene.start(["--no-lease", "--name", "bare", "--", "sleep", "301"]);
    await waitForRow(scene, "bare", "running");
    const lines = await askLines(scene, ["status", "bare"]);
    expect(lines[0]).toStartWith("bare  running without a lease since ");
    expect(labelled(lines, "owner")).toBe(`pid ${run.pid}`);
    const { runs, leases } = await askJson(scene, ["status", "bare"]);
    expect(leases).toEqual([]);
    expect(runs).toMatchObject([{ job: "bare", pid: run.pid, state: "running" }]);
    run.kill("SIGTERM");
    await run.ended;
    expect((await askJson(scene, ["status", "bare"])).runs).toEqual([]);
  });

  test("tells a main loop that is blocked from a silent watchdog", async () => {
    const beats = ["--heartbeat-interval", "200ms", "--stale-after", "30s"];
    const run = scene.start(["--name", "blocked", ...beats, "--", "sleep", "318"], {
      binary: FAULTS,
      env: {
        WATCHDOG_FAULT: `tree.signal=delay:${BLOCKED_MS}`,
        WATCHDOG_FAULT_DIR: scene.path("faults-blocked"),
      },
    });
    await waitFor(
      async () => (await waitForHolder(scene, "blocked")).heartbeat_seq > 3,
      "beats of the thread",
    );
    run.kill("SIGTERM");
    const lease = await waitFor(
      async () => {
        const { leases } = await askJson(scene, ["status", "blocked"]);
        return leases[0].is_main_loop_blocked === true && leases[0];
      },
      "a blocked main loop",
      { stepMs: 200 },
    );
    expect(lease).toMatchObject({ verdict: "held", because: "beat-fresh" });
    expect(lease.main_loop_age_ms).toBeGreaterThan(5_000);
    expect(lease.heartbeat_age_ms).toBeLessThan(lease.main_loop_age_ms);
    const beat = labelled(await askLines(scene, ["status", "blocked"]), "beat");
    expect(beat).toMatch(/ago; main loop blocked for \d+(\.\d)? s$/);
    expect(readdirSync(scene.path("faults-blocked"))).not.toEqual([]);
    run.kill("SIGKILL");
    await run.ended;
    await waitForRow(scene, "blocked", "ended");
  }, 120_000);

  test("shows what a killed watchdog has left, and that it is not held", async () => {
    const run = scene.start(["--name", "killed", "--", "sleep", "302"]);
    await waitForHolder(scene, "killed");
    run.kill("SIGKILL");
    await run.ended;
    await waitForRow(scene, "killed", "ended");
    const lines = await askLines(scene, ["status", "killed"]);
    expect(lines[0]).toBe("job:killed  dead: its watchdog is dead, and so is every process of it");
    expect(lines.at(-1)).toMatch(/^ {2}killed {2}abandoned, ended .*; its guard has written this$/);
  });

  test("of a corrupt record says what is wrong, and prints no trace of a program", async () => {
    const state = scene.path("corrupt");
    await scene.run(["--state-dir", state, "--name", "torn", "--", "true"]);
    const directory = `${state}/leases/job/torn`;
    writeFileSync(`${directory}/lease.json`, "{ torn");
    writeFileSync(`${directory}/beat.1`, "torn");
    for (const name of readdirSync(state)) {
      if (name.startsWith("journal.db")) rmSync(`${state}/${name}`);
    }
    const { status, stdout, stderr } = await ask(scene, ["status", "--state-dir", state]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout.toString()).toContain("  verdict   unknowable (R8 no-generation)\n");
    expect(stdout.toString()).toContain("  trouble   the record cannot be read: ");
    writeFileSync(`${state}/journal.db`, "torn".repeat(2_000));
    const broken = await ask(scene, ["status", "--state-dir", state]);
    expect(broken.status).toBe(0);
    expect(broken.stderr).toMatch(/^watchdog: journal: .*\n$/);
  });

  test("in a state directory that may not be trusted is 78, as run is", async () => {
    mkdirSync(scene.path("real"), { mode: 0o700 });
    symlinkSync(scene.path("real"), scene.path("linked"));
    for (const words of [
      ["status"],
      ["history"],
      ["lease", "list"],
      ["logs", "x"],
      ["stop", "x"],
    ]) {
      const { status, stderr } = await ask(scene, [...words, "--state-dir", scene.path("linked")]);
      expect([words, status]).toEqual([words, 78]);
      expect(stderr).toContain("it is a symbolic link");
    }
  });
});

rootTest(
  "a run that goes on in another pid namespace is not one that has ended as well",
  async () => {
    const words = ["run", "--name", "below", "--log", "off", "--", "sleep", "302"];
    const started = scene.startProgram([
      "unshare",
      "-pf",
      "--kill-child",
      "--mount-proc",
      RELEASE,
      ...words,
    ]);
    await waitForHolder(scene, "below");
    await waitForRow(scene, "below", "running");
    const found = await askJson(scene, ["status", "below"]);
    expect([found.leases[0].verdict, found.last_runs]).toEqual(["held", []]);
    started.kill("SIGKILL");
    await started.ended;
    await waitFor(async () => {
      const { leases, last_runs: last } = await askJson(scene, ["status", "below"]);
      return leases[0].verdict === "dead" && last.length === 1;
    }, "its end");
  },
);
