/**
 * What somebody has put in the place of the journal's files is never followed, written through or
 * waited for, and neither that nor a full disk changes a job: it runs, keeps its status, and one
 * line says what is wrong.
 */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { ask, askJson, askLines, waitForRow } from "../support/ask.ts";
import { databaseOf, healthOf, HEALTHY, inState, listSpool } from "../support/own-state.ts";
import { type Ended, openScene, rootTest, type Scene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const SECRET = "a secret of somebody else's\n";

function shown({ status, stdout, stderr }: Ended): [number, string, string] {
  return [status, stdout.toString(), stderr];
}

/** `ran` and 5, under the name of the test. */
function runJob(state: Scene, args: readonly string[] = []): Promise<Ended> {
  const words = ["--name", "planted", "--log", "off", ...args];
  return state.run([...words, "--", "sh", "-c", "echo ran; exit 5"]);
}

async function expectRan(state: Scene, line: RegExp): Promise<void> {
  const ended = await runJob(state);
  expect([ended.status, ended.stdout.toString()]).toEqual([5, "ran\n"]);
  expect(ended.stderr).toMatch(line);
}

async function statusesOf(state: Scene): Promise<(number | null)[]> {
  const { runs } = await askJson(state, ["history", "planted", "--limit", "1000"]);
  return runs.map((run: { exit_status: number | null }) => run.exit_status);
}

/** A state directory in which nothing ever ran, and a file and a directory outside of it. */
function newState(name: string): { state: Scene; file: string; directory: string } {
  const state = inState(scene, name);
  mkdirSync(state.stateDirectory, { mode: 0o700 });
  const [file, directory] = [scene.path(`${name}.file`), scene.path(`${name}.outside`)];
  writeFileSync(file, SECRET, { mode: 0o640 });
  mkdirSync(directory);
  return { state, file, directory };
}

/** All that tells whether somebody has touched a file. */
function pictureOf(path: string): unknown {
  const { ino, mode, nlink, uid, gid, size, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
  return { ino, mode, nlink, uid, gid, size, mtimeNs, ctimeNs, text: readFileSync(path, "latin1") };
}

/** One line, and nothing else, that names the file. */
function lineOf(text: string): RegExp {
  return new RegExp(`^watchdog: journal: [^\\n]*${text}[^\\n]*\\n$`);
}

describe("a link that was planted", () => {
  for (const [where, before] of [
    ["for journal.db", "journal.db"],
    ["for journal.lock", "journal.lock"],
    ["for the log of the database", "journal.db-wal"],
    ["for the index of that log", "journal.db-shm"],
  ] as const) {
    test(`${where} is not followed, and the run is recorded once it is gone`, async () => {
      const { state, file } = newState(before);
      if (before.includes("-")) await runJob(state, ["--no-lease"]);
      const link = `${state.stateDirectory}/${before}`;
      rmSync(link, { force: true });
      symlinkSync(file, link);
      const picture = pictureOf(file);
      await expectRan(state, lineOf("cannot be used"));
      await expectRan(state, lineOf("cannot be used"));
      const asked = await ask(state, ["history", "planted"]);
      expect(asked.stderr + asked.stdout.toString()).not.toContain(SECRET.trim());
      expect([pictureOf(file), readlinkSync(link)]).toEqual([picture, file]);
      rmSync(link);
      const recorded = before.includes("-") ? [5, 5, 5] : [5, 5];
      expect(await statusesOf(state)).toEqual(recorded);
      expect([healthOf(state), listSpool(state)]).toEqual([HEALTHY, []]);
    });
  }

  test("that leads nowhere makes no file there", async () => {
    const { state } = newState("dangling");
    const target = scene.path("dangling.target");
    symlinkSync(target, databaseOf(state));
    await expectRan(state, lineOf("symbolic link"));
    expect(existsSync(target)).toBe(false);
  });

  test("for spool is not written through, and keeps nothing out of a sound journal", async () => {
    const { state, directory } = newState("spool");
    symlinkSync(directory, `${state.stateDirectory}/spool`);
    mkdirSync(databaseOf(state));
    const ended = await runJob(state);
    expect([ended.status, ended.stdout.toString()]).toEqual([5, "ran\n"]);
    expect(ended.stderr).toMatch(/^watchdog: journal: [^\n]*spool[^\n]*$/m);
    expect(readdirSync(directory)).toEqual([]);
    rmSync(databaseOf(state), { recursive: true });
    expect((await runJob(state)).status).toBe(5);
    expect(await statusesOf(state)).toEqual([5]);
    expect(readdirSync(directory)).toEqual([]);
  });

  test("for spool that leads to files with such names reads none of them", async () => {
    const { state, directory } = newState("foreign");
    const name = "0000000001-11111111-1111-1111-1111-111111111111.json";
    writeFileSync(`${directory}/${name}`, SECRET);
    symlinkSync(directory, `${state.stateDirectory}/spool`);
    expect((await runJob(state)).status).toBe(5);
    expect(readdirSync(directory)).toEqual([name]);
    expect(readFileSync(`${directory}/${name}`, "utf8")).toBe(SECRET);
    expect(await statusesOf(state)).toEqual([5]);
  });

  test("within spool is put aside unread, also one to a spooled run of another state", async () => {
    const other = newState("spooled-elsewhere");
    mkdirSync(databaseOf(other.state));
    await expectRan(other.state, lineOf("it is not a regular file"));
    const [name = ""] = listSpool(other.state);
    const file = `${other.state.stateDirectory}/spool/${name}`;

    const { state } = newState("spooled");
    mkdirSync(`${state.stateDirectory}/spool`, { mode: 0o700 });
    symlinkSync(file, `${state.stateDirectory}/spool/${name}`);
    const picture = pictureOf(file);
    await expectRan(state, lineOf(name));
    expect([pictureOf(file), listSpool(state)]).toEqual([picture, [`${name}.bad`]]);
    expect(await statusesOf(state)).toEqual([5]);
    expect(shown(await runJob(state))).toEqual([5, "ran\n", ""]);
  });
});

describe("what is no file in the place of journal.db", () => {
  test.each([
    ["a directory", "mkdir"],
    ["a fifo", "mkfifo"],
  ])("%s holds nobody up, and the run is recorded once it is gone", async (_, make) => {
    const { state } = newState(make);
    await scene.startProgram([make, databaseOf(state)]).ended;
    await expectRan(state, lineOf("it is not a regular file"));
    rmSync(databaseOf(state), { recursive: true });
    expect(await statusesOf(state)).toEqual([5]);
  });
});

test("history tells of runs that wait where no journal could be made", async () => {
  const { state, file } = newState("waiting");
  symlinkSync(file, `${state.stateDirectory}/journal.lock`);
  await expectRan(state, lineOf("cannot be used"));
  expect(listSpool(state).length).toBeGreaterThan(0);
  const { stderr } = await ask(state, ["history", "planted"]);
  expect(stderr).toMatch(/^watchdog: journal: \d+ files? in spool\/ [^\n]*$/m);
});

/** A file system of its own, and a file that takes all that is left of it. */
async function withSmallDisk(act: (disk: string) => Promise<void>): Promise<void> {
  const disk = scene.path("disk");
  mkdirSync(disk, { recursive: true });
  const mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", disk];
  expect((await scene.startProgram(mount).ended).status).toBe(0);
  try {
    await act(disk);
  } finally {
    await scene.startProgram(["umount", disk]).ended;
  }
}

async function fill(path: string): Promise<void> {
  const full = await scene.startProgram(["dd", "if=/dev/zero", `of=${path}`, "bs=4096"]).ended;
  expect(full.stderr).toContain("No space left");
}

rootTest(
  "a full disk that takes neither journal nor spool costs the line, not the job",
  async () => {
    await withSmallDisk(async (disk) => {
      const state = inState(scene, "disk/state");
      expect(shown(await runJob(state))).toEqual([5, "ran\n", ""]);
      await fill(`${disk}/filled`);
      const ended = await runJob(state, ["--no-lease"]);
      expect([ended.status, ended.stdout.toString()]).toEqual([5, "ran\n"]);
      const lines = ended.stderr.trimEnd().split("\n");
      expect(lines).toEqual([
        expect.stringMatching(
          /^watchdog: journal: journal\.db cannot be used: .*(full|I\/O error)/,
        ),
        expect.stringMatching(/^watchdog: journal: this run cannot be recorded, now: ENOSPC/),
      ]);
      rmSync(`${disk}/filled`);
      expect(shown(await runJob(state))).toEqual([5, "ran\n", ""]);
      expect([await statusesOf(state), listSpool(state)]).toEqual([[5, 5], []]);
      expect(healthOf(state)).toEqual(HEALTHY);
    });
  },
);

rootTest(
  "a disk that the job has filled up: its status stays, and its row tells the truth",
  async () => {
    await withSmallDisk(async (disk) => {
      const state = inState(scene, "disk/state");
      await runJob(state);
      const gate = scene.path("filler.gate");
      const waits = `until [ -e ${gate} ]; do sleep 0.05; done`;
      const script = `${waits}; dd if=/dev/zero of=${disk}/filled bs=4096 2>&-; exit 6`;
      const filler = state.start(["--name", "planted", "--log", "off", "--", "sh", "-c", script]);
      await waitForRow(state, "planted", "running");
      writeFileSync(gate, "");
      const ended = await filler.ended;
      expect(ended.status).toBe(6);
      expect(ended.stderr).toMatch(/^(watchdog: journal: [^\n]*\n){1,2}$/);
      const isLost = ended.stderr.includes("this run cannot be recorded, now: ENOSPC");
      rmSync(`${disk}/filled`);
      expect(shown(await runJob(state))).toEqual([5, "ran\n", ""]);
      expect(await statusesOf(state)).toEqual([5, isLost ? null : 6, 5]);
      const [, line = ""] = await askLines(state, ["history", "planted"]);
      expect(line).toMatch(isLost ? / unfinished +- / : / failed +6 /);
      expect(await askLines(state, ["lease", "list"])).toEqual([
        expect.stringMatching(/^job:planted +free /),
      ]);
      expect(healthOf(state)).toEqual(HEALTHY);
    });
  },
);
