/**
 * Records that are damaged, of the wrong kind, or of another version: nobody's harm. A free key is
 * granted under a larger number or refused with 78, a held one stays held and its run lives; never
 * a stack trace, never a hang, never a smaller generation.
 */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { askJson } from "../support/ask.ts";
import {
  holdJob,
  listGenerations,
  newcomer,
  placeOf,
  eventsOf,
  readLease,
  RELEASED,
  type SeenPlace,
  tryReadLease,
  waitForBeat,
  waitForBurial,
} from "../support/lease-seen.ts";
import { PYTHON } from "../support/outside.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { type Ended, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const CONFIG_ERROR = 78;
const LIMIT_MS = 180_000;
const GIB = 1_073_741_824;
/** A test that would hang ends by this. */
const HANG_MS = 20_000;
const QUICK = ["--heartbeat-interval", "150ms"];

type Damage = readonly [title: string, put: (path: string, whole: string) => unknown];

/** What takes the place of the record. The path is free; `whole` is the text that was there. */
const DAMAGES: readonly Damage[] = [
  ["missing", () => undefined],
  ["empty", (path) => writeFileSync(path, "")],
  ["zero bytes", (path) => writeFileSync(path, new Uint8Array(4096))],
  ["truncated in the middle", (path, whole) => writeFileSync(path, whole.slice(0, 500))],
  ["an open brace", (path) => writeFileSync(path, "{")],
  ["a list", (path) => writeFileSync(path, "[]")],
  ["null", (path) => writeFileSync(path, "null")],
  ["a text", (path) => writeFileSync(path, '"x"')],
  ["an empty object", (path) => writeFileSync(path, "{}")],
  ["a pid that is a text", (path, whole) => writeFileSync(path, change(whole, { pid: "abc" }))],
  [
    "a generation that is a text",
    (path) => writeFileSync(path, '{"pid":1,"generation":"x","heartbeat":[]}'),
  ],
  [
    "a negative generation",
    (path, whole) => writeFileSync(path, change(whole, { generation: -4 })),
  ],
  ["a record without a format", (path, whole) => writeFileSync(path, change(whole, { format: 0 }))],
  ["bytes that are no text", (path) => writeFileSync(path, new Uint8Array(4096).fill(0xff))],
  ["64 KiB of brackets", (path) => writeFileSync(path, "[".repeat(65_536))],
  ["1 GiB", (path) => makeHuge(path)],
  ["a FIFO", (path) => Bun.spawnSync(["mkfifo", path])],
  ["a directory", (path) => mkdirSync(path)],
  ["a symbolic link", (path) => symlinkSync("/etc/passwd", path)],
];

/** Under a living owner the heartbeat looks at run and generation alone. */
const OTHER_KEY: Damage = [
  "the record of another key",
  (path, whole) => writeFileSync(path, change(whole, { name: "z" })),
];

/** A beat cannot rename a file over a directory, which has a test of its own. */
const IN_PLACE = DAMAGES.filter(([title]) => title !== "a directory");

/** There is nothing to keep, or it can be read and is nobody's harm. */
const UNTOLD = ["missing", OTHER_KEY[0]];

function change(whole: string, fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ ...JSON.parse(whole), ...fields });
}

/** Sparse: it takes no room. */
function makeHuge(path: string): void {
  writeFileSync(path, "{");
  truncateSync(path, GIB);
}

function damage(place: SeenPlace, [, put]: Damage): void {
  const whole = readFileSync(place.record, "utf8");
  rmSync(place.record);
  put(place.record, whole);
}

/** Lines of our own, each a sentence; a stack trace has none such. */
function expectSaidProperly({ stderr }: Ended): void {
  for (const line of stderr.split("\n").slice(0, -1)) expect(line).toMatch(/^watchdog: /);
}

describe("A-86: a record of a free key that is", () => {
  const all = [...DAMAGES, OTHER_KEY];
  test.each(all)(
    "%s",
    async (title, put) => {
      const name = `free-${all.findIndex(([one]) => one === title)}`;
      const place = placeOf(scene.stateDirectory, name);
      expect((await newcomer(scene, name)).status).toBe(0);
      damage(place, [title, put]);
      const next = await newcomer(scene, name);
      expect([next.status, next.stdout.toString()]).toEqual([0, "STOLEN\n"]);
      // Nothing is deleted, and damage is not taken for "nothing there".
      const kept = `${place.record}.broken-2`;
      const told = `watchdog: the record of job:${name} could not be read; kept as ${kept}\n`;
      expect(next.stderr).toBe(UNTOLD.includes(title) ? "" : told);
      const found = lstatSync(kept, { throwIfNoEntry: false });
      expect(found === undefined).toBe(UNTOLD.includes(title));
      expect(readLease(place)).toMatchObject({ name, generation: 2, state: "released" });
      expect(lstatSync(place.record).isFile()).toBe(true);
    },
    HANG_MS,
  );
});

describe("A-86: under a living owner a record that is", () => {
  test.each(IN_PLACE)(
    "%s",
    async (title, put) => {
      const name = `held-${DAMAGES.findIndex(([one]) => one === title)}`;
      const { run, place, release } = await holdJob(scene, name, QUICK);
      const before = readLease(place);
      damage(place, [title, put]);
      const second = await newcomer(scene, name);
      expect([second.status, second.stdout.toString()]).toEqual([LOCKED, ""]);
      expectSaidProperly(second);
      const restored = (): boolean => Bun.deepEquals(tryReadLease(place), before);
      await waitFor(restored, "the record of the holder as it was");
      release();
      const ended = await run.ended;
      expect([ended.status, ended.stderr]).toEqual([RELEASED, ""]);
      expect(readLease(place)).toMatchObject({ generation: 1, state: "released" });
    },
    HANG_MS,
  );
});

test("a directory in the place of a holder's record is told, and the job lives", async () => {
  const { run, place, release } = await holdJob(scene, "held-directory", QUICK);
  const { sequence } = await waitForBeat(place, 3);
  rmSync(place.record);
  mkdirSync(place.record);
  expect((await newcomer(scene, "held-directory")).status).toBe(LOCKED);
  // Three beats that failed are an event; the slot is written all the same.
  await waitForBeat(place, sequence + 4);
  expect((await newcomer(scene, "held-directory")).status).toBe(LOCKED);
  release();
  const ended = await run.ended;
  expect(ended.status).toBe(RELEASED);
  expect(ended.stderr).toContain("heartbeats of job:held-directory cannot be written: ");
  expect(ended.stderr).toContain("the record of job:held-directory could not be marked released: ");
  expectSaidProperly(ended);
  expect((await eventsOf(scene, "held-directory")).sort()).toEqual([
    "beat_failing",
    "refused",
    "refused",
  ]);
});

test("A-86: what is kept aside is what was there, byte by byte", async () => {
  const place = placeOf(scene.stateDirectory, "aside");
  await newcomer(scene, "aside");
  writeFileSync(place.record, '{"generation": 1, "torn');
  expect((await newcomer(scene, "aside")).status).toBe(0);
  expect(readFileSync(`${place.record}.broken-2`, "utf8")).toBe('{"generation": 1, "torn');
  // A refused start keeps nothing aside: it changes nothing of a key.
  const { run, release } = await holdJob(scene, "aside", ["--heartbeat-interval", "1h"]);
  writeFileSync(place.record, "{");
  expect((await newcomer(scene, "aside")).status).toBe(LOCKED);
  expect(readFileSync(place.record, "utf8")).toBe("{");
  release();
  expect((await run.ended).status).toBe(RELEASED);
  expect(readdirSync(place.directory).filter((name) => name.includes("broken"))).toEqual([
    "lease.json.broken-2",
  ]);
});

/** Leaves a run behind whose watchdog, tree and journal are gone, as after a crash of the disk. */
async function leaveCrashed(name: string, stateDirectory: string): Promise<SeenPlace> {
  const place = placeOf(stateDirectory, name);
  const run = scene.start(["--name", name, "--log", "off", ...QUICK, "--", "sleep", "93086"], {
    env: { WATCHDOG_STATE_DIR: stateDirectory },
  });
  await waitForCommand(scene, "sleep 93086");
  await waitFor(() => tryReadLease(place)?.["state"] === "held", "the record");
  run.kill("SIGKILL");
  await run.ended;
  await waitFor(() => findByCommand(scene, "sleep 93086").length === 0, "the guard to bury");
  await waitForBurial(stateDirectory, name);
  return place;
}

function forgetJournal(stateDirectory: string): void {
  for (const name of ["journal.db", "journal.db-wal", "journal.db-shm"]) {
    rmSync(`${stateDirectory}/${name}`, { force: true });
  }
}

test("A-86: without record and journal the slot tells generation and owner", async () => {
  const state = scene.path("slot-only");
  const place = await leaveCrashed("crashed", state);
  forgetJournal(state);
  writeFileSync(place.record, "{");
  const env = { WATCHDOG_STATE_DIR: state };
  const next = await newcomer(scene, "crashed", [], { env });
  expect([next.status, next.stdout.toString()]).toEqual([0, "STOLEN\n"]);
  expect(next.stderr).toMatch(
    /\nwatchdog: took over job:crashed from run [\w-]+.*\(R6 tree-empty\)\n$/,
  );
  expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
  expect(readLease(place)["previous"]).toMatchObject({ generation: 1, how_it_ended: "dead" });
});

test("A-86: where nothing can be read any more, 78, and nothing is changed", async () => {
  const state = scene.path("nothing");
  const place = await leaveCrashed("unknown", state);
  forgetJournal(state);
  writeFileSync(place.record, "{");
  writeFileSync(place.slot(1), new Uint8Array(4096));
  const env = { WATCHDOG_STATE_DIR: state };
  for (const words of [[], ["--wait", "300ms"]]) {
    const next = await newcomer(scene, "unknown", words, { env });
    expect([words, next.status, next.stdout.toString()]).toEqual([words, CONFIG_ERROR, ""]);
    expect(next.stderr).toBe(
      "watchdog: not started: job:unknown cannot be granted: nothing tells its last generation " +
        "(neither the record nor beat.1 can be read)\n" +
        "watchdog: hint: watchdog lease show job:unknown\n",
    );
  }
  expect(readFileSync(place.record, "utf8")).toBe("{");
  expect(readFileSync(place.slot(1))).toEqual(Buffer.alloc(4096));
  expect(listGenerations(place)).toEqual([1]);
  // Other keys are not in its way.
  expect((await newcomer(scene, "other", [], { env })).status).toBe(0);
});

describe("A-87:", () => {
  test("a record of a newer format is refused with 78, and stays as it is", async () => {
    const place = placeOf(scene.stateDirectory, "newer");
    await newcomer(scene, "newer");
    const text = change(readFileSync(place.record, "utf8"), { format: 2, future: { x: [1] } });
    writeFileSync(place.record, text);
    const next = await newcomer(scene, "newer");
    expect([next.status, next.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
    expect(next.stderr).toBe(
      "watchdog: not started: job:newer cannot be granted: nothing tells its last generation " +
        "(its format 2 is newer than this version knows)\n" +
        "watchdog: hint: watchdog lease show job:newer\n",
    );
    expect(readFileSync(place.record, "utf8")).toBe(text);
    expect(listGenerations(place)).toEqual([1]);
    const seen = await askJson(scene, ["lease", "show", "job:newer"]);
    expect(seen).toMatchObject({ verdict: "unknowable", because: "no-generation" });
  });

  test("fields that this version does not know are tolerated", async () => {
    const place = placeOf(scene.stateDirectory, "extra");
    await newcomer(scene, "extra");
    const extra = { version: 99, schema: 99, future: { x: [1] } };
    writeFileSync(place.record, change(readFileSync(place.record, "utf8"), extra));
    const next = await newcomer(scene, "extra");
    expect([next.status, next.stdout.toString(), next.stderr]).toEqual([0, "STOLEN\n", ""]);
    expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
  });

  test("unknown fields of a holder's record survive its release", async () => {
    const { run, place, release } = await holdJob(scene, "extra-held", QUICK);
    writeFileSync(place.record, change(readFileSync(place.record, "utf8"), { future: [1] }));
    expect((await newcomer(scene, "extra-held")).status).toBe(LOCKED);
    release();
    expect((await run.ended).status).toBe(RELEASED);
    expect(readLease(place)).toMatchObject({ generation: 1, state: "released", future: [1] });
  });

  test("a newer record that appears under a living owner is not written over", async () => {
    const words = ["--heartbeat-interval", "1h"];
    const { run, place, release } = await holdJob(scene, "newer-held", words);
    const text = change(readFileSync(place.record, "utf8"), { format: 2 });
    writeFileSync(place.record, text);
    expect((await newcomer(scene, "newer-held")).status).toBe(LOCKED);
    release();
    const ended = await run.ended;
    expect(ended.status).toBe(RELEASED);
    expect(ended.stderr).toContain("lease.json is of a newer version");
    expect(readFileSync(place.record, "utf8")).toBe(text);
  });
});

const BINDS = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])";

/** Kinds of files that are no mistake of a crash: a person has put them there. */
const KINDS: readonly (readonly [string, (path: string) => unknown])[] = [
  ["FIFO", (path) => Bun.spawnSync(["mkfifo", path])],
  ["directory", (path) => mkdirSync(path)],
  ["socket", (path) => Bun.spawnSync([PYTHON, "-c", BINDS, path])],
];

describe("a lock or a fence that is a", () => {
  test.each(KINDS)(
    "%s is refused by name, with 78, and nothing hangs",
    async (kind, make) => {
      for (const file of ["lock", "fence"] as const) {
        const name = `${file}-${kind}`;
        const place = placeOf(scene.stateDirectory, name);
        mkdirSync(place.directory, { recursive: true, mode: 0o700 });
        make(place[file]);
        expect(existsSync(place[file])).toBe(true);
        const ended = await newcomer(scene, name);
        expect([name, ended.status, ended.stdout.toString()]).toEqual([name, CONFIG_ERROR, ""]);
        expect(ended.stderr).toContain(place[file]);
        expectSaidProperly(ended);
      }
    },
    LIMIT_MS,
  );
});
