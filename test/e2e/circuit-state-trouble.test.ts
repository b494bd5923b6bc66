/**
 * Trouble with what a circuit keeps in the state directory: whoever cannot share is protected by
 * his own probes all the same, and says so once.
 */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { type CountingServer, openServers } from "../support/counting-server.ts";
import {
  databaseOf,
  healthOf,
  HEALTHY,
  holdDatabase,
  inState,
  listBroken,
} from "../support/own-state.ts";
import { openScene, rootTest, type Scene, type Started } from "../support/scene.ts";
import {
  Announcing,
  circuitOf,
  dependsOn,
  DOWN,
  letPass,
  lockOf,
  LONG_BACKOFF,
  PATIENT,
  probersOf,
  startJobs,
  waitForProber,
} from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 120_000;
/** Of PATIENT, and of a probe that says nothing else. */
const PERIOD_MS = 400;
const THRESHOLD = 3;
const NOBODY = 65_534;
const DOWN_LINE = "watchdog: dep is down, the job is stopped: status 500, expected 200-299\n";
const UNSHARED = "watchdog: circuits are not shared with other runs: ";

interface Protected {
  readonly state: Scene;
  readonly server: CountingServer;
  readonly run: Started;
  readonly record: () => Record<string, unknown>;
}

async function newState(name: string): Promise<Scene> {
  const state = inState(scene, name);
  expect((await state.run(["--log", "off", "--", "true"])).status).toBe(0);
  return state;
}

async function startProtected(
  state: Scene,
  name: string,
  server = openServer(),
): Promise<Protected> {
  const before = server.count;
  const job = new Announcing(scene, name);
  const words = dependsOn(scene, server, [...PATIENT, ...LONG_BACKOFF]);
  const run = state.start(["--name", name, ...scene.recordTo(name), ...words, ...job.command]);
  await job.waitForAll(1);
  await waitFor(() => server.count >= before + 2, "a probe while the job runs");
  return { state, server, run, record: () => scene.readRecord(name) };
}

/** The server dies: by its own probes the run is stopped. @returns what it has said */
async function expectStopped({ server, run, record }: Protected): Promise<string> {
  const died = server.goDown();
  const { status, stderr } = await run.ended;
  expect(status).toBe(DOWN);
  expectFew(server.countFrom(died));
  expect(stderr).toEndWith(DOWN_LINE);
  expect(record()).toMatchObject({ outcome: "dependency_down", because: "circuit-opened" });
  return stderr.slice(0, -DOWN_LINE.length);
}

/** On a busy machine one may have failed before the server died. */
function expectFew(requests: number): void {
  expect(requests).toBeGreaterThan(0);
  expect(requests).toBeLessThanOrEqual(THRESHOLD);
}

/** Makes something in the place of the lock, in its directory. */
function plantLock(state: Scene, plant: (path: string) => void): string {
  const path = lockOf(state);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  plant(path);
  return path;
}

function replaceDatabase(state: Scene, content: string): void {
  for (const part of ["-wal", "-shm"]) rmSync(databaseOf(state) + part, { force: true });
  writeFileSync(`${databaseOf(state)}.new`, content, { mode: 0o600 });
  renameSync(`${databaseOf(state)}.new`, databaseOf(state));
}

const GARBAGE = "no database at all\n".repeat(1_000);

test(
  "without any trouble nothing is said, and nothing is missing in the record",
  async () => {
    const state = await newState("sound");
    const run = await startProtected(state, "sound");
    expect(probersOf(state)).toEqual([run.run.pid]);
    expect(await expectStopped(run)).toBe("");
    expect(run.record()).toMatchObject({ degraded: [] });
    expect(await circuitOf(state)).toMatchObject({ state: "open" });
  },
  LIMIT_MS,
);

describe.concurrent("a lock", () => {
  const outside = scene.path("outside");

  test.each([
    [
      "that is a FIFO",
      "it is not a regular file",
      (path: string): void => void Bun.spawnSync(["mkfifo", path]),
    ],
    [
      "that is a directory",
      "illegal operation on a directory",
      (path: string): void => mkdirSync(path),
    ],
    [
      "that is a link",
      "too many symbolic links",
      (path: string) => {
        writeFileSync(outside, "untouched");
        symlinkSync(outside, path);
      },
    ],
  ] as const)(
    "%s is not opened through: the run probes on its own, and says so once",
    async (title, reason, plant) => {
      const state = await newState(title);
      const path = plantLock(state, plant);
      const run = await startProtected(state, title);
      const said = await expectStopped(run);
      expect(said).toMatch(/^[^\n]+\n$/);
      expect(said).toStartWith(`${UNSHARED}${path}: `);
      expect(said).toContain(reason);
      expect(run.record()).toMatchObject({ degraded: ["circuit-unshared"] });
      // The row is everybody's all the same.
      expect(await circuitOf(state)).toMatchObject({ state: "open", is_probed: null });
      if (existsSync(outside)) expect(readFileSync(outside, "utf8")).toBe("untouched");
    },
    LIMIT_MS,
  );

  test(
    "that is deleted while it is held is made anew, and one alone goes on probing",
    async () => {
      const state = await newState("deleted");
      const server = openServer();
      const job = new Announcing(scene, "deleted");
      const words = [...dependsOn(scene, server, [...PATIENT, ...LONG_BACKOFF]), ...job.command];
      const runs = startJobs(state, { prefix: "deleted", count: 4 }, words);
      await job.waitForAll(4);
      for (const path of [lockOf(state), `${state.stateDirectory}/circuits`]) {
        await waitForProber(state, runs);
        rmSync(path, { recursive: true });
        await waitForProber(state, runs);
      }
      const since = performance.now();
      await letPass(5 * PERIOD_MS);
      expect(server.countFrom(since)).toBeLessThanOrEqual(
        (performance.now() - since) / PERIOD_MS + 2,
      );
      expect(probersOf(state)).toHaveLength(1);
      const died = server.goDown();
      for (const { status, stderr } of await Promise.all(runs.map((run) => run.ended))) {
        expect([status, stderr]).toEqual([DOWN, DOWN_LINE]);
      }
      expectFew(server.countFrom(died));
    },
    LIMIT_MS,
  );
});

describe.concurrent("a journal", () => {
  test(
    "that somebody holds for five seconds delays no start, and nobody is stopped any later",
    async () => {
      const state = await newState("held");
      const before = await startProtected(state, "before");
      const holder = await holdDatabase(state);
      const heldAt = performance.now();
      expect(await expectStopped(before)).toBe("");
      before.server.goUp();
      const during = await startProtected(state, "during", before.server);
      expect(await expectStopped(during)).toBe("");
      await waitFor(() => performance.now() - heldAt > 5_000, "five seconds");
      await holder.release();
      expect(healthOf(state)).toEqual(HEALTHY);
    },
    LIMIT_MS,
  );

  test(
    "that is held while the circuit opens hears of it afterwards",
    async () => {
      const state = await newState("later");
      const server = openServer();
      const job = new Announcing(scene, "later");
      const more = [...PATIENT, ...LONG_BACKOFF, "--on-open", "pause"];
      const run = state.start([
        "--name",
        "later",
        ...dependsOn(scene, server, more),
        ...job.command,
      ]);
      await job.waitForAll(1);
      await waitFor(() => server.count >= 2, "a probe while the job runs");
      const holder = await holdDatabase(state);
      const died = server.goDown();
      await waitFor(() => server.countFrom(died) >= THRESHOLD, "its failures");
      await holder.release();
      await waitFor(async () => (await circuitOf(state)).state === "open", "an open circuit");
      // One that was given up on a busy machine may never have come to the server.
      const isCounted = async (): Promise<boolean> =>
        (await circuitOf(state)).probes >= server.count;
      await waitFor(isCounted, "all probes to be counted");
      run.kill("SIGTERM");
      expect((await run.ended).stderr).toContain("dep is down");
    },
    LIMIT_MS,
  );

  test.each([
    ["before it starts", true],
    ["while it runs", false],
  ] as const)(
    "that is broken %s is set aside, and the run shares a new one",
    async (title, isBefore) => {
      const state = await newState(title);
      if (isBefore) replaceDatabase(state, GARBAGE);
      const run = await startProtected(state, title);
      if (!isBefore) replaceDatabase(state, GARBAGE);
      await waitFor(() => listBroken(state).length === 1, "the broken one aside");
      const said = await expectStopped(run);
      const aside = /^watchdog: journal: journal\.db was broken \([^\n]+\); kept as [^\n]+\n/gm;
      expect(said.match(aside)).toHaveLength(1);
      expect(said.replace(aside, "")).toMatch(new RegExp(`^(${UNSHARED}[^\n]+\n)?$`));
      expect(await circuitOf(state)).toMatchObject({ state: "open", job: title });
      expect([healthOf(state), listBroken(state).length]).toEqual([HEALTHY, 1]);
    },
    LIMIT_MS,
  );

  async function expectAlone(state: Scene, name: string): Promise<void> {
    const run = await startProtected(state, name);
    const lines = (await expectStopped(run)).split("\n").filter((line) => line !== "");
    expect(lines.filter((line) => line.startsWith(UNSHARED))).toHaveLength(1);
    expect(new Set(lines).size).toBe(lines.length);
    expect(run.record()).toMatchObject({ degraded: ["circuit-unshared"] });
  }

  test(
    "that is a directory is nobody's: the run probes on its own, and says so once",
    async () => {
      const state = await newState("directory");
      for (const part of ["", "-wal", "-shm"]) rmSync(databaseOf(state) + part, { force: true });
      mkdirSync(databaseOf(state));
      await expectAlone(state, "directory");
    },
    LIMIT_MS,
  );

  rootTest("that belongs to somebody else is not written: the same", async () => {
    const state = await newState("strange");
    expect(Bun.spawnSync(["chown", String(NOBODY), databaseOf(state)]).exitCode).toBe(0);
    const before = readFileSync(databaseOf(state));
    await expectAlone(state, "strange");
    expect(readFileSync(databaseOf(state)).equals(before)).toBe(true);
  });
});
