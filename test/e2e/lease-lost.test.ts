/**
 * a lease that somebody else has by now. The run whose record names another one ends at once
 * with 76, whatever its command said, and touches nothing of that one's: no beat and no release
 * writes over it.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { askLines } from "../support/ask.ts";
import {
  holdJob,
  inodeOf,
  newcomer,
  placeOf,
  eventsOf,
  readLease,
  type SeenPlace,
  stealRecord,
  waitForBeat,
} from "../support/lease-seen.ts";
import { PYTHON } from "../support/outside.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { type Ended, FAULTS, openScene, type RunOptions } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const LEASE_LOST = 76;
const QUICK = ["--heartbeat-interval", "150ms"];
/** No beat of the thread's after the first one. */
const RARE = ["--heartbeat-interval", "1h"];

/** What stays as it is when a lease is lost: name, bytes and inode of the record. */
function pictureOf(place: SeenPlace): unknown[] {
  return [
    readFileSync(place.record, "utf8"),
    inodeOf(place.record),
    statSync(place.record).mtimeMs,
  ];
}

async function expectLost(ended: Ended, name: string): Promise<void> {
  expect(ended.status).toBe(LEASE_LOST);
  expect(ended.stderr).toContain(
    `the lease job:${name} is not ours any more: ` +
      "its record names run someone-else, generation 6",
  );
  const record = scene.readRecord(name);
  expect(record).toMatchObject({ outcome: "lease_lost", exit_status: LEASE_LOST });
  // What is not ours any more is not ours to release: that it was not is no trouble.
  expect(ended.stderr).not.toContain("released");
  expect(record["degraded"]).not.toContain("release-unwritten");
  // Beats that are made to fail are told from the third on.
  const events = await eventsOf(scene, name);
  expect(events.filter((event) => event !== "beat_failing")).toEqual(["lease_lost"]);
}

test("A-48: a run whose record names another one ends its tree at once, with 76", async () => {
  const script = "trap '' TERM; setsid sleep 93048 & sleep 93048; echo fin";
  const run = scene.start(
    [
      ["--name", "a48", "--log", "off", "--kill-after", "30s", ...QUICK, ...scene.recordTo("a48")],
      ["--", "sh", "-c", script],
    ].flat(),
  );
  const place = placeOf(scene.stateDirectory, "a48");
  await waitForCommand(scene, "sleep 93048", 2);
  await waitForBeat(place, 3);
  stealRecord(place);
  const foreign = pictureOf(place);
  const ended = await run.ended;
  await expectLost(ended, "a48");
  expect(ended.stdout.toString()).toBe("");
  expect(findByCommand(scene, "sleep 93048")).toEqual([]);
  expect(pictureOf(place)).toEqual(foreign);
  // No grace for a tree that has no right to run: nothing but KILL was sent.
  expect(
    new Set(scene.readRecord("a48")["signals"].map((one: { signal: string }) => one.signal)),
  ).toEqual(new Set(["KILL"]));
  expect(await askLines(scene, ["history", "a48"])).toEqual([
    expect.stringContaining("lease_lost"),
  ]);
});

test("A-48: a lock file and a record of another run are left to that one", async () => {
  const words = [...QUICK, ...scene.recordTo("both")];
  const { run, place } = await holdJob(scene, "both", words);
  writeFileSync(`${place.lock}.new`, "", { mode: 0o600 });
  renameSync(`${place.lock}.new`, place.lock);
  const inode = inodeOf(place.lock);
  const held = scene.startProgram(["flock", place.lock, "sleep", "93049"]);
  await waitForCommand(scene, "sleep 93049");
  stealRecord(place);
  const foreign = pictureOf(place);
  await expectLost(await run.ended, "both");
  expect(pictureOf(place)).toEqual(foreign);
  expect(inodeOf(place.lock)).toBe(inode);
  // The other one still holds the key.
  expect((await newcomer(scene, "both")).status).toBe(LOCKED);
  for (const pid of findByCommand(scene, "sleep 93049")) process.kill(pid, "SIGTERM");
  await held.ended;
});

/** Takes the key that its own run holds, once the directory named last is there, and ends well. */
const STEALS = [
  "import json, os, sys, time",
  "path, copy, ready = sys.argv[1:]",
  "while not os.path.isdir(ready): time.sleep(0.01)",
  "record = json.load(open(path))",
  "record.update(generation=record['generation'] + 5, run_id='someone-else', pid=1)",
  "open(copy, 'w').write(json.dumps(record))",
  "os.link(copy, copy + '.kept')",
  "os.replace(copy, path)",
  "print('done', flush=True)",
].join("\n");

async function stealFromBelow(name: string, ready: string, options: RunOptions = {}) {
  const place = placeOf(scene.stateDirectory, name);
  const stolen = scene.path(`${name}.stolen`);
  const words = ["--name", name, "--log", "off", ...RARE, ...scene.recordTo(name)];
  const command = [PYTHON, "-c", STEALS, place.record, stolen, ready];
  const ended = await scene.run([...words, "--", ...command], options);
  await expectLost(ended, name);
  expect(ended.stdout.toString()).toBe("done\n");
  expect(readLease(place)).toMatchObject({ generation: 6, run_id: "someone-else", state: "held" });
  expect(readFileSync(place.record, "utf8")).toBe(readFileSync(`${stolen}.kept`, "utf8"));
  expect(inodeOf(place.record)).toBe(inodeOf(`${stolen}.kept`));
}

test("A-48: a short run whose record names another one at its end has lost the key", async () => {
  await stealFromBelow("short", scene.directory);
});

test("A-48: a loss that no beat could see is seen at the end", async () => {
  const faults = scene.path("unseen.faults");
  const plan = Array.from({ length: 9 }, (_, index) => `beat.check#${index + 1}=eio`).join();
  const env = { WATCHDOG_FAULT: plan, WATCHDOG_FAULT_DIR: faults };
  await stealFromBelow("unseen", faults, { binary: FAULTS, env });
  const points = readdirSync(faults).map((file) => {
    const evidence = JSON.parse(readFileSync(`${faults}/${file}`, "utf8"));
    return [evidence.point, evidence.state.key];
  });
  // Each beat there was has failed to look; fewer than those that were made to fail.
  expect(points.length).toBeGreaterThan(0);
  expect(points.length).toBeLessThan(9);
  expect(new Set(points.map(String))).toEqual(new Set(["beat.check,job:unseen"]));
});

test("A-48: the next run comes after the foreign generation, not after our own", async () => {
  const { run, place } = await holdJob(scene, "next", [...QUICK, ...scene.recordTo("next")]);
  stealRecord(place);
  await expectLost(await run.ended, "next");
  const next = await newcomer(scene, "next");
  expect([next.status, next.stdout.toString()]).toEqual([0, "STOLEN\n"]);
  expect(next.stderr).toContain("took over job:next from run someone-else");
  expect(readLease(place)).toMatchObject({ generation: 7, state: "released" });
});
