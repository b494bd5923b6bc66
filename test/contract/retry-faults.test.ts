/** Errors of the system and sudden death between attempts. Each fault proves that it has fired. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { makeCounted, startRetry } from "../support/retrying.ts";
import { CallCircuit } from "../support/retry-circuit.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

function withFault(plan: string, mark: string) {
  const directory = scene.path(`faults-${mark}`);
  return {
    env: { WATCHDOG_FAULT: plan, WATCHDOG_FAULT_DIR: directory },
    /** What the fault itself has written down. */
    fired: () =>
      (existsSync(directory) ? readdirSync(directory) : []).map((name) =>
        JSON.parse(readFileSync(`${directory}/${name}`, "utf8")),
      ),
  };
}

test.each(["retry.attempt#2=eio", "retry.wait=enospc"])("%s ends it with 125", async (plan) => {
  const { env, fired } = withFault(plan, plan.slice(0, 9));
  const { command, attempts } = makeCounted(scene, "exit 7");
  const resultFile = scene.path("broken.json");
  const { status, stderr } = await startRetry(
    scene,
    { command, options: { resultFile } },
    {
      env,
    },
  ).ended;
  expect([status, attempts()]).toEqual([125, ["1"]]);
  expect(stderr).toStartWith("watchdog: error: no attempt can be made: E");
  expect(fired()).toMatchObject([{ point: plan.split(/[#=]/)[0], state: { attempt: 2 } }]);
  const { state, outcome, attempts: told } = JSON.parse(readFileSync(resultFile, "utf8"));
  expect([state, outcome, told.length]).toEqual(["ended", "wrapper_error", 1]);
});

test("killed right before an attempt, nothing is started, and the trial is lost", async () => {
  const circuit = new CallCircuit(scene, "killed before");
  circuit.openUntil(-1);
  const { env, fired } = withFault("retry.attempt=kill", "kill");
  const { command, attempts } = makeCounted(scene, "exit 0");
  const plan = { command, options: { breaker: circuit.name } };
  expect((await startRetry(scene, plan, { env }).ended).signal).toBe("SIGKILL");
  expect([attempts(), fired().length]).toEqual([[], 1]);
  expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: true });
  expect((await startRetry(scene, plan).ended).status).toBe(0);
  expect([attempts(), circuit.state]).toEqual([["1"], "closed"]);
});

test("without a fault the same attempts go on", async () => {
  const { env, fired } = withFault("retry.attempt#99=eio", "none");
  const { command, attempts } = makeCounted(scene, "exit $((2 - N))");
  const { status } = await startRetry(scene, { command }, { env }).ended;
  expect([status, attempts(), fired()]).toEqual([0, ["1", "2"], []]);
});
