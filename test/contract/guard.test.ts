/**
 * The guard of a run: what it holds, when it leaves, and when it buries. Real processes; the run is
 * killed with SIGKILL. What a burial does is in bury.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { readStat } from "../../src/os/proc.ts";
import { MOST_RESTARTS } from "../../src/run/guard.ts";
import {
  buriedPath,
  type Guarded,
  isThere,
  readResult,
  startGuarded,
  tellingProgram,
  waitUntilGone,
} from "../support/guarded-run.ts";
import { readProcText } from "../support/proc-text.ts";
import { waitForText } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

async function sayBye(run: Guarded): Promise<void> {
  run.send("bye");
  expect(await run.exited).toBe(0);
  process.kill(run.child, "SIGKILL");
}

describe("while watchdog lives, the guard", () => {
  test("holds nothing of the caller's and knows nothing of the run's cookie", async () => {
    const run = await startGuarded(scene, {
      program: tellingProgram(scene),
      env: { WATCHDOG_RUN_PATH: Bun.randomUUIDv7(), SECRET: "x", LD_LIBRARY_PATH: "/nowhere" },
      // Descriptors 3 and 20 are the caller's.
      wrapper: ["bash", "-c", 'exec 3</dev/null 20</dev/null; exec "$@"', "bash"],
    });
    const at = `/proc/${run.guard.pid}`;
    await waitFor(() => readlinkSync(`${at}/cwd`) === "/", "the guard's program to have begun");
    expect(readProcText(run.guard.pid, "environ")).toBe("LD_LIBRARY_PATH=/nowhere\0");
    const descriptors = readdirSync(`${at}/fd`).map(Number);
    expect(descriptors.sort((a, b) => a - b)).toEqual([0, 1, 2, 8, 9]);
    expect(readlinkSync(`${at}/fd/0`)).toStartWith("pipe:");
    expect([1, 2].map((fd) => readlinkSync(`${at}/fd/${fd}`))).toEqual(["/dev/null", "/dev/null"]);
    expect(readlinkSync(`${at}/fd/8`)).toStartWith("/memfd:");
    const stat = readStat(run.guard.pid);
    expect([stat?.sessionId, stat?.groupId]).toEqual([run.guard.pid, run.guard.pid]);
    expect(stat?.startTicks).toBe(run.guard.start_time);
    // The command, for comparison, got them.
    expect(readdirSync(`/proc/${run.child}/fd`)).toEqual(expect.arrayContaining(["3", "20"]));
    await sayBye(run);
  });

  test("leaves at bye, and nobody is buried", async () => {
    const run = await startGuarded(scene, { program: tellingProgram(scene) });
    await sayBye(run);
    expect(isThere(run.guard.pid)).toBe(false);
    expect(existsSync(buriedPath(scene, run))).toBe(false);
    expect(run.told().some((line) => "lost" in line || "restarted" in line)).toBe(false);
  });

  test("has a new one in its place when it dies, three times at most", async () => {
    const run = await startGuarded(scene, { program: tellingProgram(scene) });
    const pids = [run.guard.pid];
    for (let restart = 1; restart <= MOST_RESTARTS; restart += 1) {
      process.kill(pids.at(-1) ?? 0, "SIGKILL");
      const line = await waitFor(
        () => run.told().filter((one) => "restarted" in one)[restart - 1],
        `guard ${restart}`,
      );
      pids.push((line["restarted"] as { pid: number }).pid);
    }
    expect(new Set(pids).size).toBe(MOST_RESTARTS + 1);
    process.kill(pids.at(-1) ?? 0, "SIGKILL");
    await waitFor(() => run.told().some((one) => one["lost"] === "died-too-often"), "its loss");
    // Lost is lost: notes and the farewell change nothing and hurt nobody.
    run.send('note {"phase":"ending"}');
    await sayBye(run);
    expect(existsSync(buriedPath(scene, run))).toBe(false);
  });

  test("and the one in its place buries, too", async () => {
    const run = await startGuarded(scene);
    process.kill(run.guard.pid, "SIGKILL");
    const line = await waitFor(() => run.told().find((one) => "restarted" in one), "a new guard");
    await run.kill();
    await waitUntilGone((line["restarted"] as { pid: number }).pid, "the new guard");
    expect(readResult(run)["outcome"]).toBe("abandoned");
    expect(isThere(run.child)).toBe(false);
  });

  test("is not there where its notes cannot be written, and that is told", async () => {
    // 512 bytes: the lines that the run tells are shorter, a note is longer.
    const run = await startGuarded(scene, {
      wrapper: ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh"],
    });
    expect(run.told()[0]).toEqual({ lost: "not-noted" });
    await sayBye(run);
  });

  test("is not there where there is no program, and that is told", async () => {
    const run = await startGuarded(scene, { program: scene.path("no-such-program") });
    expect(run.told()[0]).toEqual({ lost: "no-program" });
    await sayBye(run);
  });
});

describe("when watchdog is killed, the guard", () => {
  test("buries, with the words that it was given", async () => {
    const run = await startGuarded(scene, { program: tellingProgram(scene) });
    await run.kill();
    expect(await waitForText(buriedPath(scene, run))).toBe(
      `__bury ${run.runId} ${scene.stateDirectory}\n`,
    );
    process.kill(run.child, "SIGKILL");
  });

  test("does so with its program and its working directory deleted", async () => {
    const program = tellingProgram(scene);
    const cwd = scene.path("gone");
    mkdirSync(cwd);
    const run = await startGuarded(scene, { program, cwd });
    rmSync(program);
    rmSync(cwd, { recursive: true });
    await run.kill();
    await waitForText(buriedPath(scene, run));
    process.kill(run.child, "SIGKILL");
  });

  test("does so whatever limit of open files the caller has set for the command", async () => {
    const run = await startGuarded(scene, { program: tellingProgram(scene), openFiles: 4 });
    await run.kill();
    await waitForText(buriedPath(scene, run));
    process.kill(run.child, "SIGKILL");
  });
});
