/**
 * What others see of a paused run: its lease is held and its beats go on, it is called `paused`,
 * and a newcomer is turned away as by any holder.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { askJson, askLines } from "../support/ask.ts";
import { openPausing } from "../support/pausing.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
const STALE_BEATS = 50;
/** So many beats are due in the time after which a silent owner is stale. */
const QUICK_BEATS = ["--heartbeat-interval", "100ms", "--stale-after", "5s"];
const LOCKED = 75;

async function startHolding(name: string) {
  const line = `sleep 9250${name.length}`;
  const run = await start({
    name,
    args: ["--log", "off", ...QUICK_BEATS],
    command: line.split(" "),
  });
  await waitForCommand(scene, line);
  return { run, line };
}

describe("while a run is paused", () => {
  test(
    "its beats go on, and it is paused and held, however long it lasts",
    async () => {
      const { run } = await startHolding("beats");
      await run.pause();
      const lease = () => askJson(scene, ["lease", "show", "job:beats"]);
      const first = await lease();
      let last = first;
      while (last.heartbeat_seq < first.heartbeat_seq + STALE_BEATS) {
        last = await lease();
        expect([last.run_state, last.verdict, last.rule]).toEqual(["paused", "held", "R2"]);
        expect([last.because, last.is_main_loop_blocked]).toEqual(["beat-fresh", false]);
      }
      expect(last.main_loop_seq).toBeGreaterThan(first.main_loop_seq);
      expect(last.generation).toBe(first.generation);
      await run.resume();
      await waitFor(async () => (await lease()).run_state === "running", "a run that goes on");
    },
    LIMIT_MS,
  );

  test(
    "`status` says so, and names the dependency that is away",
    async () => {
      const { run } = await startHolding("status");
      await run.pause();
      const lines = await askLines(scene, ["status", "status"]);
      expect(lines.find((line) => line.startsWith("  state"))).toMatch(
        /^ {2}state +paused, 1 process$/,
      );
      expect(lines.join("\n")).not.toContain("stalled");
      const { leases, circuits } = await askJson(scene, ["status"]);
      const own = leases.filter(({ job }: { job: string }) => job === "status");
      expect(own).toMatchObject([{ run_state: "paused", verdict: "held" }]);
      const away = circuits.filter((one: { target: string }) => one.target === run.dependency.url);
      expect(away).toMatchObject([{ state: expect.stringMatching(/^(open|half-open)$/) }]);
    },
    LIMIT_MS,
  );

  test(
    "a newcomer gets 75, says nothing, and changes nothing",
    async () => {
      const { run, line } = await startHolding("newcomer");
      await run.pause();
      const mark = scene.path("newcomer.ran");
      const args = ["--name", "newcomer", ...scene.recordTo("turned"), "--", "touch", mark];
      const quiet = await scene.run(args);
      expect([quiet.status, quiet.stderr, quiet.stdout.toString()]).toEqual([LOCKED, "", ""]);
      const told = await scene.run(["-v", ...args]);
      expect(told.status).toBe(LOCKED);
      expect(told.stderr).toContain(`job:newcomer is held by run ${run.runId}`);
      expect(told.stderr).not.toMatch(/stalled|stopped|dead|trouble/);
      expect(scene.readRecord("turned")).toMatchObject({
        outcome: "locked",
        because: "lease-held",
        exit_status: LOCKED,
        held_by: { key: "job:newcomer", run_id: run.runId },
      });
      expect(existsSync(mark)).toBe(false);
      expect(run.stopped()).toEqual([run.main]);
      await run.resume();
      expect(findByCommand(scene, line)).toEqual([run.main]);
    },
    LIMIT_MS,
  );

  test(
    "a repair finds nothing to be done",
    async () => {
      const { run } = await startHolding("repair-me");
      await run.pause();
      const { leases, acts } = await askJson(scene, ["repair"]);
      const own = [...leases, ...acts].filter((one) => JSON.stringify(one).includes(run.runId));
      expect(own).toEqual([]);
      expect(run.stopped()).toEqual([run.main]);
    },
    LIMIT_MS,
  );

  test(
    "one that waits for the lease gets it when the paused run has ended",
    async () => {
      const { run } = await startHolding("waited-for");
      await run.pause();
      const mark = scene.path("waited.ran");
      const next = scene.start(["--name", "waited-for", "--wait", "2m", "--", "touch", mark]);
      run.started.kill("SIGTERM");
      await run.started.ended;
      expect([(await next.ended).status, existsSync(mark)]).toEqual([0, true]);
    },
    LIMIT_MS,
  );
});
