/**
 * `watchdog repair` against real runs: what it only tells, what it does by itself, what it does
 * with an approval alone, and what it never does.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { askJson, waitForHolder } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { placeOf, readLease } from "../support/lease-seen.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import {
  leaveDead,
  leaveOrphans,
  listPlace,
  planOf,
  readAudit,
  readRuns,
  repair,
  repairJson,
  startStalled,
  stopStill,
  waitForVerdict,
} from "../support/repair-scene.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

describe("a stalled owner", () => {
  test("is never released by --apply, and keeps its lease", async () => {
    const { run, lease } = await startStalled(scene, "incident-a", ["sleep", "97401"]);
    const before = readFileSync(placeOf(scene.stateDirectory, "incident-a").record, "utf8");
    const { status, stderr } = await repair(scene, ["--apply"]);
    expect(status).toBe(77);
    expect(stderr).toBe(
      "watchdog: job:incident-a was left as it is (stalled, R2 beat-old): " +
        "a person has to approve what is done\n" +
        "watchdog: hint: watchdog repair job:incident-a\n",
    );
    expect(readFileSync(placeOf(scene.stateDirectory, "incident-a").record, "utf8")).toBe(before);
    expect((await scene.run(["--name", "incident-a", "--", "echo", "STOLEN"])).status).toBe(75);
    expect(lease.plans.map((plan: { needs: string }) => plan.needs)).toEqual([
      "approval",
      "approval",
    ]);
    run.kill("SIGCONT");
    await waitForVerdict(scene, "job:incident-a", "held");
    run.kill("SIGTERM");
    expect((await run.ended).status).toBe(143);
  });

  test("is offered CONT first, and goes on with its lease after it", async () => {
    const { run, lease } = await startStalled(scene, "continued", ["sleep", "97402"]);
    expect(lease.plans.map((plan: { action: string }) => plan.action)).toEqual([
      "continue-owner",
      "end-owner",
    ]);
    const id = planOf(lease, "continue-owner");
    const done = await repair(scene, ["--approve", id]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    expect(done.stdout.toString()).toContain(
      `done: the owner of job:continued goes on (plan ${id})`,
    );
    const { generation } = await waitForVerdict(scene, "job:continued", "held");
    expect(generation).toBe(lease.generation);
    expect(readAudit(scene, "job:continued")).toEqual([
      { phase: "intended", action: "continue-owner", because: "owner-stopped", plan_id: id },
      { phase: "done", action: "continue-owner", because: "continued", plan_id: id },
    ]);
    run.kill("SIGTERM");
    await run.ended;
  });

  test("is ended with an approval: asked first, so that it ends its tree and says so", async () => {
    const { run, lease } = await startStalled(scene, "ended", ["sh", "-c", "sleep 97403; :"]);
    const id = planOf(lease, "end-owner");
    const done = await repair(scene, ["job:ended", "--approve", id]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    expect((await run.ended).status).toBe(143);
    expect(findByCommand(scene, "sleep 97403")).toEqual([]);
    const record = readLease(placeOf(scene.stateDirectory, "ended"));
    expect(record).toMatchObject({
      state: "released",
      generation: lease.generation,
      repair: { plan_id: id, action: "ended-owner" },
    });
    // Its own word is the record: nothing of it is lost, and nothing is kept twice.
    expect(record).toMatchObject({ run_id: lease.run_id, released_at: expect.any(String) });
    expect(listPlace(scene, "ended")).toEqual(["beat.1", "fence", "lease.json", "lock"]);
    expect(readRuns(scene, "ended")).toMatchObject([{ state: "ended", outcome: "stopped" }]);
    expect(readAudit(scene, "job:ended").map(({ phase }) => phase)).toEqual(["intended", "done"]);
  });

  test("is not touched when it has beaten since the plan was made", async () => {
    const { run, lease } = await startStalled(scene, "changed", ["sleep", "97404"]);
    const id = planOf(lease, "end-owner");
    run.kill("SIGCONT");
    await waitForVerdict(scene, "job:changed", "held");
    await stopStill(run);
    await waitForVerdict(scene, "job:changed", "stalled");
    const refused = await repair(scene, ["--approve", id]);
    expect([refused.status, refused.stderr]).toEqual([
      77,
      `watchdog: error: no plan has the id ${id} now: the evidence has changed\n` +
        "watchdog: hint: watchdog repair\n",
    ]);
    expect(readAudit(scene, "job:changed")).toEqual([]);
    run.kill("SIGCONT");
    await waitForVerdict(scene, "job:changed", "held");
    run.kill("SIGTERM");
    await run.ended;
  });
});

describe("a dead owner", () => {
  test("with survivors: they are ended by --apply, nobody else, and the key is free", async () => {
    const innocent = scene.startProgram(["sleep", "97405"]);
    await leaveOrphans(scene, "orphaned", "sleep 97405", [
      "sh",
      "-c",
      "setsid sleep 97405 & sleep 97405",
    ]);
    await waitForVerdict(scene, "job:orphaned", "orphaned");
    const dry = await repair(scene, ["job:orphaned"]);
    expect([dry.status, dry.stderr]).toEqual([0, ""]);
    expect(findByCommand(scene, "sleep 97405").length).toBeGreaterThan(1);
    const done = await repair(scene, ["--apply"]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    expect(findByCommand(scene, "sleep 97405")).toEqual([innocent.pid]);
    expect(await waitForVerdict(scene, "job:orphaned", "free")).toMatchObject({ rule: "R4" });
    expect(readRuns(scene, "orphaned")).toMatchObject([
      { state: "ended", outcome: "abandoned", abandoned_by: "repair" },
    ]);
    await endAll(scene, [innocent.pid]);
  });

  test("with suspects: they are ended with an approval alone", async () => {
    const lease = await leaveOrphans(scene, "suspects", "sleep 97406");
    const suspect = scene.startProgram(["sleep", "97407"], {
      env: { WATCHDOG_RUN_PATH: lease.run_path, WATCHDOG_RUN_ID: lease.run_id },
    });
    await waitForCommand(scene, "sleep 97407");
    const found = await waitForVerdict(scene, "job:suspects", "orphaned");
    expect(found).toMatchObject({ because: "suspects", suspects: [{ pid: suspect.pid }] });
    expect((await repair(scene, ["--apply"])).status).toBe(77);
    expect(findByCommand(scene, "sleep 97407")).toEqual([suspect.pid]);
    expect(findByCommand(scene, "sleep 97406")).toHaveLength(1);
    const id = planOf(found, "end-suspects");
    const done = await repair(scene, ["--approve", id]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    expect(findByCommand(scene, "sleep 97406")).toEqual([]);
    expect((await suspect.ended).signal).toBe("SIGTERM");
    await waitForVerdict(scene, "job:suspects", "free");
  });

  test("and nobody left: --apply marks it, and keeps the old record", async () => {
    const lease = await leaveDead(scene, "dead", "sleep 97408");
    const before = readLease(placeOf(scene.stateDirectory, "dead"));
    const done = await repair(scene, ["--apply"]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    const place = placeOf(scene.stateDirectory, "dead");
    expect(readLease(place)).toMatchObject({
      state: "released",
      generation: lease.generation,
      run_id: lease.run_id,
      repair: { action: "marked" },
    });
    expect(JSON.parse(readFileSync(`${place.record}.kept-1`, "utf8"))).toEqual(before);
    const next = await scene.run(["--name", "dead", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString(), next.stderr]).toEqual([0, "ok\n", ""]);
    expect(readLease(place)).toMatchObject({ generation: lease.generation + 1 });
  });

  test("is marked once within --repair-interval by --apply, then a person is needed", async () => {
    await leaveDead(scene, "often", "sleep 97409");
    expect((await repair(scene, ["--apply"])).status).toBe(0);
    await leaveDead(scene, "often", "sleep 97409");
    const stopped = await repair(scene, ["--apply"]);
    expect(stopped.status).toBe(77);
    expect(stopped.stderr).toMatch(/^watchdog: job:often was left as it is \(repair-interval\): /);
    const lease = await waitForVerdict(scene, "job:often", "dead");
    expect(lease.stopped_by).toBe("repair-interval");
    expect((await repair(scene, ["--approve", planOf(lease, "mark")])).status).toBe(0);
    await waitForVerdict(scene, "job:often", "free");
  });

  test("is marked --max-repairs times in a row, until a run ends by itself", async () => {
    const words = ["job:rowed", "--apply", "--repair-interval", "1ms", "--max-repairs", "2"];
    for (let round = 0; round < 2; round += 1) {
      await leaveDead(scene, "rowed", "sleep 97410");
      expect((await repair(scene, words)).status).toBe(0);
    }
    await leaveDead(scene, "rowed", "sleep 97410");
    const stopped = await repair(scene, words);
    expect(stopped.status).toBe(77);
    expect(stopped.stderr).toContain("(max-repairs)");
    expect((await scene.run(["--name", "rowed", "--", "true"])).status).toBe(0);
    await leaveDead(scene, "rowed", "sleep 97410");
    expect((await repair(scene, words)).status).toBe(0);
  });
});

describe("what cannot be judged", () => {
  test("an owner of elsewhere: the time is noted, and after the limit it is marked", async () => {
    await leaveDead(scene, "elsewhere", "sleep 97411");
    const place = placeOf(scene.stateDirectory, "elsewhere");
    const other = { boot_id: "11111111-2222-3333-4444-555555555555", host: "otherhost" };
    const record = { ...readLease(place), ...other, stale_after_ms: 400 };
    writeFileSync(place.record, JSON.stringify(record));
    const noted = await repair(scene, ["job:elsewhere", "--apply"]);
    expect([noted.status, noted.stderr]).toEqual([0, ""]);
    expect(existsSync(`${place.directory}/seen.json`)).toBe(true);
    const lease = await waitFor(async () => {
      const { leases } = await repairJson(scene, ["job:elsewhere"]);
      return leases[0].plans[0].action === "mark" && leases[0];
    }, "an old note");
    expect(lease.plans).toMatchObject([{ needs: "apply", because: "note-old" }]);
    expect((await repair(scene, ["job:elsewhere", "--apply"])).status).toBe(0);
    await waitForVerdict(scene, "job:elsewhere", "free");
  });

  test("a lock file replaced under a living owner: only an approval ends the owner", async () => {
    const words = ["--name", "replaced", "--heartbeat-interval", "20s", "--", "sleep", "97412"];
    const run = scene.start(words);
    await waitForHolder(scene, "replaced");
    const place = placeOf(scene.stateDirectory, "replaced");
    await stopStill(run);
    renameSync(place.lock, `${place.lock}.gone`);
    const lease = await waitForVerdict(scene, "job:replaced", "unknowable");
    expect(lease.because).toBe("lock-replaced");
    expect((await repair(scene, ["--apply"])).status).toBe(77);
    const done = await repair(scene, ["--approve", planOf(lease, "end-owner")]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    await run.ended;
    expect(findByCommand(scene, "sleep 97412")).toEqual([]);
    expect(readLease(place)).toMatchObject({ repair: { action: "ended-owner" } });
    await waitForVerdict(scene, "job:replaced", "free");
  });

  test("no generation: a person gives one, and none that is smaller than one known", async () => {
    expect((await scene.run(["--name", "numberless", "--", "true"])).status).toBe(0);
    const place = placeOf(scene.stateDirectory, "numberless");
    writeFileSync(place.record, "{ torn");
    writeFileSync(place.slot(7), "no slot");
    const journal = `${scene.stateDirectory}/journal.db`;
    expect(existsSync(journal)).toBe(true);
    const lease = await waitForVerdict(scene, "job:numberless", "unknowable");
    expect(lease).toMatchObject({
      because: "no-generation",
      least_generation: 7,
      plans: [{ action: "set-generation", needs: "approval", plan_id: null }],
    });
    expect((await repair(scene, ["job:numberless", "--apply"])).status).toBe(77);
    const small = await repair(scene, ["job:numberless", "--set-generation", "6"]);
    expect([small.status, small.stderr]).toEqual([
      77,
      "watchdog: error: generation 7 of job:numberless is known, found 6\n",
    ]);
    expect(readFileSync(place.record, "utf8")).toBe("{ torn");
    const done = await repair(scene, ["job:numberless", "--set-generation", "41"]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    expect(readFileSync(`${place.record}.kept-1`, "utf8")).toBe("{ torn");
    expect((await scene.run(["--name", "numberless", "--", "true"])).status).toBe(0);
    expect(readLease(place)).toMatchObject({ generation: 42 });
    const known = await repair(scene, ["job:numberless", "--set-generation", "50"]);
    expect(known.status).toBe(77);
    expect(readLease(place)).toMatchObject({ generation: 42 });
  });

  test("a directory in the place of the lock is renamed with an approval, and kept", async () => {
    expect((await scene.run(["--name", "wrong-kind", "--", "true"])).status).toBe(0);
    const place = placeOf(scene.stateDirectory, "wrong-kind");
    renameSync(place.lock, `${place.lock}.gone`);
    mkdirSync(place.lock);
    const lease = await waitForVerdict(scene, "job:wrong-kind", "unknowable");
    expect(lease).toMatchObject({ because: "lock-unaskable", lock_file: "directory" });
    expect((await repair(scene, ["--apply"])).status).toBe(77);
    const done = await repair(scene, ["--approve", planOf(lease, "set-aside-lock")]);
    expect([done.status, done.stderr]).toEqual([0, ""]);
    expect(lstatSync(`${place.lock}.kept-1`).isDirectory()).toBe(true);
    expect((await scene.run(["--name", "wrong-kind", "--", "echo", "ok"])).status).toBe(0);
  });
});

describe("a repair", () => {
  test("of nothing says so, and makes nothing", async () => {
    const empty = { WATCHDOG_STATE_DIR: scene.path("nowhere") };
    for (const words of [[], ["--apply"], ["--approve", "0123456789"]]) {
      const { stdout } = await repair(scene, words, { env: empty });
      expect(stdout.toString()).toBe("nothing is to be repaired\n");
    }
    expect(existsSync(scene.path("nowhere"))).toBe(false);
  });

  test("waits for nobody: of two at once one acts, the other is told", async () => {
    await leaveDead(scene, "two", "sleep 97413");
    const both = await Promise.all([
      repair(scene, ["job:two", "--apply"]),
      repair(scene, ["job:two", "--apply"]),
    ]);
    for (const { status, stderr } of both) {
      if (status === 75) expect(stderr).toContain("another repair is at work");
      else expect(status).toBe(0);
    }
    expect(both.some(({ status }) => status === 0)).toBe(true);
    expect(readAudit(scene, "job:two").map(({ phase }) => phase)).toEqual(["intended", "done"]);
    expect(listPlace(scene, "two").filter((name) => name.includes("kept"))).toEqual([
      "lease.json.kept-1",
    ]);
  });

  test("leaves held and free keys alone, and answers in JSON", async () => {
    const run = scene.start(["--name", "healthy", "--", "sleep", "97414"]);
    await waitForHolder(scene, "healthy");
    const { leases, acts, format, mode } = await repairJson(scene, ["job:healthy", "--apply"]);
    expect([format, mode, acts]).toEqual([1, "apply", []]);
    expect(leases).toMatchObject([
      { verdict: "held", plans: [{ action: "none", needs: "nothing", plan_id: null }] },
    ]);
    expect((await askJson(scene, ["lease", "show", "job:healthy"])).verdict).toBe("held");
    run.kill("SIGTERM");
    await run.ended;
  });
});
