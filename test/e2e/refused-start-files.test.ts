/**
 * Starts that are refused because of what stands in the place of a lease's files, or because of
 * what cannot be seen or signalled from here: nothing is followed, mended or ended.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { guardOf, killWithGuard } from "../support/killing.ts";
import { placeOf, readLease, waitForBeat } from "../support/lease-seen.ts";
import { findProgram } from "../support/outside.ts";
import { inState } from "../support/own-state.ts";
import { readLines, waitForText } from "../support/processes.ts";
import {
  commandOf,
  CONFIG_ERROR,
  endAfterwards,
  endHolding,
  expectRefused,
  hold,
  isThere,
  leaveOrphaned,
  NO_PIPES,
  QUIET,
  RARE,
  rememberToEnd,
} from "../support/refusals.ts";
import {
  type Ended,
  FIXTURES,
  isRoot,
  openScene,
  RELEASE,
  rootTest,
  ROUNDS,
  type Scene,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

endAfterwards();
const scene = openScene(import.meta.file);
const SECRET = "a secret of somebody else's\n";
const NOBODY = "54403";
const FENCED_LIMIT_MS = 60_000;
/** A fence is waited for 30 s. */
const FENCED_ROUNDS = 100;

/** A state directory in which the key was held once, and is free. */
async function used(name: string): Promise<Scene> {
  const state = inState(scene, name);
  expect((await state.run(["--name", "key", "--", "true"])).status).toBe(0);
  return state;
}

function fenceTest(title: string, body: () => Promise<void>, limitMs: number): void {
  if (ROUNDS >= FENCED_ROUNDS) return void test(title, body, limitMs);
  console.error(`needs ROUNDS=${FENCED_ROUNDS}, not run here: ${title}`);
}

describe("78, and nothing is followed or mended,", () => {
  const error = { status: CONFIG_ERROR, because: undefined, stderr: /^watchdog: error: [^\n]+\n/ };

  for (const name of ["lock", "fence"]) {
    test(`where the ${name} is a link`, async () => {
      const state = await used(`linked ${name}`);
      const target = scene.path(`${name}.target`);
      writeFileSync(target, SECRET);
      const path = `${placeOf(state.stateDirectory, "key").directory}/${name}`;
      rmSync(path);
      symlinkSync(target, path);
      const { mtimeMs, ctimeMs, mode } = lstatSync(target);
      await expectRefused(state, { ...error, stderr: new RegExp(`/${name}[^\\n]*symbolic link`) });
      await expectRefused(state, { ...error, args: ["--wait", "300ms"] });
      expect(lstatSync(target)).toMatchObject({ mtimeMs, ctimeMs, mode, size: SECRET.length });
    });

    test(`where the ${name} is a fifo, at once`, async () => {
      const state = await used(`fifo ${name}`);
      const path = `${placeOf(state.stateDirectory, "key").directory}/${name}`;
      rmSync(path);
      await scene.startProgram(["mkfifo", path]).ended;
      await expectRefused(state, error);
    });
  }

  for (const [what, pick] of [
    ["the directory of the key", (directory: string) => directory],
    ["the directory of its kind", (directory: string) => dirname(directory)],
    ["the directory of all leases", (directory: string) => dirname(dirname(directory))],
  ] as const) {
    test(`where ${what} is a link, also to a good one`, async () => {
      const state = await used(what);
      const path = pick(placeOf(state.stateDirectory, "key").directory);
      renameSync(path, `${path} moved`);
      symlinkSync(`${path} moved`, path);
      await expectRefused(state, error);
    });
  }

  test("where the numbers of removed keys are torn: empty lock and fence are new", async () => {
    const state = inState(scene, "floors");
    expect((await state.run(["--name", "other", "--", "true"])).status).toBe(0);
    writeFileSync(`${state.stateDirectory}/leases/job/floors`, "torn");
    const key = "leases/job/key";
    await expectRefused(state, { ...error, added: [key, `${key}/fence`, `${key}/lock`] });
    await expectRefused(state, error);
  });

  test("where the state directory is of a newer format", async () => {
    const state = await used("format");
    const path = `${state.stateDirectory}/FORMAT`;
    const format = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...format, format: 99 }));
    await expectRefused(state, error);
  });

  test("negative twin: with the same files in their places the key is had", async () => {
    const state = await used("sound");
    const next = await state.run(["--name", "key", "--", "true"]);
    expect([next.status, next.stderr]).toEqual([0, ""]);
  });
});

describe("a start is refused, and ends nobody,", () => {
  fenceTest(
    "while an operation under the fence goes on; when it is over the key is had",
    async () => {
      const state = await used("fenced");
      const { fence } = placeOf(state.stateDirectory, "key");
      const ready = scene.path("fenced.ready");
      const script = `echo ready >'${ready}'; exec sleep 320`;
      const flock = [findProgram("flock"), "-s", "--no-fork", fence, "sh", "-c", script];
      const holder = state.startProgram(flock);
      rememberToEnd(holder.pid);
      await waitForText(ready);
      await expectRefused(state, { because: "fenced-operation", pids: [holder.pid] });
      holder.kill("SIGKILL");
      await holder.ended;
      expect((await state.run(["--name", "key", "--", "true"])).status).toBe(0);
    },
    FENCED_LIMIT_MS,
  );

  rootTest("from a pid namespace that sees neither owner nor members", async () => {
    const holding = await hold(scene, "unseen");
    const { state, command, heard, pids } = holding;
    const unshare = [findProgram("unshare"), "--pid", "--fork", "--mount-proc", RELEASE, "run"];
    const start = (words: readonly string[]): Promise<Ended> =>
      state.startProgram([...unshare, ...words]).ended;
    await expectRefused(state, { because: "beat-fresh", pids, heard, start, stderr: QUIET });
    await killWithGuard(holding.run);
    const orphaned = { because: "other-namespace", pids: [command], heard, start };
    await expectRefused(state, { ...orphaned, added: ["leases/job/key/seen.json"] });
    await expectRefused(state, orphaned);
    await endHolding(holding);
  });

  const compiler = Bun.which("cc");
  if (compiler === null) console.error("needs a C compiler, not run here: members of other rights");
  const shared = scene.path("shared");

  /** A directory where an ordinary user finds the binary, the set-uid helper, and room to write. */
  function share(): void {
    mkdirSync(shared);
    chmodSync(scene.directory, 0o755);
    const helper = `${shared}/becomes-root`;
    const words = [compiler ?? "cc", "-O2", "-o", helper, `${FIXTURES}/becomes-root.c`];
    expect(Bun.spawnSync(words).success).toBe(true);
    chmodSync(helper, 0o4755);
    copyFileSync(RELEASE, `${shared}/watchdog`);
    chmodSync(shared, 0o777);
  }

  const asNobody = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--"];

  if (compiler !== null && isRoot) {
    test("while a member is left that it may not signal", async () => {
      share();
      const state = inState(scene, "shared/state");
      const run = [...asNobody, `${shared}/watchdog`, "run"];
      const pidFile = `${shared}/pid`;
      const words = ["--name", "key", ...RARE, "--", `${shared}/becomes-root`, "60", pidFile];
      const first = state.startProgram([...run, ...words], { cwd: shared, ...NO_PIPES });
      const member = Number(await waitForText(pidFile));
      rememberToEnd(first.pid, member);
      await waitForBeat(placeOf(state.stateDirectory, "key"), 3);
      await waitFor(() => commandOf(state), "the run in the journal");
      await killWithGuard(first);
      const start = (all: readonly string[]): Promise<Ended> =>
        state.startProgram([...run, ...all], { cwd: shared }).ended;
      await expectRefused(state, { because: "unsignalable", pids: [member], start });
      await expectRefused(state, {
        because: "unsignalable",
        pids: [member],
        start: (all) => start(["--wait", "300ms", ...all]),
      });
      process.kill(member, "SIGKILL");
    });
  }
});

test("negative twin: proven members that may be signalled are ended, the key is had", async () => {
  const holding = await leaveOrphaned(scene, "proven");
  expect(guardOf(holding.run.pid)).toBeUndefined();
  const next = await holding.state.run(["--name", "key", "--", "true"]);
  expect([next.status, isThere(holding.command)]).toEqual([0, false]);
  expect(readLease(holding.place)).toMatchObject({ generation: 2, state: "released" });
  expect(readLines(scene.path("proven.heard"))).toEqual(["main ready"]);
});
