/**
 * The journal is never on the way of a job: whoever holds it, breaks it or has made it with another
 * version, the command runs, its status stays, and its run is in the history in the end.
 */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { ask, askJson, waitForRow } from "../support/ask.ts";
import { placeOf, readLease } from "../support/lease-seen.ts";
import { PYTHON } from "../support/outside.ts";
import {
  databaseOf,
  healthOf,
  HEALTHY,
  holdDatabase,
  inState,
  listBroken,
  listSpool,
  query,
} from "../support/own-state.ts";
import { readLines, waitForText } from "../support/processes.ts";
import {
  type Ended,
  FAULTS,
  FIXTURES,
  openScene,
  RELEASE,
  ROUNDS,
  type Scene,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const JOBS = 50;
const HELD_MS = 20_000;
/** "Not delayed by more than some seconds": what waits for the database takes all of HELD_MS. */
const SOME_SECONDS_MS = 10_000;
const BROKEN = /^watchdog: journal: journal\.db was broken \([^\n]+\); kept as [^\n]+\n$/;
const NEWER = /^watchdog: journal: journal\.db is of a newer watchdog [^\n]+\n$/;

/** Status, stdout, stderr. */
function shown({ status, stdout, stderr }: Ended): [number, string, string] {
  return [status, stdout.toString(), stderr];
}

/** `ran` and 5, as the cases have it, under this name. */
function runJob(state: Scene, name: string, status = 5): Promise<Ended> {
  return state.run(["--name", name, "--log", "off", "--", "sh", "-c", `echo ran; exit ${status}`]);
}

/** Exit statuses of the history, newest first; null of a run that goes on. */
async function statusesOf(state: Scene, job: string): Promise<(number | null)[]> {
  const { runs } = await askJson(state, ["history", job, "--limit", "1000"]);
  return runs.map((run: { exit_status: number | null }) => run.exit_status);
}

/** A command that lives until its gate is there. */
function waitingFor(gate: string, status: number): string[] {
  return ["sh", "-c", `until [ -e '${gate}' ]; do sleep 0.05; done; exit ${status}`];
}

/** As `mv` does it: another file in the place of the first. */
function replaceDatabase(state: Scene, content: Uint8Array | string): void {
  for (const part of ["-wal", "-shm"]) rmSync(databaseOf(state) + part, { force: true });
  writeFileSync(`${databaseOf(state)}.new`, content);
  renameSync(`${databaseOf(state)}.new`, databaseOf(state));
}

describe("A-83: fifty different jobs that end at the same moment", () => {
  /** All fifty begin at once and end when the gate is opened. */
  async function endTogether(state: Scene, prefix: string): Promise<void> {
    const [alive, gate] = [scene.path(`${prefix}.alive`), scene.path(`${prefix}.gate`)];
    const statuses = scene.path(`${prefix}.statuses`);
    const script = `echo >>'${alive}'; until [ -e '${gate}' ]; do sleep 0.05; done; exit 3`;
    const start = 'exec "$1" run --name "$2-$$" -- sh -c "$3"';
    const starter = [PYTHON, `${FIXTURES}/starts-at-once.py`, String(JOBS), statuses];
    const words = ["sh", "-c", start, "sh", RELEASE, prefix, script];
    const started = state.startProgram([...starter, ...words]);
    const countAlive = (): number => (existsSync(alive) ? readFileSync(alive).length : 0);
    await waitFor(() => countAlive() === JOBS, `${JOBS} commands`, { limitMs: LIMIT_MS });
    writeFileSync(gate, "");
    expect(shown(await started.ended)).toEqual([0, "", ""]);
    expect(readLines(statuses)).toEqual(Array(JOBS).fill("3"));
  }

  test("are all in the history, of a new state directory and of an old one", async () => {
    for (let round = 0; round < Math.ceil(ROUNDS / 20); round += 1) {
      const state = inState(scene, `a83-${round}`);
      await endTogether(state, `new-${round}`);
      await endTogether(state, `there-${round}`);
      const { runs } = await askJson(state, ["history", "--limit", "1000"]);
      const names = new Set(runs.map(({ job }: { job: string }) => job));
      expect([runs.length, names.size]).toEqual([2 * JOBS, 2 * JOBS]);
      const ends = runs.map((run: { outcome: string; exit_status: number }) => [
        run.outcome,
        run.exit_status,
      ]);
      expect(ends).toEqual(Array.from({ length: 2 * JOBS }, () => ["failed", 3]));
      expect([healthOf(state), listSpool(state), listBroken(state)]).toEqual([HEALTHY, [], []]);
    }
  }, 600_000);
});

describe("A-84: a database that somebody holds for twenty seconds", () => {
  test(
    "delays no start and no signal, changes no status, and has every run in the end",
    async () => {
      const state = inState(scene, "a84");
      expect((await runJob(state, "a84", 0)).status).toBe(0);
      const holder = await holdDatabase(state);
      const heldAt = performance.now();
      const gate = scene.path("a84.gate");
      const whole = state.start(["--name", "whole", "--", ...waitingFor(gate, 4)]);

      const short = await runJob(state, "a84", 6);
      expect(shown(short)).toEqual([6, "ran\n", ""]);
      expect(performance.now() - heldAt).toBeLessThan(SOME_SECONDS_MS);

      const heard = scene.path("a84.heard");
      const fixture = [PYTHON, `${FIXTURES}/notes-signals.py`, heard, "main", "TERM"];
      const signalled = state.start(["--name", "signalled", "--", ...fixture]);
      await waitForText(heard);
      const sentAt = performance.now();
      signalled.kill("SIGTERM");
      expect(shown(await signalled.ended)).toEqual([5, "", ""]);
      expect(performance.now() - sentAt).toBeLessThan(SOME_SECONDS_MS);
      expect(readLines(heard)).toEqual(["main ready", "main TERM"]);

      expect(readLease(placeOf(state.stateDirectory, "a84"))).toMatchObject({
        generation: 2,
        state: "released",
      });
      const meanwhile = await ask(state, ["history", "a84", "--json"]);
      expect(meanwhile.stderr + meanwhile.stdout.toString()).not.toMatch(/locked|busy|\n {4}at /);

      const isOver = (): boolean => performance.now() - heldAt > HELD_MS;
      await waitFor(isOver, "twenty seconds", { stepMs: 200 });
      await holder.release();
      writeFileSync(gate, "");
      expect(shown(await whole.ended)).toEqual([4, "", ""]);
      expect(await statusesOf(state, "a84")).toEqual([6, 0]);
      expect(await statusesOf(state, "signalled")).toEqual([5]);
      expect(await statusesOf(state, "whole")).toEqual([4]);
      expect([healthOf(state), listSpool(state)]).toEqual([HEALTHY, []]);
    },
    LIMIT_MS,
  );

  test("does not delay a start that finds its last generation nowhere else", async () => {
    const state = inState(scene, "a84-generation");
    await runJob(state, "known", 0);
    const place = placeOf(state.stateDirectory, "known");
    rmSync(place.directory, { recursive: true });
    const holder = await holdDatabase(state);
    const beganAt = performance.now();
    const next = await runJob(state, "known");
    expect([next.status, next.stdout.toString()]).toEqual([5, "ran\n"]);
    expect(performance.now() - beganAt).toBeLessThan(SOME_SECONDS_MS);
    await holder.release();
    expect(await statusesOf(state, "known")).toEqual([5, 0]);
  });
});

describe("A-85: a database that is none", () => {
  const broken: readonly (readonly [string, (good: Buffer) => Uint8Array | string])[] = [
    ["random bytes", () => crypto.getRandomValues(new Uint8Array(6_000))],
    ["the first 100 bytes of a good one", (good) => good.subarray(0, 100)],
    ["the first half of a good one", (good) => good.subarray(0, good.length / 2)],
    ["zeros", (good) => new Uint8Array(good.length)],
  ];

  test.each(broken)(
    "of %s: the job runs, one line says it, the file is kept, the history goes on",
    async (what, breaking) => {
      const state = inState(scene, `a85 ${what}`);
      await runJob(state, "a85", 0);
      const content = breaking(readFileSync(databaseOf(state)));
      replaceDatabase(state, content);

      const ended = await runJob(state, "a85");
      expect([ended.status, ended.stdout.toString()]).toEqual([5, "ran\n"]);
      expect(ended.stderr).toMatch(BROKEN);
      const [kept = "none", ...more] = listBroken(state);
      expect([more, ended.stderr.includes(kept)]).toEqual([[], true]);
      expect(readFileSync(`${state.stateDirectory}/${kept}`).equals(Buffer.from(content))).toBe(
        true,
      );

      expect(await statusesOf(state, "a85")).toEqual([5]);
      expect(shown(await runJob(state, "a85", 0))).toEqual([0, "ran\n", ""]);
      expect(await statusesOf(state, "a85")).toEqual([0, 5]);
      expect([healthOf(state), listBroken(state)]).toEqual([HEALTHY, [kept]]);
      expect(readLease(placeOf(state.stateDirectory, "a85"))).toMatchObject({ generation: 3 });
    },
  );

  test(
    "and that twenty jobs find at once is set aside once, and all are recorded",
    async () => {
      const state = inState(scene, "a85-many");
      await runJob(state, "before", 0);
      replaceDatabase(state, "torn".repeat(2_000));
      const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
      const ends = await Promise.all(names.map((name) => runJob(state, name)));
      expect(ends.map(({ status }) => status)).toEqual(names.map(() => 5));
      const lines = ends.flatMap(({ stderr }) => stderr.split("\n").filter((line) => line !== ""));
      expect(lines.filter((line) => line.includes("was broken"))).toHaveLength(1);
      expect(lines).toHaveLength(1);
      for (const name of names) expect([name, await statusesOf(state, name)]).toEqual([name, [5]]);
      expect([listBroken(state).length, healthOf(state)]).toEqual([1, HEALTHY]);
    },
    LIMIT_MS,
  );

  test("put there while a run goes on: its end is recorded in the new one", async () => {
    const state = inState(scene, "a85-during");
    await runJob(state, "before", 0);
    const gate = scene.path("a85.gate");
    const run = state.start(["--name", "during", "--", ...waitingFor(gate, 5)]);
    await waitForRow(state, "during", "running");
    replaceDatabase(state, "torn".repeat(2_000));
    writeFileSync(gate, "");
    const ended = await run.ended;
    expect(ended.status).toBe(5);
    expect(ended.stderr).toMatch(BROKEN);
    expect(await statusesOf(state, "during")).toEqual([5]);
  });

  test("negative twin: one that is sound is never set aside, however often it is met", async () => {
    const state = inState(scene, "a85-sound");
    for (const _ of [1, 2, 3])
      expect(shown(await runJob(state, "sound"))).toEqual([5, "ran\n", ""]);
    expect([listBroken(state), await statusesOf(state, "sound")]).toEqual([[], [5, 5, 5]]);
  });
});

describe("A-87: a database of another version", () => {
  test("that is newer is not altered, is told once, and gets its runs when it can", async () => {
    const state = inState(scene, "a87-newer");
    await runJob(state, "a87", 0);
    query(state, "PRAGMA user_version = 9999");
    const before = readFileSync(databaseOf(state));
    for (const _ of [1, 2]) {
      const ended = await runJob(state, "a87");
      expect([ended.status, ended.stdout.toString()]).toEqual([5, "ran\n"]);
      expect(ended.stderr).toMatch(NEWER);
    }
    expect(readFileSync(databaseOf(state)).equals(before)).toBe(true);
    expect([query(state, "PRAGMA user_version"), listBroken(state)]).toEqual([[[9999]], []]);

    const old = await ask(state, ["history", "a87", "--json"]);
    expect([old.status, JSON.parse(old.stdout.toString()).runs.length]).toEqual([0, 1]);
    expect(old.stderr).toMatch(
      /^(watchdog: journal: [^\n]*\n)?watchdog: journal: 4 files in spool/,
    );

    query(state, "PRAGMA user_version = 0");
    expect(shown(await runJob(state, "a87", 2))).toEqual([2, "ran\n", ""]);
    expect(await statusesOf(state, "a87")).toEqual([2, 5, 5, 0]);
    expect([healthOf(state), listSpool(state)]).toEqual([HEALTHY, []]);
  });

  test("that is older is brought up to date, and old rows are still listed", async () => {
    const state = inState(scene, "a87-older");
    await runJob(state, "a87", 0);
    const [[version]] = query(state, "PRAGMA user_version") as [[number]];
    query(state, "PRAGMA user_version = 0");
    expect(shown(await runJob(state, "a87"))).toEqual([5, "ran\n", ""]);
    expect(query(state, "PRAGMA user_version")).toEqual([[version]]);
    expect(await statusesOf(state, "a87")).toEqual([5, 0]);
  });

  test("that is a newer minor, with columns and tables more, is written by name", async () => {
    const state = inState(scene, "a87-minor");
    await runJob(state, "a87", 0);
    query(state, "ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'good'");
    query(state, "CREATE TABLE moods (name TEXT)");
    query(state, "PRAGMA user_version = 1007");
    expect(shown(await runJob(state, "a87"))).toEqual([5, "ran\n", ""]);
    expect(query(state, "SELECT exit_status, mood FROM runs ORDER BY seq")).toEqual([
      [0, "good"],
      [5, "good"],
    ]);
    expect(query(state, "PRAGMA user_version")).toEqual([[1007]]);
  });

  test("and a lease with fields of the future: the job runs, nothing is said", async () => {
    const state = inState(scene, "a87-lease");
    await runJob(state, "a87", 0);
    const place = placeOf(state.stateDirectory, "a87");
    const record = { ...readLease(place), version: 99, schema: 99, future: { x: [1] } };
    writeFileSync(place.record, JSON.stringify(record));
    expect(shown(await runJob(state, "a87"))).toEqual([5, "ran\n", ""]);
    expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
  });
});

test("a journal that is just being made is no error for who asks", async () => {
  const state = inState(scene, "being-made");
  mkdirSync(state.stateDirectory, { mode: 0o700 });
  const [lock, notes] = [`${state.stateDirectory}/journal.lock`, scene.path("being-made.notes")];
  for (const path of [lock, databaseOf(state)]) writeFileSync(path, "", { mode: 0o600 });
  const maker = state.startProgram([PYTHON, `${FIXTURES}/holds-lock.py`, notes, "0", lock]);
  await waitForText(notes);
  const asked = [await ask(state, ["history"]), await ask(state, ["status"])];
  maker.kill("SIGKILL");
  await maker.ended;
  expect(asked.map(({ status, stderr }) => [status, stderr])).toEqual([
    [0, ""],
    [0, ""],
  ]);
});

describe("a journal whose maker was killed before its first page", () => {
  /** The guard dies of the same fault. */
  async function leaveBegun(name: string): Promise<Scene> {
    const state = inState(scene, name);
    const faults = scene.path(`${name}.faults`);
    const env = { WATCHDOG_FAULT: "journal.open#2=kill", WATCHDOG_FAULT_DIR: faults };
    const options = { binary: FAULTS, env };
    const run = await state.run(["--name", name, "--log", "off", "--", "sleep", "317"], options);
    expect([run.signal, readdirSync(faults).length]).toEqual(["SIGKILL", 1]);
    const marker = JSON.parse(readFileSync(`${faults}/${readdirSync(faults)[0]}`, "utf8"));
    expect(marker).toMatchObject({ point: "journal.open", nth: 2, state: { mode: "create" } });
    expect(statSync(databaseOf(state)).size).toBe(0);
    return state;
  }

  test("is none yet for who asks: `stop` knows that nothing runs", async () => {
    const state = await leaveBegun("begun-asked");
    const { status, stderr } = await ask(state, ["stop", "begun-asked"]);
    expect(stderr).toContain("job:begun-asked was not given back: its watchdog is dead; ");
    expect([status, stderr.includes("journal")]).toEqual([1, false]);
  });

  test("is begun by the next run, and nothing is kept aside or said of it", async () => {
    const state = await leaveBegun("begun-next");
    const next = await runJob(state, "begun-next");
    expect([next.status, next.stdout.toString()]).toEqual([5, "ran\n"]);
    expect(next.stderr).not.toContain("journal");
    expect([listBroken(state), listSpool(state), healthOf(state)]).toEqual([[], [], HEALTHY]);
  });
});

test("a spool that is full stays bounded, and says how many files had to go", async () => {
  const state = inState(scene, "bounded");
  await runJob(state, "bounded", 0);
  query(state, "PRAGMA user_version = 9999");
  await runJob(state, "bounded");
  const [first = ""] = listSpool(state);
  const content = readFileSync(`${state.stateDirectory}/spool/${first}`);
  for (let number = 3; number <= 1_000; number += 1) {
    const name = `${String(number).padStart(10, "0")}-${crypto.randomUUID()}.json`;
    writeFileSync(`${state.stateDirectory}/spool/${name}`, content, { mode: 0o600 });
  }
  expect(listSpool(state)).toHaveLength(1_000);
  const ended = await runJob(state, "bounded");
  expect([ended.status, ended.stdout.toString()]).toEqual([5, "ran\n"]);
  expect(ended.stderr).toMatch(/^watchdog: journal: the spool is full: \d+ files? /m);
  const files = listSpool(state).filter((name) => name.endsWith(".json"));
  expect([files.length, files.includes(first)]).toEqual([1_000, false]);
});
