/** Jobs that say when they are expected, and who tells when they were not there. */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { letHoldersGo, startHolder } from "../support/lease-holder.ts";
import {
  ageJob,
  agePatrol,
  eventsOf,
  HOUR_MS,
  judgedJob,
  patrol,
  patrolJson,
  withJournal,
} from "../support/patrol-scene.ts";
import { openScene, type Scene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
let count = 0;

afterEach(letHoldersGo);

/** A job of its own in a state directory of its own. */
function newPlace(): { place: Scene } {
  count += 1;
  const stateDirectory = scene.path(`state-${count}`);
  const env = { ...scene.env, WATCHDOG_STATE_DIR: stateDirectory };
  const options = { env };
  const place: Scene = {
    ...scene,
    env,
    stateDirectory,
    run: (args, more) => scene.run(args, { ...options, ...more }),
    start: (args, more) => scene.start(args, { ...options, ...more }),
    startProgram: (argv, more) => scene.startProgram(argv, { ...options, ...more }),
  };
  return { place };
}

async function runJob(place: Scene, words: readonly string[], command = "true") {
  return place.run([...words, "--log", "off", "--", ...command.split(" ")]);
}

describe("a job with --every 24h", () => {
  test("is overdue 26 hours after its last success, until the next one", async () => {
    const { place } = newPlace();
    const words = ["--name", "nightly", "--every", "24h"];
    expect((await runJob(place, words)).status).toBe(0);
    expect(await judgedJob(place, "nightly")).toMatchObject({ state: "fine" });

    ageJob(place, "nightly", 26 * HOUR_MS);
    expect(await judgedJob(place, "nightly")).toMatchObject({
      state: "overdue",
      because: "not-started",
    });
    for (const _ of [1, 2]) await patrol(place);
    expect(eventsOf(place, "overdue")).toMatchObject([
      { job: "nightly", because: "not-started", data: { every_ms: 24 * HOUR_MS } },
    ]);

    expect((await runJob(place, words)).status).toBe(0);
    expect(await judgedJob(place, "nightly")).toMatchObject({ state: "fine" });
    expect((await ask(place, ["status"])).stderr).toBe("");
    expect(eventsOf(place, "overdue")).toHaveLength(1);
  });

  test("is failing where runs have come and gone badly, whatever they were", async () => {
    const { place } = newPlace();
    const words = ["--name", "nightly", "--every", "24h"];
    await runJob(place, words);
    ageJob(place, "nightly", 26 * HOUR_MS);
    expect((await runJob(place, words, "false")).status).toBe(1);
    expect(await judgedJob(place, "nightly")).toMatchObject({
      because: "failing",
      last_failure: "failed",
    });
    expect((await patrol(place)).stdout.toString()).toContain("failing, the last run ended as");
  });

  test("is never-started where its command never was", async () => {
    const { place } = newPlace();
    expect((await runJob(place, ["--name", "x", "--every", "24h"], "./nope")).status).toBe(127);
    ageJob(place, "x", 26 * HOUR_MS);
    expect(await judgedJob(place, "x")).toMatchObject({
      because: "never-started",
      last_refusal: "not_found",
      last_start_at: null,
    });
  });

  test("is never-started where only the configuration knows it", async () => {
    const { place } = newPlace();
    await runJob(place, ["--name", "other"]);
    const config = scene.path(`jobs-${count}.toml`);
    const tables = '[jobs.ghost]\nevery = "24h"\n[jobs.plain]\nlog = "off"\n';
    writeFileSync(config, tables, { mode: 0o600 });
    const words = ["--config", config];
    await patrol(place, words);
    expect((await patrolJson(place, words)).jobs).toMatchObject([
      { job: "ghost", state: "fine", declared_by: "configuration" },
    ]);
    ageJob(place, "ghost", 26 * HOUR_MS);
    expect((await patrolJson(place, words)).jobs).toMatchObject([
      { job: "ghost", because: "never-started" },
    ]);
    expect((await runJob(place, [...words, "--name", "ghost"])).status).toBe(0);
    const [job] = (await patrolJson(place, words)).jobs;
    expect(job).toMatchObject({ job: "ghost", state: "fine" });
    expect(job.declared_by).not.toBe("configuration");
  });

  test("runs too long, and is told apart from one that started late", async () => {
    const { place } = newPlace();
    const words = ["--name", "long", "--every", "24h"];
    await runJob(place, words);
    const holder = await startHolder(place, words);
    const longAgo = 26 * HOUR_MS;
    ageJob(place, "long", longAgo);
    // It was begun an hour after the last success, and runs since.
    const began = (ms: number) =>
      withJournal(place, (db) => {
        db.run(`UPDATE runs SET started_at = started_at - ${ms} WHERE state = 'running'`);
      });
    expect(await judgedJob(place, "long")).toMatchObject({ because: "started-late" });
    // A run that was begun before this boot is none: this machine may be younger than a day.
    const uptimeMs = Number((await Bun.file("/proc/uptime").text()).split(" ")[0]) * 1_000;
    const wanted = 2 * HOUR_MS;
    if (uptimeMs > wanted + 60_000) {
      began(wanted);
      expect(await judgedJob(place, "long")).toMatchObject({
        because: "running-too-long",
        state: "overdue",
      });
    }
    await holder.finish();
    expect(await judgedJob(place, "long")).toMatchObject({ state: "fine" });
  });

  test("is forgotten by a run without it, and by a word", async () => {
    const { place } = newPlace();
    await runJob(place, ["--name", "a", "--every", "24h"]);
    await runJob(place, ["--name", "b", "--every", "24h"]);
    await runJob(place, ["--name", "a"]);
    expect(await judgedJob(place, "a")).toBeUndefined();
    const forgotten = await patrol(place, ["--forget", "b"]);
    expect([forgotten.status, forgotten.stdout.toString()]).toEqual([
      0,
      'nothing is expected of "b" any more\n',
    ]);
    expect((await patrolJson(place)).jobs).toEqual([]);
    expect((await patrol(place, ["--forget", "b"])).status).toBe(1);
  });
});

describe("a job with --schedule", () => {
  test("keeps its time zone, whoever patrols", async () => {
    const { place } = newPlace();
    const zone = ["--time-zone", "Asia/Kolkata"];
    const declared = { env: { ...place.env, TZ: "America/New_York" } };
    const schedule = ["--schedule", "30 2 * * *", "--log", "off"];
    await place.run(["--name", "named", ...schedule, ...zone, "--", "true"], declared);
    await place.run(["--name", "local", ...schedule, "--", "true"], declared);
    const { jobs } = JSON.parse(
      (
        await patrol(place, ["--json"], { env: { ...place.env, TZ: "Europe/Berlin" } })
      ).stdout.toString(),
    );
    const dueOf = (name: string) => jobs.find((one: { job: string }) => one.job === name);
    // 02:30 there is 21:00 UTC the day before.
    expect(dueOf("named")).toMatchObject({ time_zone: "Asia/Kolkata" });
    expect(dueOf("named").due_at).toEndWith("T21:00:00.000Z");
    expect(dueOf("local")).toMatchObject({ time_zone: "America/New_York" });
    expect(dueOf("local").due_at).toMatch(/T0[67]:30:00\.000Z$/);
  });

  test("is overdue when its time and the grace have passed", async () => {
    const { place } = newPlace();
    await runJob(place, ["--name", "n", "--schedule", "0 2 * * *", "--time-zone", "UTC"]);
    ageJob(place, "n", 49 * HOUR_MS);
    expect(await judgedJob(place, "n")).toMatchObject({
      state: "overdue",
      because: "not-started",
      schedule: "0 2 * * *",
      time_zone: "UTC",
    });
  });

  test.each([
    [["--schedule", "0 25 * * *"], 'found "25" for the hour'],
    [["--schedule", "0 2 */2 * 1"], "crons read that differently"],
    [["--schedule", "0 0 30 2 *"], "found a day that no such month has"],
    [["--every", "0"], "above 0"],
    [["--schedule", "@daily", "--time-zone", "Mars/Olympus"], "the name of a time zone"],
    [["--time-zone", "UTC"], "--time-zone is about --schedule"],
    [["--every", "1h", "--schedule", "@daily"], "both say when the job is expected"],
  ])("%j is refused before anything is started", async (words, text) => {
    const { place } = newPlace();
    const { status, stderr } = await place.run([...words, "--", "true"]);
    expect(status).toBe(64);
    expect(stderr).toContain(text);
    expect(existsSync(place.stateDirectory)).toBe(false);
  });
});

describe("who tells on the way", () => {
  async function leaveOverdue(place: Scene): Promise<void> {
    await runJob(place, ["--name", "nightly", "--every", "24h"]);
    ageJob(place, "nightly", 26 * HOUR_MS);
  }

  test.each([
    ["status"],
    ["history"],
    ["lease list"],
    ["circuit list"],
    ["repair"],
    ["config show"],
    ["probe cmd:true"],
  ])("%s does, on stderr alone", async (line) => {
    const { place } = newPlace();
    await leaveOverdue(place);
    const words = [...line.split(" "), "--json"];
    const { stdout, stderr, status } = await ask(place, words);
    expect(status).toBe(0);
    expect(JSON.parse(stdout.toString())).toMatchObject({ format: 1 });
    expect(stderr).toMatch(/^watchdog: nightly is overdue since .*: not started; last success/m);
    expect(stderr).toContain("watchdog: hint: watchdog patrol");
    expect(await askJson(newPlace().place, ["status"])).toMatchObject({ leases: [] });
  });

  test.each([
    ["run", ["run", "--name", "other", "--", "true"]],
    ["keep", ["keep", "--", "true"]],
    ["retry", ["retry", "--", "true"]],
    ["fence", ["fence"]],
    ["help", ["help"]],
  ])("%s does not", async (_name, words) => {
    const { place } = newPlace();
    await leaveOverdue(place);
    expect((await ask(place, words)).stderr).not.toContain("overdue");
  });

  test("names three jobs and counts the rest", async () => {
    const { place } = newPlace();
    for (const name of ["a", "b", "c", "d", "e"]) {
      await runJob(place, ["--name", name, "--every", "24h"]);
      ageJob(place, name, 26 * HOUR_MS);
    }
    const lines = (await ask(place, ["status"])).stderr.trimEnd().split("\n");
    expect(lines).toHaveLength(5);
    expect(lines[3]).toBe("watchdog: 2 more jobs are overdue");
  });

  test("a name that moves a cursor does not", async () => {
    const { place } = newPlace();
    const name = "x\u202Ey";
    await runJob(place, ["--name", name, "--every", "24h"]);
    ageJob(place, name, 26 * HOUR_MS);
    const { stderr } = await ask(place, ["status"]);
    expect(stderr).toContain("x\\u{202e}y is overdue");
  });

  test("says nothing where the journal is broken, and fails nothing", async () => {
    const { place } = newPlace();
    await leaveOverdue(place);
    withJournal(place, (db) => db.run("DROP TABLE patrols"));
    const { status, stderr } = await ask(place, ["status"]);
    expect(status).toBe(0);
    expect(stderr).not.toContain("overdue");
  });

  test("tells of a patrol that has stopped, until it is retired", async () => {
    const { place } = newPlace();
    await runJob(place, ["--name", "nightly"]);
    expect((await patrol(place, ["--every", "5m"])).status).toBe(0);
    expect((await ask(place, ["status"])).stderr).toBe("");
    agePatrol(place, 12 * 60_000);
    expect((await ask(place, ["status"])).stderr).toMatch(
      /^watchdog: the patrol has stopped: the last one was 12 min.* ago, expected every 5 min$/m,
    );
    expect((await patrol(place, ["--retire"])).status).toBe(0);
    expect((await ask(place, ["status"])).stderr).toBe("");
    expect((await patrol(place)).status).toBe(0);
    agePatrol(place, 12 * 60_000);
    expect((await ask(place, ["status"])).stderr).toBe("");
  });
});
