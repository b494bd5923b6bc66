/**
 * `watchdog lease explain` as people and programs meet it: what it says, what it finds nothing of,
 * and that it changes nothing. The rows of the rules are in explain-rows.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { ask, askJson, waitForHolder } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { killWithGuard } from "../support/killing.ts";
import { placeOf } from "../support/lease-seen.ts";
import { waitForCommand, waitForText } from "../support/processes.ts";
import { openScene, RELEASE, type Started } from "../support/scene.ts";

const scene = openScene(import.meta.file);

const NO_PIPES = { stdout: "ignore", stderr: "ignore" } as const;

async function start(job: string, command: string): Promise<{ run: Started; pid: number }> {
  const run = scene.start(["--name", job, "--", ...command.split(" ")], NO_PIPES);
  const [pid = 0] = await waitForCommand(scene, command);
  await waitForHolder(scene, job);
  return { run, pid };
}

/** Every file of a lease with its bytes and times. */
function picture(job: string): unknown[] {
  const { directory } = placeOf(scene.stateDirectory, job);
  return readdirSync(directory)
    .toSorted()
    .map((name) => {
      const { mtimeMs, ino, mode } = statSync(`${directory}/${name}`);
      return [name, mtimeMs, ino, mode, readFileSync(`${directory}/${name}`, "hex")];
    });
}

describe("lease explain", () => {
  test("of a key that nobody has ever asked for finds nothing, and makes nothing", async () => {
    const ended = await ask(scene, ["lease", "explain", "lane:never"]);
    expect([ended.status, ended.stdout.toString()]).toEqual([1, ""]);
    expect(ended.stderr).toBe(
      "watchdog: error: no lease is known of lane:never\nwatchdog: hint: watchdog lease list\n",
    );
    expect(existsSync(placeOf(scene.stateDirectory, "never", "lane").directory)).toBe(false);
  });

  test("tells people the signals, the rules, and what comes of them", async () => {
    const { run } = await start("told", "sleep 96801");
    const { status, stdout, stderr } = await ask(scene, ["lease", "explain", "job:told"]);
    expect([status, stderr]).toEqual([0, ""]);
    const text = stdout.toString();
    expect(text).toMatch(/^job:told {2}held since /);
    expect(text).toMatch(/\n {2}lock-taken +yes +the kernel refuses it: somebody has it \(/);
    expect(text).toMatch(/\n {2}R1 +does not fit +the lock can be asked\n/);
    expect(text).toMatch(/\n {2}R2 +decides +held, because beat-fresh\n {2}R3 +not asked\n/);
    expect(text).toContain("\n  is refused with 75 (beat-fresh); with --wait it waits\n");
    run.kill("SIGTERM");
    await run.ended;
  });

  test("has the plans of the repair, with their ids", async () => {
    const { run, pid } = await start("planned", "sleep 96802");
    await killWithGuard(run);
    const before = picture("planned");
    const explained = await askJson(scene, ["lease", "explain", "job:planned"]);
    expect(picture("planned")).toEqual(before);
    expect(before.length).toBeGreaterThan(3);
    const dry = await ask(scene, ["repair", "job:planned", "--json"]);
    const [lease] = JSON.parse(dry.stdout.toString()).leases;
    expect(explained.plans).toEqual(lease.plans);
    expect(explained.plans).toMatchObject([{ action: "end-survivors", needs: "apply" }]);
    await endAll(scene, [pid]);
  });

  test("asked from within the run says that a newcomer there cannot wait for it", async () => {
    const out = scene.path("around.json");
    const script = `'${RELEASE}' lease explain job:around --json >'${out}'`;
    expect((await scene.run(["--name", "around", "--", "sh", "-c", script])).status).toBe(0);
    const { newcomer } = JSON.parse(await waitForText(out));
    expect(newcomer[0]).toMatchObject({ because: "held-by-run-around", can_wait: false });
  });
});
