/**
 * What a repair prints to be pasted, what it counts, and what it leaves alone because others see
 * more than it does.
 */
import { describe, expect, test } from "bun:test";
import { ask, waitForHolder } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { killWithGuard } from "../support/killing.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { QUICK, readAudit, repair, repairJson, waitForVerdict } from "../support/repair-scene.ts";
import { openScene, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

async function leaveOrphans(job: string, line: string, more: readonly string[] = []) {
  const run = scene.start(["--name", job, ...QUICK, ...more, "--", ...line.split(" ")]);
  await waitForCommand(scene, line);
  await waitForHolder(scene, job);
  await killWithGuard(run);
}

async function leaveDead(job: string, line: string, more: readonly string[] = []) {
  await leaveOrphans(job, line, more);
  await endAll(scene, findByCommand(scene, line));
  await waitForVerdict(scene, `job:${job}`, "dead");
}

describe("a printed command", () => {
  test("looks where the line before has looked", async () => {
    await leaveDead("pasted", "sleep 97701");
    const config = scene.path("config.toml");
    await Bun.write(config, "");
    // The environment points to another place: only the words lead to this one.
    const env = { WATCHDOG_STATE_DIR: scene.path("nowhere") };
    const place = ["--state-dir", scene.stateDirectory, "--config", config];
    const askThere = (...words: string[]) => ask(scene, [...words, ...place], { env });
    const shown = place.join(" ");
    const dry = await askThere("repair", "job:pasted");
    expect(dry.stdout.toString()).toContain(`watchdog repair ${shown} job:pasted --apply\n`);
    const explained = await askThere("lease", "explain", "job:pasted");
    expect(explained.stdout.toString()).toContain(`watchdog repair ${shown} job:pasted --apply\n`);
    const stale = await askThere("repair", "--approve", "0123456789");
    expect(stale.stderr).toContain(`hint: watchdog repair ${shown}\n`);
    const unknown = await askThere("lease", "explain", "job:nobody");
    expect(unknown.stderr).toContain(`hint: watchdog lease list ${shown}\n`);
    // The twin: what is in the environment stays there.
    const bare = await repair(scene, ["job:pasted"]);
    expect(bare.stdout.toString()).toContain("watchdog repair job:pasted --apply\n");
    const pasted = `watchdog repair ${shown} job:pasted --apply`.replace("watchdog", RELEASE);
    const done = await scene.startProgram(["sh", "-c", pasted], { env }).ended;
    expect([done.status, done.stderr]).toEqual([0, ""]);
  });
});

describe("what is written down and counted", () => {
  test("is an approval that fits nothing, too", async () => {
    // A repair makes no state directory.
    expect((await scene.run(["--", "true"])).status).toBe(0);
    expect((await repair(scene, ["--approve", "fedcba9876"])).status).toBe(77);
    expect(readAudit(scene, "plan:fedcba9876")).toMatchObject([
      { phase: "refused", because: "plan-unknown", plan_id: "fedcba9876" },
    ]);
    expect((await repair(scene, ["job:asked", "--approve", "fedcba9876"])).status).toBe(77);
    expect(readAudit(scene, "job:asked")).toMatchObject([{ phase: "refused" }]);
    expect((await repair(scene, ["--apply", "--approve", "fedcba9876"])).status).toBe(64);
  });

  test("are repairs in a row until a run that had the key has ended by itself", async () => {
    const words = ["job:row", "--apply", "--repair-interval", "1ms", "--max-repairs", "1"];
    await leaveDead("row", "sleep 97702");
    expect((await repair(scene, words)).status).toBe(0);
    expect((await scene.run(["--name", "row", "--", "/nonexistent"])).status).toBe(127);
    expect((await scene.run(["--name", "row", "--no-lease", "--", "true"])).status).toBe(0);
    await leaveDead("row", "sleep 97702");
    expect((await repair(scene, words)).status).toBe(77);
    expect((await scene.run(["--name", "row", "--", "true"])).status).toBe(0);
    await leaveDead("row", "sleep 97702");
    expect((await repair(scene, words)).status).toBe(0);
  });
});

test("of a key that is free nothing has to be done", async () => {
  expect((await scene.run(["--name", "free", "--", "true"])).status).toBe(0);
  const { stdout } = await repair(scene, ["job:free"]);
  expect(stdout.toString()).toContain("  plan      nothing has to be done\n");
});

rootTest("what lives out of sight is not marked for those who see it", async () => {
  const job = "unseen";
  await leaveOrphans(job, "sleep 97703");
  const within = (words: readonly string[]) =>
    scene.startProgram(["unshare", "-pf", "--mount-proc", RELEASE, ...words]).ended;
  const words = ["repair", `job:${job}`, "--apply", "--repair-interval", "0s"];
  expect((await within(words)).status).toBe(0);
  await waitFor(async () => {
    const { stdout } = await within(["repair", `job:${job}`, "--json"]);
    return JSON.parse(stdout.toString()).leases[0].plans[0].because === "note-old";
  }, "an old note");
  const marked = await within(words);
  expect([marked.status, marked.stderr]).toEqual([0, ""]);
  const [lease] = (await repairJson(scene)).leases;
  expect(lease).toMatchObject({ verdict: "orphaned", plans: [{ action: "end-survivors" }] });
  expect((await scene.run(["--name", job, "--", "true"])).status).toBe(0);
  expect(findByCommand(scene, "sleep 97703")).toEqual([]);
});
