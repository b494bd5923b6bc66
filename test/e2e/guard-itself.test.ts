/**
 * The guard as a process: what it holds and knows, that it leaves, that another takes its place,
 * and how a run goes on where there can be none. The release binary, from outside.
 */
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { startGuardedRun } from "../support/guarded-scene.ts";
import { killAlone, waitForGuard, waitUntilNoGuard } from "../support/killing.ts";
import { findProgram } from "../support/outside.ts";
import { readProcText } from "../support/proc-text.ts";
import { findByCommand, readStatusLine, waitForCommand } from "../support/processes.ts";
import { findGuards, openScene, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** A guard that died early gets a successor so often (README). */
const MOST_RESTARTS = 3;

/** Where each of its descriptors leads. */
function readDescriptors(pid: number): Record<string, string> {
  const names = readdirSync(`/proc/${pid}/fd`);
  return Object.fromEntries(names.map((fd) => [fd, readlinkSync(`/proc/${pid}/fd/${fd}`)]));
}

function readSession(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return Number(fields[3]);
}

describe("a guard that waits", () => {
  test("holds no descriptor, directory, session or variable of the caller", async () => {
    const held = scene.path("held");
    writeFileSync(held, "");
    const binary = scene.path("with-descriptors.sh");
    // Low and high ones, also those that the guard uses itself.
    const opened = `exec 3<${held} 4>>${held} 8<${held} 9<${held} 27<${held}`;
    writeFileSync(binary, `#!/bin/bash\n${opened}\nexec ${RELEASE} "$@"\n`, { mode: 0o755 });
    const run = await startGuardedRun(scene, {
      name: "holds",
      command: ["sleep", "97101"],
      options: { binary, env: { SECRET_OF_THE_CALLER: "x" }, stdout: "pipe", stderr: "pipe" },
    });
    const command = await run.waitForCommand("sleep 97101");
    // The twin: the command has them all.
    const theirs = readDescriptors(command);
    expect(["3", "4", "8", "9", "27"].map((fd) => theirs[fd])).toEqual(Array(5).fill(held));
    const isBegun = () => readlinkSync(`/proc/${run.guard}/cwd`) === "/";
    await waitFor(isBegun, "the guard's program to have begun");
    const ours = readDescriptors(run.guard);
    expect(ours).toEqual({
      0: expect.stringMatching(/^pipe:/),
      1: "/dev/null",
      2: "/dev/null",
      8: expect.stringMatching(/^\/memfd:watchdog-guard/),
      9: realpathSync(RELEASE),
    });
    expect(Object.values(theirs)).not.toContain(ours[0]);
    expect(readProcText(run.guard, "environ")).toBe("");
    expect(readProcText(command, "environ")).toContain("SECRET_OF_THE_CALLER");
    expect(readSession(run.guard)).toBe(run.guard);
    await run.killAndBury();
  });

  test("is small, and asleep", async () => {
    const run = await startGuardedRun(scene, { name: "small", command: ["sleep", "97102"] });
    await run.waitForCommand("sleep 97102");
    await waitFor(() => readStatusLine(run.guard, "State")?.startsWith("S"), "it to sleep");
    expect(parseInt(readStatusLine(run.guard, "VmRSS") ?? "", 10)).toBeLessThan(4_000);
    await run.killAndBury();
  });
});

describe("no guard is left and nothing is said", () => {
  for (const [what, args, status] of [
    ["a command that ended well", ["--", "true"], 0],
    ["one that failed", ["--", "sh", "-c", "exit 9"], 9],
    ["one that died of a signal", ["--", "sh", "-c", "kill -KILL $$"], 137],
    ["a limit", ["--timeout", "200ms", "--kill-after", "0", "--", "sleep", "97103"], 124],
    ["no lease", ["--no-lease", "--", "true"], 0],
  ] as const) {
    test(`after ${what}`, async () => {
      const ended = await scene.run(["--name", "left", ...args]);
      // At once: watchdog has collected it.
      expect(findGuards(scene.stateDirectory)).toEqual([]);
      expect(ended.status).toBe(status);
      expect(ended.stderr.replace(/^watchdog: ended by --timeout: [^\n]+\n$/, "")).toBe("");
    });
  }

  test("after a program that is not there", async () => {
    const ended = await scene.run(["--name", "missing", "--", "/no/such/program"]);
    expect(findGuards(scene.stateDirectory)).toEqual([]);
    expect(ended.status).toBe(127);
    expect(ended.stderr).toBe(
      "watchdog: error: /no/such/program: no such file or directory (ENOENT)\n",
    );
  });
});

describe("where a guard dies early", () => {
  test("another one stands by, and buries", async () => {
    const run = await startGuardedRun(scene, { name: "second", command: ["sleep", "97104"] });
    await run.waitForCommand("sleep 97104");
    process.kill(run.guard, "SIGKILL");
    await waitForGuard(run.run.pid, run.guard);
    await killAlone(run.run);
    await run.waitUntilGone();
    await waitUntilNoGuard(scene);
    expect(scene.readRecord("second")).toMatchObject({
      outcome: "abandoned",
      guard: true,
      degraded: [],
    });
  });

  test("no other one comes after the third, and that is told once and recorded", async () => {
    const run = await startGuardedRun(scene, { name: "often", command: ["sleep", "97105"] });
    const main = await run.waitForCommand("sleep 97105");
    let guard = run.guard;
    for (let restarts = 0; restarts < MOST_RESTARTS; restarts += 1) {
      process.kill(guard, "SIGKILL");
      guard = await waitForGuard(run.run.pid, guard);
    }
    process.kill(guard, "SIGKILL");
    await waitFor(() => findGuards(scene.stateDirectory).length === 0, "no guard");
    process.kill(main, "SIGTERM");
    const ended = await run.run.ended;
    expect(ended.status).toBe(143);
    expect(ended.stderr).toBe(
      "watchdog: no guard, so nobody ends the command if watchdog is killed: died-too-often\n",
    );
    expect(scene.readRecord("often")).toMatchObject({
      outcome: "signaled",
      guard: false,
      degraded: ["no-guard"],
    });
  });
});

describe("without /bin/sh", () => {
  /** In a mount namespace: the directory of the shell is an empty one. */
  function withoutShell(words: readonly string[]): string[] {
    const hide = `mount -t tmpfs none "$0" && exec "$@"`;
    return ["unshare", "-m", "sh", "-c", hide, realpathSync("/bin"), ...words];
  }

  function copySleep(): string {
    const sleep = scene.path("sleep-of-its-own");
    if (!existsSync(sleep)) copyFileSync(findProgram("sleep"), sleep);
    return sleep;
  }

  rootTest("a command runs, and one line and the record say that nobody guards it", async () => {
    const words = [RELEASE, "run", "--name", "bare", ...scene.recordTo("bare"), "--"];
    const ended = await scene.startProgram(withoutShell([...words, copySleep(), "0.01"])).ended;
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe(
      "watchdog: no guard, so nobody ends the command if watchdog is killed: no-shell\n",
    );
    expect(scene.readRecord("bare")).toMatchObject({
      outcome: "ok",
      guard: false,
      degraded: ["no-guard"],
    });
  });

  rootTest("the next run ends what a killed one has left", async () => {
    const sleeper = `${copySleep()} 97.106`;
    const words = [RELEASE, "run", "--name", "bare", "--", ...sleeper.split(" ")];
    const run = scene.startProgram(withoutShell(words), { stdout: "ignore", stderr: "ignore" });
    const [pid] = await waitForCommand(scene, sleeper);
    await killAlone(run);
    expect(findByCommand(scene, sleeper)).toEqual([Number(pid)]);
    const next = await scene.run(["--name", "bare", "--", "pgrep", "-fx", sleeper]);
    expect(next.status).toBe(1);
    expect(next.stderr).toContain(`ended 1 process of the run before: ${pid} ${sleeper}\n`);
    expect(findByCommand(scene, sleeper)).toEqual([]);
  });
});
