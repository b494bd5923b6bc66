/**
 * The guard of a run whose watchdog was killed: whom it ends and whom it spares, also when its
 * surroundings were taken away under it. The release binary, from outside.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { waitUntilNoGuard } from "../support/killing.ts";
import {
  endAll,
  lastOutcome,
  readChildPid,
  startGuardedRun,
  waitForBeats,
} from "../support/guarded-scene.ts";
import { findAnywhere, findByCommand } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const OFTEN = ["--heartbeat-interval", "100ms"];
const ABANDONED = { state: "ended", outcome: "abandoned", because: "watchdog-killed" };

/** A binary of the test's own, to be replaced or removed. */
function installBinary(name: string): string {
  const path = scene.path(name);
  try {
    linkSync(RELEASE, path);
  } catch {
    copyFileSync(RELEASE, path); // EXDEV: another file system
  }
  return path;
}

describe("a guard buries all the same", () => {
  const taken: Readonly<Record<string, (binary: string, cwd: string) => void>> = {
    "after an upgrade": (binary) => {
      writeFileSync(`${binary}.new`, "#!/bin/sh\nexit 99\n");
      chmodSync(`${binary}.new`, 0o755);
      renameSync(`${binary}.new`, binary);
    },
    "after an uninstall": (binary) => unlinkSync(binary),
    "when the working directory was deleted": (_, cwd) => rmSync(cwd, { recursive: true }),
  };
  for (const [title, take] of Object.entries(taken)) {
    test(`${title} while the run is on`, async () => {
      const name = title.replaceAll(" ", "-");
      const binary = installBinary(`binary-${name}`);
      const cwd = scene.path(`cwd-${name}`);
      mkdirSync(cwd);
      const run = await startGuardedRun(scene, {
        name,
        command: ["sh", "-c", `setsid sleep 97001 & exec sleep 97002`],
        options: { binary, cwd },
      });
      await run.waitForCommand("sleep 97001");
      await run.waitForCommand("sleep 97002");
      take(binary, cwd);
      expect(await run.killAndBury()).toMatchObject({ ...ABANDONED, job: name, degraded: [] });
      await run.waitUntilGone();
      expect(await lastOutcome(scene, name)).toBe("abandoned");
    });
  }

  test("when KILL goes to watchdog's whole process group", async () => {
    const binary = scene.path("in-a-group.sh");
    // setsid(1): a group of its own, which is not that of the tests.
    writeFileSync(binary, `#!/bin/sh\nexec setsid ${RELEASE} "$@"\n`, { mode: 0o755 });
    const run = await startGuardedRun(scene, {
      name: "group",
      command: ["sleep", "97003"],
      options: { binary },
    });
    await run.waitForCommand("sleep 97003");
    process.kill(-run.run.pid, "SIGKILL");
    expect(await run.killAndBury()).toMatchObject(ABANDONED);
    await run.waitUntilGone();
  });

  test("with a result file that was named relative to the working directory", async () => {
    const cwd = scene.path("relative");
    mkdirSync(cwd);
    const run = await startGuardedRun(scene, {
      name: "relative",
      args: ["--result-file", "relative.json"],
      command: ["sleep", "97004"],
      options: { cwd },
    });
    await run.waitForCommand("sleep 97004");
    await waitFor(() => existsSync(`${cwd}/relative.json`), "a result file");
    await endAll(scene, [run.run.pid]);
    await waitUntilNoGuard(scene);
    expect(await Bun.file(`${cwd}/relative.json`).json()).toMatchObject(ABANDONED);
  });

  test("without a lease", async () => {
    const run = await startGuardedRun(scene, {
      name: "no-lease",
      args: ["--no-lease"],
      command: ["sleep", "97005"],
    });
    await run.waitForCommand("sleep 97005");
    expect(await run.killAndBury()).toMatchObject({ ...ABANDONED, leases: [], guard: true });
    await run.waitUntilGone();
    expect(await lastOutcome(scene, "no-lease")).toBe("abandoned");
  });
});

describe("a guard", () => {
  for (const [what, args] of [
    ["with a lease", []],
    ["without one", ["--no-lease"]],
  ] as const) {
    test(`ends a command that has nothing of the run in its environment, ${what}`, async () => {
      // One of a kind, because nothing tells of which scene it is; it ends by itself.
      const command = `sleep 5${args.length}.${process.pid}`;
      const name = `bare-${args.length}`;
      const run = await startGuardedRun(scene, {
        name,
        args,
        command: ["env", "-i", ...command.split(" ")],
      });
      await waitFor(() => findAnywhere(command).length === 1, "its program");
      // Its pid is noted a moment after the spawn, and then written down.
      await waitFor(() => readChildPid(scene, name), "a result file with the command");
      await run.killAndBury();
      expect(findAnywhere(command)).toEqual([]);
    });
  }

  test("spares what `watchdog keep` has started", async () => {
    const script = `${RELEASE} keep -- sleep 97008; exec sleep 97009`;
    const run = await startGuardedRun(scene, {
      name: "kept",
      args: OFTEN,
      command: ["sh", "-c", script],
    });
    await run.waitForCommand("sleep 97009");
    const kept = await run.waitForCommand("sleep 97008");
    await waitForBeats(scene, "kept");
    await run.killAndBury();
    expect(run.find("sleep 97009")).toEqual([]);
    expect(run.find("sleep 97008")).toEqual([kept]);
    await endAll(scene, [kept]);
  });

  test("spares children that watchdog had before the run", async () => {
    const binary = scene.path("with-a-child.sh");
    writeFileSync(binary, `#!/bin/sh\nsleep 97010 &\nexec ${RELEASE} "$@"\n`, { mode: 0o755 });
    const run = await startGuardedRun(scene, {
      name: "inborn",
      args: OFTEN,
      command: ["sleep", "97011"],
      options: { binary, stderr: "ignore" },
    });
    await run.waitForCommand("sleep 97011");
    const inborn = await run.waitForCommand("sleep 97010");
    await waitForBeats(scene, "inborn");
    await run.killAndBury();
    expect(run.find("sleep 97011")).toEqual([]);
    expect(run.find("sleep 97010")).toEqual([inborn]);
    await endAll(scene, [inborn]);
  });

  test("spares an innocent that carries the run's id, and names it", async () => {
    const run = await startGuardedRun(scene, { name: "suspect", command: ["sleep", "97012"] });
    await run.waitForCommand("sleep 97012");
    await waitFor(() => existsSync(scene.path("suspect.json")), "a result file");
    const path = scene.readRecord("suspect")["run_path"];
    const innocent = scene.startProgram(["sleep", "97013"], { env: { WATCHDOG_RUN_PATH: path } });
    await waitFor(() => findByCommand(scene, "sleep 97013")[0], "an innocent");
    const record = await run.killAndBury();
    expect(run.find("sleep 97012")).toEqual([]);
    expect(findByCommand(scene, "sleep 97013")).toEqual([innocent.pid]);
    expect(record["left_alone"]).toMatchObject([{ pid: innocent.pid, command: "sleep 97013" }]);
    await endAll(scene, [innocent.pid]);
  });
});
