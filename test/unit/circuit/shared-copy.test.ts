/** The copy of a circuit: what was said while the row could not be had counts once. */
import { describe, expect, test } from "bun:test";
import { BUSY_PATIENCE_MS } from "../../../src/circuit/shared-copy.ts";
import { type FakeRun, ProbersScene } from "../../support/probers-scene.ts";

function fail(run: FakeRun, times: number): void {
  for (let count = 0; count < times; count += 1) {
    run.circuit.tell({ kind: "probe-failed" }, run.noteOf("refused"));
  }
}

describe("what was made up for", () => {
  test("is not said again with the next answer", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.rows.trouble = "busy";
    fail(run, 1);
    scene.rows.trouble = "none";
    await scene.time.pass(1_000);
    run.circuit.look();
    expect(scene.row).toMatchObject({ probes: 1, state: { consecutiveFailures: 1 } });
    fail(run, 1);
    expect(scene.row).toMatchObject({ probes: 2, state: { consecutiveFailures: 2 } });
  });

  test("starts the patience with a busy store anew: no trial on the copy alone", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.rows.trouble = "busy";
    fail(run, 1);
    scene.rows.trouble = "none";
    await scene.time.pass(BUSY_PATIENCE_MS);
    fail(run, 2);
    await scene.time.pass(1_000);
    scene.rows.trouble = "busy";
    expect(run.circuit.mayTry).toBe(true);
    expect(run.circuit.tell({ kind: "due" }).decision.isAdmitted).toBe(false);
  });
});
