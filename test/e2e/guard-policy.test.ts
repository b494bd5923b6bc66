/**
 * What a guard does by policy when its watchdog was killed: `--guard-grace`, and `--leftovers`
 * where the main command had ended before. The release binary, from outside.
 */
import { describe, expect, test } from "bun:test";
import { closeSync, constants, openSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { endAll, readChildPid, startGuardedRun } from "../support/guarded-scene.ts";
import { PYTHON } from "../support/outside.ts";
import { readLines, waitForText } from "../support/processes.ts";
import { FIXTURES, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const QUIET = "</dev/null >/dev/null 2>&1";
const OFTEN = ["--heartbeat-interval", "100ms"];
const ABANDONED = { state: "ended", outcome: "abandoned", because: "watchdog-killed" };

function fixture(name: string, ...words: readonly string[]): string[] {
  return [PYTHON, "-I", "-S", `${FIXTURES}/${name}`, ...words];
}

describe("a guard", () => {
  test("asks by TERM first with --guard-grace, and kills nobody who obeys", async () => {
    const heard = scene.path("grace.heard");
    const run = await startGuardedRun(scene, {
      name: "grace",
      args: ["--guard-grace", "20s"],
      command: fixture("notes-signals.py", heard, "main", "TERM,HUP,INT", "TERM"),
    });
    await waitFor(() => readLines(heard).length === 2, "both to be ready");
    const record = await run.killAndBury();
    await run.waitUntilGone();
    expect(readLines(heard).slice(2).sort()).toEqual(["child TERM", "main TERM"]);
    expect(record).toMatchObject(ABANDONED);
    const { leftovers } = record as { leftovers: readonly { ended_by: string }[] };
    expect(leftovers.map((one) => one.ended_by)).toEqual(["TERM", "TERM"]);
  });

  test("kills who ignores TERM when --guard-grace is over, and not before", async () => {
    const script = `trap "" TERM; echo ready >${scene.path("deaf.ready")}; exec sleep 97006`;
    const run = await startGuardedRun(scene, {
      name: "deaf",
      args: ["--guard-grace", "700ms"],
      command: ["sh", "-c", script],
    });
    await waitForText(scene.path("deaf.ready"));
    await run.waitForCommand("sleep 97006");
    const began = performance.now();
    const record = await run.killAndBury();
    expect(performance.now() - began).toBeGreaterThan(690);
    expect(record["leftovers"]).toMatchObject([{ command: "sleep 97006", ended_by: "KILL" }]);
    await run.waitUntilGone();
  });

  test("kills at once without --guard-grace: nobody hears a TERM", async () => {
    const heard = scene.path("at-once.heard");
    const run = await startGuardedRun(scene, {
      name: "at-once",
      command: fixture("notes-signals.py", heard, "main", "TERM,HUP,INT"),
    });
    await waitForText(heard);
    const record = await run.killAndBury();
    await run.waitUntilGone();
    expect(readLines(heard)).toEqual(["main ready"]);
    expect(record["leftovers"]).toMatchObject([{ ended_by: "KILL" }]);
  });
});

describe("when the main command had ended", () => {
  const leaves = `setsid sleep 97014 ${QUIET} & exit 4`;

  /** Watchdog has collected it and told its guard: no beat names it any more. */
  async function waitForMainEnd(name: string): Promise<void> {
    const main = await waitFor(() => readChildPid(scene, name), "a result file with the command");
    await waitFor(async () => {
      const { children } = await askJson(scene, ["lease", "show", `job:${name}`]);
      return children.every(({ pid }: { pid: number }) => pid !== main);
    }, "a beat without the command");
  }

  test("a guard leaves alone what --leftovers wait was waiting for", async () => {
    const run = await startGuardedRun(scene, {
      name: "wait",
      args: [...OFTEN, "--leftovers", "wait"],
      command: ["sh", "-c", leaves],
    });
    const left = await run.waitForCommand("sleep 97014");
    await waitForMainEnd("wait");
    const record = await run.killAndBury();
    expect(run.find("sleep 97014")).toEqual([left]);
    expect(record).toMatchObject({
      ...ABANDONED,
      exit_code: 4,
      leftovers: [{ pid: left, command: "sleep 97014", ended_by: null }],
    });
    await endAll(scene, [left]);
  });

  test("a guard leaves alone what --leftovers leave had left", async () => {
    // Nobody reads, so that watchdog has still to deliver output when the command has ended.
    const unread = scene.path("unread");
    Bun.spawnSync(["mkfifo", unread]);
    const stdout = openSync(unread, constants.O_RDWR);
    const run = await startGuardedRun(scene, {
      name: "leave",
      args: [...OFTEN, "--leftovers", "leave", "--log", "on"],
      command: ["sh", "-c", `head -c 100000 /dev/zero; ${leaves}`],
      options: { stdout, stderr: "ignore" },
    });
    const left = await run.waitForCommand("sleep 97014");
    await waitForMainEnd("leave");
    const record = await run.killAndBury();
    expect(run.find("sleep 97014")).toEqual([left]);
    expect(record).toMatchObject({ ...ABANDONED, exit_code: 4 });
    await endAll(scene, [left]);
    closeSync(stdout);
  });

  test("a guard ends what --leftovers kill was still asking", async () => {
    const ready = scene.path("asked.ready");
    const deaf = `trap "" TERM; echo ready >${ready}; exec sleep 97015`;
    const script = `setsid sh -c '${deaf}' ${QUIET} & until [ -s ${ready} ]; do sleep 0.01; done`;
    const run = await startGuardedRun(scene, {
      name: "asked",
      args: [...OFTEN, "--kill-after", "50s"],
      command: ["sh", "-c", script],
    });
    await run.waitForCommand("sleep 97015");
    await waitForMainEnd("asked");
    const record = await run.killAndBury();
    await run.waitUntilGone();
    expect(record).toMatchObject({ ...ABANDONED, exit_code: 0 });
  });
});

test("--leftovers leave spares nobody whom a limit was ending", async () => {
  const ready = scene.path("limited.ready");
  const deaf = `trap "" TERM; echo ready >${ready}; exec sleep 97018`;
  const run = await startGuardedRun(scene, {
    name: "limited",
    args: ["--leftovers", "leave", "--timeout", "5s", "--kill-after", "50s"],
    command: ["sh", "-c", `setsid sh -c '${deaf}' ${QUIET} & exec sleep 97019`],
  });
  await run.waitForCommand("sleep 97018");
  await run.waitForCommand("sleep 97019");
  await waitFor(() => run.find("sleep 97019").length === 0, "the limit");
  const record = await run.killAndBury();
  await run.waitUntilGone();
  expect(record).toMatchObject({ ...ABANDONED, leftovers: [{ command: "sleep 97018" }] });
});

test("--leftovers leave spares nobody while the command goes on", async () => {
  const run = await startGuardedRun(scene, {
    name: "leave-running",
    args: ["--leftovers", "leave"],
    command: ["sh", "-c", `setsid sleep 97016 ${QUIET} & exec sleep 97017`],
  });
  await run.waitForCommand("sleep 97016");
  await run.waitForCommand("sleep 97017");
  await run.killAndBury();
  await run.waitUntilGone();
});
