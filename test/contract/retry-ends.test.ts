/** What ends attempts from outside: signals in an attempt and in a wait, keys, and the limit. */
import { describe, expect, test } from "bun:test";
import { closeSync, openSync, readFileSync } from "node:fs";
import { LONG_WAIT, makeCounted, retryWords, startRetry } from "../support/retrying.ts";
import {
  findAnywhere,
  findByCommand,
  readLines,
  readStatusLine,
  waitForCommand,
} from "../support/processes.ts";
import { killQuietly, openScene, ROUNDS } from "../support/scene.ts";
import { KEY, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;
const [TERM, HUP] = ["SIGTERM", "SIGHUP"] as const;

/** A retry that waits for its second attempt. */
async function startWaiting(name: string) {
  const said = scene.path(`${name}.err`);
  const stderr = openSync(said, "w");
  const { command, attempts } = makeCounted(scene, "exit 1");
  const resultFile = scene.path(`${name}.json`);
  const plan = { command, options: { isVerbose: true, resultFile }, backoff: LONG_WAIT };
  const retry = startRetry(scene, plan, { stderr });
  closeSync(stderr);
  await waitFor(() => readFileSync(said, "utf8").includes("waiting"), "a wait");
  return { retry, attempts, readRecord: () => JSON.parse(readFileSync(resultFile, "utf8")) };
}

describe("in an attempt", () => {
  test.each([TERM, HUP])("%s is passed on, and no other attempt follows", async (signal) => {
    const script = "trap 'exit 5' HUP TERM; sleep 94171 >&- 2>&- & wait";
    const { command, attempts } = makeCounted(scene, script);
    const resultFile = scene.path("asked.json");
    const retry = startRetry(scene, { command, options: { resultFile } });
    const [sleeper = 0] = await waitForCommand(scene, "sleep 94171");
    retry.kill(signal);
    const { status, stderr } = await retry.ended;
    killQuietly(sleeper);
    expect([status, attempts(), stderr]).toEqual([5, ["1"], ""]);
    const { outcome, because, attempts: told } = JSON.parse(readFileSync(resultFile, "utf8"));
    expect([outcome, because]).toEqual(["stopped", signal === TERM ? "terminated" : "hung-up"]);
    expect(told).toMatchObject([{ because: "asked-to-end", status: 5 }]);
  });

  test("a command that dies of it takes us with it, by the same signal", async () => {
    const { command, attempts } = makeCounted(scene, "exec sleep 94172");
    const retry = startRetry(scene, { command });
    await waitForCommand(scene, "sleep 94172");
    retry.kill(TERM);
    const { signal } = await retry.ended;
    expect([signal, attempts()]).toEqual([TERM, ["1"]]);
  });

  test("one that the command survives is no request to end", async () => {
    const notes = scene.path("survived.notes");
    const waits = `echo $N >>'${notes}'; while :; do sleep 0.02; done`;
    const script = `trap 'exit $((2 - N))' USR1; ${waits}`;
    const { command, attempts } = makeCounted(scene, script);
    const retry = startRetry(scene, { command });
    for (const count of [1, 2]) {
      await waitFor(() => readLines(notes).length === count, `attempt ${count} with its trap`);
      retry.kill("SIGUSR1");
    }
    expect([(await retry.ended).status, attempts()]).toEqual([0, ["1", "2"]]);
  });

  test(
    "a signal to the whole group never lets another attempt begin",
    async () => {
      for (let round = 0; round < Math.min(ROUNDS, 10); round += 1) {
        const { command, attempts } = makeCounted(scene, "exec sleep 94173");
        const plan = { command, backoff: { initialMs: 1, capMs: 1 } };
        // setsid(1) does not fork here: what Bun has started never leads its group.
        const retry = scene.startProgram(["setsid", ...retryWords(plan)]);
        await waitForCommand(scene, "sleep 94173");
        process.kill(-retry.pid, TERM);
        const { signal } = await retry.ended;
        expect([signal, attempts()]).toEqual([TERM, ["1"]]);
      }
    },
    LIMIT_MS,
  );

  test("the interrupt key ends it all", async () => {
    const { command, attempts } = makeCounted(scene, "echo begun; exec sleep 94174");
    const terminal = openTerminal(scene, retryWords({ command }));
    await terminal.see(/begun/);
    await waitForCommand(scene, "sleep 94174");
    terminal.type(KEY.interrupt);
    expect([await terminal.ended, attempts()]).toEqual([130, ["1"]]);
  });
});

describe("in a wait", () => {
  test.each([TERM, HUP, "SIGUSR1"] as const)("it dies of %s at once", async (name) => {
    const { retry, attempts, readRecord } = await startWaiting(`wait-${name}`);
    retry.kill(name);
    const { signal } = await retry.ended;
    expect([signal, attempts()]).toEqual([name, ["1"]]);
    const { state, outcome, status_of } = readRecord();
    expect([state, outcome, status_of]).toEqual(["ended", "stopped", "watchdog"]);
  });

  test("WINCH and CONT do not wake it", async () => {
    const { retry, attempts } = await startWaiting("harmless");
    retry.kill("SIGWINCH");
    retry.kill("SIGCONT");
    const handled = () => (readStatusLine(retry.pid, "SigPnd") ?? "") === "0000000000000000";
    await waitFor(handled, "both signals taken");
    retry.kill(TERM);
    expect([(await retry.ended).signal, attempts()]).toEqual([TERM, ["1"]]);
  });
});

describe("at its limit", () => {
  test("an attempt and all that it has started are ended, and the next one begins", async () => {
    const orphan = "(setsid sleep 94175 >&- 2>&- &)";
    const { command, attempts } = makeCounted(scene, `${orphan}; setsid sleep 94176 & sleep 94177`);
    const options = { attemptTimeoutMs: 700 };
    const { status, stderr } = await startRetry(scene, {
      command,
      options,
      backoff: { maxAttempts: 2 },
    }).ended;
    expect([status, attempts()]).toEqual([124, ["1", "2"]]);
    expect(stderr).toContain("the last one was ended by --attempt-timeout\n");
    const left = ["sleep 94175", "sleep 94176", "sleep 94177"].flatMap(findAnywhere);
    expect(left).toEqual([]);
  });

  test(
    "a tree that ignores TERM is killed ten seconds later",
    async () => {
      const { command } = makeCounted(
        scene,
        "trap '' TERM; setsid sleep 94178 & sleep 94179; wait",
      );
      const options = { attemptTimeoutMs: 2_000 };
      const began = performance.now();
      const { status } = await startRetry(scene, {
        command,
        options,
        backoff: { maxAttempts: 1 },
      }).ended;
      expect(status).toBe(124);
      const spentMs = performance.now() - began;
      expect(spentMs).toBeGreaterThan(11_900);
      expect(spentMs).toBeLessThan(40_000);
      expect(["sleep 94178", "sleep 94179"].flatMap(findAnywhere)).toEqual([]);
    },
    LIMIT_MS,
  );

  test("what an earlier attempt has left is none of the attempt's", async () => {
    const script = "test $N = 1 && { sleep 94180 >&- 2>&- & exit 1; }; sleep 94181";
    const { command, attempts } = makeCounted(scene, script);
    const options = { attemptTimeoutMs: 500 };
    const plan = { command, options, backoff: { maxAttempts: 2 } };
    expect((await startRetry(scene, plan).ended).status).toBe(124);
    expect(attempts()).toEqual(["1", "2"]);
    const left = findByCommand(scene, "sleep 94180");
    for (const pid of left) killQuietly(pid);
    expect([left.length, findAnywhere("sleep 94181")]).toEqual([1, []]);
  });

  test("--no-retry-on 124 means that it is not tried again", async () => {
    const { command, attempts } = makeCounted(scene, "sleep 94182");
    const options = { attemptTimeoutMs: 200, noRetryOn: [124] };
    const { status } = await startRetry(scene, { command, options }).ended;
    expect([status, attempts()]).toEqual([124, ["1"]]);
  });
});
