/**
 * A watchdog that dies at each step of a pause and of its end, and a start that fails when its
 * dependencies have answered: nobody is left frozen, or at all, and lease and circuit are free.
 * Each fault has left its evidence, and the sweep has gone to the end of the steps.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { identify } from "../support/guarded-scene.ts";
import { GONE_LIMIT_MS, guardOf, isStillThere, waitUntilNoGuard } from "../support/killing.ts";
import { openPausing } from "../support/pausing.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { FAULTS } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence, runWithFault } from "./fault-scene.ts";

const { scene, start, makeDependency } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
/** A shell, a child, and one with a child in a session of its own. */
const SCRIPT = "sleep 94101 & setsid sh -c 'sleep 94102 & exec sleep 94103' & exec sleep 94104";
const SLEEPERS = ["sleep 94101", "sleep 94102", "sleep 94103", "sleep 94104"];
const STEPS = SLEEPERS.map((_, index) => index + 1);

/** Takes the dependency away, and gives it back where the fault is to come at the end. */
async function pauseWithFault(name: string, fault: string, comesBack: boolean) {
  const faults = scene.path(`${name}.faults`);
  const run = await start({
    name,
    args: ["--log", "off"],
    command: ["sh", "-c", SCRIPT],
    options: { binary: FAULTS, env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: faults } },
  });
  for (const one of SLEEPERS) await waitForCommand(scene, one);
  const guard = identify(guardOf(run.pid) ?? 0);
  if (comesBack) await run.pause();
  run.dependency.isUp = comesBack;
  const { signal } = await run.started.ended;
  await waitFor(() => !isStillThere(guard), "the end of the guard", { limitMs: GONE_LIMIT_MS });
  await run.waitUntilGone();
  return { signal, evidence: readEvidence(faults), record: run.record() };
}

describe.each([
  ["tree.freeze", false],
  ["tree.thaw", true],
] as const)("SIGKILL at %s", (point, comesBack) => {
  test(
    "leaves nobody, at each of the processes",
    async () => {
      const found: [number, number][] = [];
      for (const step of STEPS) {
        const name = `${point}-${step}`;
        const run = await pauseWithFault(name, `${point}#${step}=kill`, comesBack);
        expect([run.signal, run.record]).toMatchObject([
          "SIGKILL",
          { state: "ended", outcome: "abandoned", because: "watchdog-killed" },
        ]);
        for (const { nth, state } of run.evidence) found.push([nth, Number(state["count"])]);
      }
      expect(found.map(([nth]) => nth)).toEqual(STEPS);
      const counts = found.map(([, count]) => count);
      // So many are still to be continued; or were stopped before, one of them more than once where
      // it waited in the kernel.
      if (comesBack) return expect(counts).toEqual([4, 3, 2, 1]);
      counts.forEach((count, index) => expect(count).toBeLessThanOrEqual(index));
    },
    LIMIT_MS,
  );
});

describe("spawn.before, when the dependency has answered", () => {
  /** Nothing has run, and the next one has what it needs at once. */
  async function expectAllFree(name: string, words: readonly string[]): Promise<void> {
    expect([existsSync(scene.path("ran")), findByCommand(scene, "sleep 94105")]).toEqual([
      false,
      [],
    ]);
    const { circuits } = await askJson(scene, ["circuit", "list"]);
    expect(circuits.map((one: Record<string, unknown>) => one["is_probed"])).not.toContain(true);
    expect(["free", "dead"]).toContain(
      (await askJson(scene, ["lease", "show", `job:${name}`])).verdict,
    );
    const next = await scene.run(["--name", name, ...words, "--", "echo", "next"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "next\n"]);
  }

  test.each([
    ["throw", 125],
    ["kill", 137],
  ] as const)(
    "%s gives everything back",
    async (act, status) => {
      const [name, dependency] = [`spawn-${act}`, makeDependency()];
      const probes = ["--probe", "cmd:true", "--ready-probe", "cmd:sleep 94105"];
      const words = ["--name", name, "--log", "off", ...dependency.words, ...probes];
      const command = ["--", "touch", scene.path("ran")];
      const run = await runWithFault(scene, `spawn.before=${act}`, [...words, ...command]);
      expect(run.evidence).toMatchObject([{ point: "spawn.before", act }]);
      expect([run.ended.status, dependency.asked > 0]).toEqual([status, true]);
      await waitUntilNoGuard(scene);
      await expectAllFree(name, dependency.words);
    },
    LIMIT_MS,
  );
});

test(
  "without a fault the same run pauses and goes on, and leaves no marker",
  async () => {
    const faults = scene.path("none.faults");
    const run = await start({
      name: "none",
      command: ["sh", "-c", SCRIPT],
      options: { binary: FAULTS, env: { WATCHDOG_FAULT_DIR: faults } },
    });
    await run.pause();
    await run.resume();
    expect((await ask(scene, ["stop", "none"])).status).toBe(0);
    expect((await run.started.ended).status).toBe(143);
    expect(readEvidence(faults)).toEqual([]);
  },
  LIMIT_MS,
);
