/**
 * The files of the state directory: links planted in their places are never followed, nobody else
 * may read them whatever the umask, and a directory of another version is left alone.
 */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { ask } from "../support/ask.ts";
import {
  holdJob,
  newcomer,
  placeOf,
  eventsOf,
  readLease,
  readSlot,
  RELEASED,
  waitForBeat,
} from "../support/lease-seen.ts";
import { runShell } from "../support/outside.ts";
import { type Ended, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const CONFIG_ERROR = 78;
const HANG_MS = 20_000;
const GIB = 1_073_741_824;
const QUICK = ["--heartbeat-interval", "150ms"];
const PRECIOUS = "precious\n";
const victim = scene.path("victim");

/** Whether nobody has written to the victim, emptied it, or changed whose it is. */
function expectVictimWhole(): void {
  expect(readFileSync(victim, "utf8")).toBe(PRECIOUS);
  expect(statSync(victim).mode & 0o7777).toBe(0o640);
}

async function withVictim(): Promise<void> {
  await Bun.write(victim, PRECIOUS);
  await runShell(scene, 'chmod 640 "$V"', { env: { V: victim } });
}

/** A state directory of this name in which one run with a log has ended. */
async function stateWithRun(name: string): Promise<string> {
  const state = scene.path(name);
  const ended = await runIn(state);
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  return state;
}

function runIn(state: string, words: readonly string[] = []): Promise<Ended> {
  const all = ["--name", "a50", "--log", "on", ...words, "--", "echo", "ran"];
  return scene.run(all, { env: { WATCHDOG_STATE_DIR: state } });
}

function filesBelow(state: string): string[] {
  const names = readdirSync(state, { recursive: true }).map(String);
  return names.filter((name) => lstatSync(`${state}/${name}`).isFile()).sort();
}

/** What a link in the place of this file leads to: a refusal, or a run and perhaps a warning. */
const PLANTED: readonly (readonly [path: string, status: number, says: RegExp])[] = [
  ["FORMAT", CONFIG_ERROR, /\/FORMAT: it is a symbolic link\n/],
  ["leases/job/a50/lock", CONFIG_ERROR, /\/a50\/lock: it is a symbolic link\n/],
  ["leases/job/a50/fence", CONFIG_ERROR, /\/a50\/fence: it is a symbolic link\n/],
  ["leases/job/a50/lease.json", 0, /^(watchdog: .*\n)?$/],
  ["leases/job/a50/beat.1", 0, /^$/],
  ["leases/job/a50/beat.2", 0, /^$/],
  ["leases/job/a50/seen.json", 0, /^$/],
  ["leases/job/floors", 0, /^$/],
  ["journal.db", 0, /^watchdog: journal: journal.db .*it is a symbolic link\n$/],
  ["journal.db-wal", 0, /^(watchdog: journal: .*\n)?$/],
  ["journal.db-shm", 0, /^(watchdog: journal: .*\n)?$/],
  ["journal.lock", 0, /^(watchdog: journal: .*\n)?$/],
];

describe("A-50: a link to a victim in the place of", () => {
  test.each(PLANTED)("%s is never followed", async (path, status, says) => {
    await withVictim();
    const state = await stateWithRun(`planted-${path.replaceAll("/", "-")}`);
    rmSync(`${state}/${path}`, { force: true });
    symlinkSync(victim, `${state}/${path}`);
    const ended = await runIn(state);
    expect([path, ended.status]).toEqual([path, status]);
    expect(ended.stderr).toMatch(says);
    expect(ended.stdout.toString()).toBe(status === 0 ? "ran\n" : "");
    expectVictimWhole();
    // Once the link is gone, nothing of it is left.
    if (lstatSync(`${state}/${path}`, { throwIfNoEntry: false })?.isSymbolicLink()) {
      rmSync(`${state}/${path}`);
    }
    const next = await runIn(state);
    expect([path, next.status, next.stdout.toString()]).toEqual([path, 0, "ran\n"]);
    expectVictimWhole();
  });

  test("a file of the journal when there is none yet is never followed", async () => {
    await withVictim();
    for (const name of ["journal.db", "journal.lock", "journal.db-wal", "journal.db-shm"]) {
      const state = scene.path(`first-${name}`);
      mkdirSync(state, { mode: 0o700 });
      symlinkSync(victim, `${state}/${name}`);
      const ended = await runIn(state);
      expect([name, ended.status, ended.stdout.toString()]).toEqual([name, 0, "ran\n"]);
      expectVictimWhole();
    }
  });

  test("every file that a run leaves is in the list", async () => {
    const state = await stateWithRun("listed");
    const planted = PLANTED.map(([path]) => path);
    const others = filesBelow(state).filter((path) => !planted.includes(path));
    // A log has a name of its own that nobody can know before.
    expect(others).toEqual([expect.stringMatching(/^logs\/a50\/[0-9a-f-]{36}\.log$/)]);
  });

  test.each(["leases", "leases/job", "leases/job/a50"])(
    "the directory %s is refused with 78 by its name",
    async (path) => {
      const state = await stateWithRun(`directory-${path.replaceAll("/", "-")}`);
      const elsewhere = scene.path(`elsewhere-${path.replaceAll("/", "-")}`);
      renameSync(`${state}/${path}`, elsewhere);
      const before = filesBelow(elsewhere);
      symlinkSync(elsewhere, `${state}/${path}`);
      const ended = await runIn(state);
      expect([path, ended.status, ended.stdout.toString()]).toEqual([path, CONFIG_ERROR, ""]);
      expect(ended.stderr).toContain(
        `${state}/${path}: it is a symbolic link, expected a directory\n`,
      );
      expect(filesBelow(elsewhere)).toEqual(before);
    },
  );
});

describe("A-50: under a living owner a link to a victim in the place of", () => {
  test("its record or its slot is replaced, and the job lives", async () => {
    await withVictim();
    const { run, place, release } = await holdJob(scene, "held", QUICK);
    for (const path of [place.record, place.slot(1)]) {
      rmSync(path);
      symlinkSync(victim, path);
      const second = await newcomer(scene, "held");
      expect([path, second.status, second.stdout.toString()]).toEqual([path, LOCKED, ""]);
      const isFile = () => lstatSync(path, { throwIfNoEntry: false })?.isFile();
      await waitFor(isFile, `a file again at ${path}`);
      expectVictimWhole();
    }
    await waitFor(() => readSlot(place.slot(1)) !== undefined, "the slot");
    release();
    expect((await run.ended).status).toBe(RELEASED);
    expect(readLease(place)).toMatchObject({ generation: 1, state: "released" });
    expectVictimWhole();
  });

  test("its lock lets nobody in and is told, and the job lives", async () => {
    await withVictim();
    const { run, place, release } = await holdJob(scene, "linked", QUICK);
    const { sequence } = await waitForBeat(place, 3);
    rmSync(place.lock);
    symlinkSync(victim, place.lock);
    const second = await newcomer(scene, "linked");
    expect([second.status, second.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
    expect(second.stderr).toContain(`${place.lock}: it is a symbolic link\n`);
    await waitForBeat(place, sequence + 5);
    release();
    const ended = await run.ended;
    expect(ended.status).toBe(RELEASED);
    expect(ended.stderr).toContain("heartbeats of job:linked cannot be written: lock file: ");
    expect(await eventsOf(scene, "linked")).toContain("beat_failing");
    expect(lstatSync(place.lock).isSymbolicLink()).toBe(true);
    expectVictimWhole();
    rmSync(place.lock);
    expect((await newcomer(scene, "linked")).status).toBe(0);
    expect(readLease(place)["generation"]).toBe(2);
  });
});

/** Modes that give somebody else a right, each with its path. */
async function findOpenModes(state: string): Promise<string> {
  const found = await runShell(scene, `find "$S" -perm /077 -printf '%m %y %P\\n'`, {
    env: { S: state },
  });
  return found.stdout.toString();
}

describe("A-78: whatever the umask, nobody else may read", () => {
  test.each(["000", "022", "077", "777"])(
    "anything of a state directory made with umask %s",
    async (umask) => {
      const state = scene.path(`umask-${umask}`, "state");
      const script = `umask ${umask}; exec "$W" run --name a78 --log on --lock lane:a78 -- sh -c '
        umask; "$W" keep -- true; "$W" run --name inner --quiet -- echo secret
        echo ready >&2; until [ -e "$GATE" ]; do sleep 0.05; done; exit 1'`;
      const gate = scene.path(`umask-${umask}.gate`);
      mkdirSync(dirname(state));
      const env = { WATCHDOG_STATE_DIR: state, GATE: gate };
      const run = runShell(scene, script, { env });
      const place = placeOf(state, "a78");
      await waitForBeat(place, 3);
      await waitFor(() => existsSync(placeOf(state, "inner").record), "the inner run");
      const refused = await newcomer(scene, "a78", [], { env });
      expect(refused.status).toBe(LOCKED);
      expect(await findOpenModes(state)).toBe("");
      writeFileSync(gate, "");
      const ended = await run;
      expect([ended.status, ended.stdout.toString()]).toEqual([1, `0${umask}\n`]);
      expect(await findOpenModes(state)).toBe("");
      expect(lstatSync(state).mode & 0o7777).toBe(0o700);
      for (const path of filesBelow(state)) {
        expect([path, lstatSync(`${state}/${path}`).mode & 0o7777]).toEqual([path, 0o600]);
      }
    },
    HANG_MS,
  );

  test("negative twin: a file that others may read is found", async () => {
    const state = scene.path("found");
    mkdirSync(state, { mode: 0o700 });
    await runShell(scene, 'umask 022; echo secret >"$S/open"', { env: { S: state } });
    expect(await findOpenModes(state)).toBe("644 f open\n");
  });
});

describe("FORMAT", () => {
  test("of a newer layout refuses every command that would write, with 78", async () => {
    const state = await stateWithRun("newer");
    writeFileSync(`${state}/FORMAT`, '{"format":2,"locks":"tried"}\n');
    const before = filesBelow(state).map((path) => [
      path,
      readFileSync(`${state}/${path}`, "utf8"),
    ]);
    for (const words of [[], ["--name", "other"], ["--wait", "1s"]]) {
      const ended = await runIn(state, words);
      expect([words, ended.status, ended.stdout.toString()]).toEqual([words, CONFIG_ERROR, ""]);
      expect(ended.stderr).toBe(
        `watchdog: error: state directory ${state} has format 2, expected at most 1\n` +
          "watchdog: hint: watchdog --version\n",
      );
    }
    expect((await ask(scene, ["status", "--state-dir", state])).status).toBe(CONFIG_ERROR);
    const after = filesBelow(state).map((path) => [path, readFileSync(`${state}/${path}`, "utf8")]);
    expect(after).toEqual(before);
  });

  test("with fields that this version does not know is taken, and left as it is", async () => {
    const state = await stateWithRun("fields");
    writeFileSync(`${state}/FORMAT`, '{"format":1,"future":[1]}');
    expect((await runIn(state)).stdout.toString()).toBe("ran\n");
    expect(readFileSync(`${state}/FORMAT`, "utf8")).toBe('{"format":1,"future":[1]}');
  });

  test.each([
    ["empty", (path: string) => writeFileSync(path, "")],
    ["zero bytes", (path: string) => writeFileSync(path, new Uint8Array(64))],
    ["cut off", (path: string) => writeFileSync(path, '{"format"')],
    ["missing", (path: string) => rmSync(path)],
    ["1 GiB", (path: string) => truncateSync(path, GIB)],
  ] as const)("that is %s is written again", async (title, damage) => {
    const state = await stateWithRun(`format-${title.replaceAll(" ", "-")}`);
    damage(`${state}/FORMAT`);
    const ended = await runIn(state);
    expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "ran\n", ""]);
    expect(JSON.parse(readFileSync(`${state}/FORMAT`, "utf8"))).toMatchObject({ format: 1 });
  });

  test(
    "that is no file is refused with 78, and nothing hangs",
    async () => {
      for (const make of ["mkfifo", "mkdir"]) {
        const state = scene.path(`kind-${make}`);
        mkdirSync(state, { mode: 0o700 });
        await scene.startProgram([make, `${state}/FORMAT`]).ended;
        const ended = await runIn(state);
        expect([make, ended.status, ended.stdout.toString()]).toEqual([make, CONFIG_ERROR, ""]);
        expect(ended.stderr).toContain(`${state}/FORMAT: it is not a regular file\n`);
      }
    },
    HANG_MS,
  );
});
