/**
 * `--wait`: first come, first served; nothing is held meanwhile; a deadline is kept; and nobody
 * waits for himself. That somebody waits is read from the kernel, not from watchdog.
 */
import { afterEach, expect, test } from "bun:test";
import {
  countWaiting,
  filesOf,
  letHoldersGo,
  lockOf,
  startHolder,
  waitForWaiting,
} from "../support/lease-holder.ts";
import { findOverlaps, findStandstills, livingIn, readLives } from "../support/life-log.ts";
import { runShell } from "../support/outside.ts";
import { readLines } from "../support/processes.ts";
import { limitOf } from "../support/rounds.ts";
import { type Ended, openScene, RELEASE, ROUNDS, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
afterEach(letHoldersGo);
const LOCKED = 75;
const WAITERS = 20;
/** Two loops for each order of two keys. */
const TURNS = Math.ceil(ROUNDS / 2);

/** Status, stdout, stderr. */
function shown({ status, stdout, stderr }: Ended): [number, string, string] {
  return [status, stdout.toString(), stderr];
}

async function timed(started: Promise<Ended>): Promise<{ ended: Ended; tookMs: number }> {
  const beganAt = performance.now();
  const ended = await started;
  return { ended, tookMs: performance.now() - beganAt };
}

test(
  "twenty that wait run in the order in which they came, one at a time",
  async () => {
    const lock = lockOf(scene, "job:queue");
    for (let round = 0; round < Math.ceil(ROUNDS / 20); round += 1) {
      const holder = await startHolder(scene, ["--name", "queue"]);
      const waiting: Started[] = [];
      for (let number = 1; number <= WAITERS; number += 1) {
        const command = livingIn(holder.log, { name: `waiter-${number}` });
        waiting.push(scene.start(["--name", "queue", "--wait", "2m", "--", ...command]));
        await waitForWaiting(lock, number);
      }
      expect(readLives(holder.log)).toHaveLength(1);
      expect((await holder.finish()).status).toBe(0);
      const ends = await Promise.all(waiting.map(({ ended }) => ended));
      expect(ends.map(shown)).toEqual(ends.map(() => [0, "", ""]));
      const lives = readLives(holder.log);
      const order = Array.from({ length: WAITERS }, (_, index) => `waiter-${index + 1}`);
      expect(lives.map(({ name }) => name)).toEqual([String(holder.pid), ...order]);
      expect([findOverlaps(lives), findStandstills(lives)]).toEqual([[], []]);
    }
    expect(countWaiting(lock)).toBe(0);
  },
  limitOf(ROUNDS, 250),
);

test(
  `two keys in opposite order, ${ROUNDS} times each: nobody waits for ever`,
  async () => {
    const log = scene.path("opposite.lives");
    const script = `
      w() {
        i=0
        while [ $i -lt ${TURNS} ]; do
          "$W" run --name "$1" --wait 2m --lock "$2" --lock "$3" -- ${livingIn(log).join(" ")}
          echo $? >>statuses
          i=$((i+1))
        done
      }
      w ab1 alpha:x beta:y & w ba1 beta:y alpha:x & w ab2 alpha:x beta:y & w ba2 beta:y alpha:x &
      wait`;
    const ended = await runShell(scene, script, { cwd: scene.directory });
    expect(shown(ended)).toEqual([0, "", ""]);
    expect(readLines(scene.path("statuses"))).toEqual(Array(4 * TURNS).fill("0"));
    const lives = readLives(log);
    expect(lives).toHaveLength(4 * TURNS);
    expect(findOverlaps(lives)).toEqual([]);
    expect([findStandstills(lives, 0), findStandstills(lives, 1)]).toEqual([[], []]);
  },
  limitOf(ROUNDS, 300),
);

test("a wait ends at its deadline with 75, and the command is not started", async () => {
  const holder = await startHolder(scene, ["--name", "deadline"]);
  const args = ["--name", "deadline", "--wait", "700ms", ...scene.recordTo("deadline")];
  const { ended, tookMs } = await timed(scene.run([...args, "--", "echo", "STARTED"]));
  expect(shown(ended)).toEqual([LOCKED, "", ""]);
  expect(tookMs).toBeGreaterThanOrEqual(700);
  expect(tookMs).toBeLessThan(30_000);
  const record = scene.readRecord("deadline");
  expect(record).toMatchObject({ outcome: "locked", exit_status: LOCKED, child_pid: null });
  expect(record["duration_ms"]).toBeGreaterThanOrEqual(700);
  expect(countWaiting(lockOf(scene, "job:deadline"))).toBe(0);
  expect((await holder.finish()).status).toBe(0);
  const free = await timed(scene.run(["--name", "deadline", "--wait", "1m", "--", "echo", "had"]));
  expect(shown(free.ended)).toEqual([0, "had\n", ""]);
  expect(free.tookMs).toBeLessThan(30_000);
});

test("who does not wait is refused although somebody else does, and passes nobody", async () => {
  const holder = await startHolder(scene, ["--name", "passing"]);
  const words = ["--name", "passing", "--wait", "2m", "--", "echo", "served"];
  const waiting = scene.start(words);
  await waitForWaiting(lockOf(scene, "job:passing"));
  const refused = await scene.run(["--name", "passing", "--", "echo", "PASSED"]);
  expect(shown(refused)).toEqual([LOCKED, "", ""]);
  await holder.finish();
  expect(shown(await waiting.ended)).toEqual([0, "served\n", ""]);
});

test("who waits for a holder that is killed runs at once, after its command", async () => {
  const holder = await startHolder(scene, ["--name", "killed"]);
  const log = scene.path("killed.lives");
  const args = ["--name", "killed", "--wait", "2m"];
  const waiting = scene.start([...args, "--", ...livingIn(log)]);
  await waitForWaiting(lockOf(scene, "job:killed"));
  holder.started.kill("SIGKILL");
  await holder.started.ended;
  expect((await waiting.ended).status).toBe(0);
  expect(scene.findProcesses()).not.toContain(holder.pid);
  expect(readLives(log)).toMatchObject([{ generations: [2] }]);
});

test("who is ended while it waits leaves the queue, and the next one is served", async () => {
  const holder = await startHolder(scene, ["--name", "leaves"]);
  const lock = lockOf(scene, "job:leaves");
  const start = (word: string): Started =>
    scene.start(["--name", "leaves", "--wait", "2m", "--", "echo", word]);
  const [first, second] = [
    start("first"),
    await waitForWaiting(lock, 1).then(() => start("second")),
  ];
  await waitForWaiting(lock, 2);
  first.kill("SIGTERM");
  const ended = await first.ended;
  expect([ended.status, ended.stdout.toString()]).toEqual([143, ""]);
  await waitForWaiting(lock, 1);
  await holder.finish();
  expect(shown(await second.ended)).toEqual([0, "second\n", ""]);
});

const AROUND =
  /^watchdog: not started: job:a96\S* is held by a run around this one: .*; it would wait.+\n$/;

test.each([
  ["with --wait 10m", "a96 waits", ["--wait", "10m"]],
  ["without --wait", "a96", []],
])(
  "A-96: the same name within itself is refused at once %s, and says why",
  async (_, title, wait) => {
    const name = title.replace(" ", "-");
    const inner = [RELEASE, "run", "--name", name, ...wait, "--", "echo", "inner"];
    const { ended, tookMs } = await timed(scene.run(["--name", name, "--", ...inner]));
    expect([ended.status, ended.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(ended.stderr).toMatch(AROUND);
    expect(tookMs).toBeLessThan(20_000);
  },
);

test("A-96: two levels down, for a key that is no name, nobody waits for himself", async () => {
  const innermost = [RELEASE, "run", "--name", "a96-inner", "--wait", "10m", "--lock", "lane:a96"];
  const middle = [
    RELEASE,
    "run",
    "--name",
    "a96-middle",
    "--",
    ...innermost,
    "--",
    "echo",
    "inner",
  ];
  const outer = ["--name", "a96-outer", "--lane", "a96", "--", ...middle];
  const { ended, tookMs } = await timed(scene.run(outer));
  expect([ended.status, ended.stdout.toString()]).toEqual([LOCKED, ""]);
  expect(ended.stderr).toStartWith("watchdog: not started: lane:a96 is held by a run around");
  expect(tookMs).toBeLessThan(20_000);
});

test("a run that does not know of the run around it waits for it", async () => {
  const unknowing = ["env", "-u", "WATCHDOG_RUN_PATH", "-u", "WATCHDOG_RUN_ID"];
  const inner = [...unknowing, RELEASE, "run", "--name", "unknowing", "--wait", "1s", "--", "true"];
  const { ended, tookMs } = await timed(scene.run(["--name", "unknowing", "--", ...inner]));
  expect(shown(ended)).toEqual([LOCKED, "", ""]);
  expect(tookMs).toBeGreaterThanOrEqual(1_000);
});

test.each([
  ["first", "one:x", "two:x"],
  ["last", "two:x", "one:x"],
])(
  "who waits for the %s of its keys holds none of the others, nor its own name",
  async (place, busy, free) => {
    const name = `patient-${place}`;
    const holder = await startHolder(scene, ["--name", `busy-${place}`, "--lock", busy]);
    const args = ["--name", name, "--wait", "2m", "--lock", "one:x", "--lock", "two:x"];
    const waiting = scene.start([...args, "--", "echo", "had both"]);
    await waitForWaiting(lockOf(scene, busy));
    const others = [
      await scene.run(["--name", "other", "--lock", free, "--", "echo", "free"]),
      await scene.run(["--name", name, "--", "echo", "free"]),
    ];
    expect(others.map(shown)).toEqual([
      [0, "free\n", ""],
      [0, "free\n", ""],
    ]);
    expect(countWaiting(lockOf(scene, busy))).toBe(1);
    await holder.finish();
    expect(shown(await waiting.ended)).toEqual([0, "had both\n", ""]);
  },
);

test("who waits for one key and then finds the next one taken waits for that one", async () => {
  const [one, two] = [
    await startHolder(scene, ["--name", "first-of-two", "--lock", "three:x"]),
    await startHolder(scene, ["--name", "second-of-two", "--lock", "four:x"]),
  ];
  const args = ["--name", "both-of-two", "--wait", "2m", "--lock", "three:x", "--lock", "four:x"];
  const waiting = scene.start([...args, "--", "echo", "had both"]);
  const waitingFor = (): number[] =>
    ["four:x", "three:x"].map((key) => countWaiting(lockOf(scene, key)));
  // Taken in one fixed order: "four" is asked for first.
  await waitFor(() => String(waitingFor()) === "1,0", "it to wait for four:x");
  await two.finish();
  await waitFor(() => String(waitingFor()) === "0,1", "it to wait for three:x");
  const meanwhile = await scene.run([
    "--name",
    "meanwhile",
    "--lock",
    "four:x",
    "--",
    "echo",
    "free",
  ]);
  expect(shown(meanwhile)).toEqual([0, "free\n", ""]);
  await one.finish();
  expect(shown(await waiting.ended)).toEqual([0, "had both\n", ""]);
});

test("all keys or none: a refusal leaves nothing but empty files", async () => {
  const holder = await startHolder(scene, ["--name", "half", "--lock", "all:b"]);
  const args = ["--name", "none", "--lock", "all:a", "--lock", "all:b", "--lock", "all:c"];
  const refused = await scene.run([...args, "--", "echo", "STARTED"]);
  expect(shown(refused)).toEqual([LOCKED, "", ""]);
  for (const key of ["all:a", "all:c", "job:none"]) {
    const files = Object.entries(filesOf(scene, key));
    expect([key, files.filter(([name, size]) => size > 0 || !/^(lock|fence)$/.test(name))]).toEqual(
      [key, []],
    );
  }
  await holder.finish();
  const script = 'echo "$WATCHDOG_LEASE = $WATCHDOG_GENERATION"';
  const had = await scene.run([...args, "--", "sh", "-c", script]);
  // all:b has been held once; of the others no number was taken by the refusal.
  expect(shown(had)).toEqual([0, "all%3Aa all%3Ab all%3Ac job%3Anone = 1 2 1 1\n", ""]);
});
