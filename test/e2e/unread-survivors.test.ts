/**
 * Processes of a dead run whose environment may not be read: another user's in a shared directory,
 * and those that hide it from their own. They are not taken for gone; and whoever is known to be of
 * somebody else keeps nobody from the key. Needs root, to be two users.
 */
import { describe, expect } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { isStillThere, killWithGuard, waitForGuard } from "../support/killing.ts";
import { identify } from "../support/guarded-scene.ts";
import { PYTHON } from "../support/outside.ts";
import { findByCommand, readStatusLine, waitForText } from "../support/processes.ts";
import { type Ended, openScene, rootTest, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

const LOCKED = 75;
const TAKEN: [number, string, string] = [0, "mine\n", expect.stringContaining("took over")];
/** No other test uses these numbers, and no database has them. */
const GROUP = 54_690;
const [ANN, BEN] = [54_691, 54_692];
const NO_PIPES = { stdout: "ignore", stderr: "ignore" } as const;

interface Scenery {
  readonly place: string;
  start(uid: number, words: readonly string[]): Started;
  run(uid: number, words: readonly string[]): Promise<Ended>;
  explain(uid: number): Promise<Record<string, ReturnType<typeof JSON.parse>>>;
  show(uid: number): Promise<Record<string, ReturnType<typeof JSON.parse>>>;
  enter(uid: number): Promise<[number, string, string]>;
  /** Any program of that user's, left to whoever adopts orphans. @returns its pid */
  leave(uid: number, words: readonly string[]): Promise<number>;
}

let count = 0;

async function openScenery(): Promise<Scenery> {
  count += 1;
  const place = scene.path(`scenery-${count}`);
  mkdirSync(place);
  chmodSync(place, 0o1777);
  const binary = await shareBinary(scene);
  const at = { cwd: "/", env: { WATCHDOG_STATE_DIR: `${place}/state`, HOME: "/nonexistent" } };
  const as = (uid: number) => (uid === 0 ? [] : asUser(uid, [GROUP]));
  const run = async (uid: number, words: readonly string[]) =>
    scene.startProgram([...as(uid), binary, ...words], at).ended;
  const ask = async (uid: number, word: string) => {
    const { stdout } = await run(uid, ["lease", word, "job:theirs", "--json"]);
    return JSON.parse(stdout.toString());
  };
  const made = await run(ANN, ["run", "--name", "a", "--state-group", `${GROUP}`, "--", "true"]);
  expect(made.status).toBe(0);
  return {
    place,
    run,
    start: (uid, words) =>
      scene.startProgram([...as(uid), binary, ...words], { ...at, ...NO_PIPES }),
    explain: (uid) => ask(uid, "explain"),
    show: (uid) => ask(uid, "show"),
    enter: async (uid) => {
      const ended = await run(uid, ["run", "--name", "theirs", "--", "echo", "mine"]);
      return [ended.status, ended.stdout.toString(), ended.stderr];
    },
    leave: async (uid, words) => {
      const script = '"$@" >/dev/null 2>&1 & echo $!';
      const { stdout } = await scene.startProgram(
        [...as(uid), "sh", "-c", script, "sh", ...words],
        {
          cwd: "/",
        },
      ).ended;
      return Number(stdout.toString());
    },
  };
}

/** A run of Ann's whose last beat was before the command `words` left it; then both are killed. */
async function leaveBehind(scenery: Scenery, words: readonly string[]) {
  const { place, start } = scenery;
  const [ready, gate, born] = ["ready", "gate", "born"].map((name) => `${place}/${name}`);
  const script =
    `echo $$ >'${ready}'; until [ -e '${gate}' ]; do sleep 0.05; done; ` +
    `setsid sh -c 'echo $$ >"$0".new; mv "$0".new "$0"; exec "$@"' '${born}' "$@" ` +
    `</dev/null >/dev/null 2>&1 & until [ -e '${born}' ]; do sleep 0.05; done; sleep 0.2`;
  const options = ["--name", "theirs", "--heartbeat-interval", "1h", "--stale-after", "2h"];
  const run = start(ANN, ["run", ...options, "--", "sh", "-c", script, "sh", ...words]);
  const main = Number(await waitForText(ready ?? ""));
  await waitForGuard(run.pid);
  // Before that anybody of this session may be its command.
  const isWritten = async () => (await scenery.show(ANN))["run_state"] === "running";
  await waitFor(isWritten, "a beat that names the command");
  run.kill("SIGSTOP");
  writeFileSync(gate ?? "", "");
  const pid = Number(await waitForText(born ?? ""));
  await killWithGuard(run);
  // It would prove what is below it, and its group whoever is in it.
  await waitFor(() => readStatusLine(main, "State") === undefined, "the end of the command");
  return identify(pid);
}

describe("a process of the dead run that may not be read", () => {
  rootTest("keeps another user of the directory out, who is told of it", async () => {
    const scenery = await openScenery();
    const left = await leaveBehind(scenery, ["sleep", "94001"]);
    await waitFor(async () => (await scenery.explain(BEN))["survivors"].length === 0, "the rest");
    const told = await scenery.explain(BEN);
    expect([told["verdict"], told["because"], told["suspects"]]).toEqual([
      "orphaned",
      "suspects",
      [expect.objectContaining({ pid: left.pid, command: "sleep 94001", is_signalable: false })],
    ]);
    const [status, stdout, stderr] = await scenery.enter(BEN);
    expect([status, stdout]).toEqual([LOCKED, ""]);
    expect(stderr).toContain(`${left.pid} sleep 94001`);
    expect(isStillThere(left)).toBe(true);
    // Whoever may read it has the proof, and takes the key over.
    expect(await scenery.enter(ANN)).toEqual(TAKEN);
    expect(isStillThere(left)).toBe(false);
  });

  rootTest("is waited for, and the key is had when it has ended", async () => {
    const scenery = await openScenery();
    const left = await leaveBehind(scenery, ["sleep", "94002"]);
    expect((await scenery.enter(BEN))[0]).toBe(LOCKED);
    process.kill(left.pid, "SIGKILL");
    await waitFor(() => !isStillThere(left), "its end");
    expect(await scenery.enter(BEN)).toEqual(TAKEN);
  });

  const HIDES = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); time.sleep(94003)";
  const ways: [string, (place: string) => string[]][] = [
    ["of a program that may only be executed", (place) => [`${place}/xsleep`, "94003"]],
    ["that is not dumpable", () => [PYTHON, "-c", HIDES]],
  ];
  for (const [name, wordsAt] of ways) {
    rootTest(`keeps its own user out, too: one ${name}`, async () => {
      const scenery = await openScenery();
      const program = `${scenery.place}/xsleep`;
      const copy = `cp "$(command -v sleep)" '${program}'; chmod 711 '${program}'`;
      expect((await scene.startProgram(["sh", "-c", copy]).ended).status).toBe(0);
      const left = await leaveBehind(scenery, wordsAt(scenery.place));
      const [status, stdout, stderr] = await scenery.enter(ANN);
      expect([status, stdout]).toEqual([LOCKED, ""]);
      expect(stderr).toContain(`${left.pid} `);
      expect(isStillThere(left)).toBe(true);
      process.kill(left.pid, "SIGKILL");
      await waitFor(() => !isStillThere(left), "its end");
      expect(await scenery.enter(ANN)).toEqual(TAKEN);
    });
  }
});

describe("nobody is kept out by", () => {
  rootTest("other users' daemons, older ones, and what has a living parent of before", async () => {
    const scenery = await openScenery();
    const pids: number[] = [];
    pids.push(await scenery.leave(ANN, ["sleep", "94010"]));
    // What was born in the very tick in which the owner was may be of it.
    await scenery.run(ANN, ["run", "--name", "a", "--", "true"]);
    const script = `until [ -e '${scenery.place}/go' ]; do sleep 0.05; done; sleep 94011; :`;
    const words = [...asUser(ANN, [GROUP]), "sh", "-c", script];
    const parent = scene.startProgram(words, { cwd: "/", ...NO_PIPES });
    const left = await leaveBehind(scenery, ["sleep", "94012"]);
    process.kill(left.pid, "SIGKILL");
    await waitFor(() => !isStillThere(left), "its end");
    writeFileSync(`${scenery.place}/go`, "");
    pids.push(await scenery.leave(0, ["sleep", "94013"]));
    pids.push(await scenery.leave(BEN, ["sleep", "94014"]));
    const [status, stdout, stderr] = await scenery.enter(BEN);
    expect(stderr).toContain("took over");
    expect([status, stdout]).toEqual([0, "mine\n"]);
    pids.push(...findByCommand(scene, "sleep 94011"));
    parent.kill("SIGKILL");
    for (const pid of pids) process.kill(pid, "SIGKILL");
  });

  rootTest(
    "one of the same user that was there at the last beat and is not of the run",
    async () => {
      const scenery = await openScenery();
      const pids: number[] = [];
      const name = ["--name", "theirs", "--heartbeat-interval", "1s", "--", "sleep", "94020"];
      const run = scenery.start(ANN, ["run", ...name]);
      await waitForGuard(run.pid);
      pids.push(await scenery.leave(ANN, ["sleep", "94021"]));
      const beats = async () => (await scenery.show(ANN))["heartbeat_seq"];
      const before = await beats();
      // Whoever is older than a second at a beat is in its list, or is not of the run.
      await waitFor(async () => (await beats()) >= before + 3, "three beats");
      await killWithGuard(run);
      const told = await scenery.explain(BEN);
      expect([told["survivors"].length, told["suspects"]]).toEqual([1, []]);
      for (const { pid } of told["survivors"]) process.kill(pid, "SIGKILL");
      await waitFor(async () => (await scenery.explain(BEN))["verdict"] === "dead", "the end");
      expect(await scenery.enter(BEN)).toEqual(TAKEN);
      for (const pid of pids) process.kill(pid, "SIGKILL");
    },
  );
});
