/** Joining a circuit: with the same settings, with others, beside others, without a store. */
import { describe, expect, test } from "bun:test";
import { hashSettings } from "../../../src/core/probe-settings.ts";
import { type FakeRun, ProbersScene, settingsOf } from "../../support/probers-scene.ts";

function fail(run: FakeRun, times: number): void {
  for (let count = 0; count < times; count += 1) {
    run.circuit.tell({ kind: "probe-failed" }, run.noteOf("refused"));
  }
}

const EDITED = settingsOf({ periodMs: 5_000 });

describe("joining", () => {
  test("begins a circuit with the settings, and finds the same ones again", () => {
    const scene = new ProbersScene();
    const [first, second] = [scene.run(), scene.run({ job: "other" })];
    expect(first.circuit.join()).toEqual({ kind: "same" });
    expect(second.circuit.join()).toEqual({ kind: "same" });
    expect(scene.row).toMatchObject({ job: "nightly", probes: 0, state: { kind: "closed" } });
    expect(scene.row.settingsHash).toBe(hashSettings(scene.settings));
  });

  test("takes over what is known: also that it is open", () => {
    const scene = new ProbersScene();
    fail(scene.run(), 3);
    expect(scene.run().circuit.look().state.kind).toBe("open");
  });

  test("with other settings is refused while somebody probes, and of another job always", () => {
    const scene = new ProbersScene();
    const first = scene.run();
    first.circuit.takeLock();
    const edited = scene.run({ settings: EDITED });
    expect(edited.circuit.join()).toEqual({ kind: "refused", because: "in-use" });
    expect(edited.circuit.look().settingsHash).toBe(hashSettings(scene.settings)); // whose it is
    expect(edited.reasons).toEqual([]);
    first.circuit.leave();
    const other = scene.run({ settings: EDITED, job: "other" });
    expect(other.circuit.join()).toEqual({ kind: "refused", because: "of-another-job" });
    expect(scene.row.settingsHash).toBe(hashSettings(scene.settings));
  });

  test("begins afresh with the edited settings of the same job, once nobody probes", () => {
    const scene = new ProbersScene();
    fail(scene.run(), 3);
    const edited = scene.run({ settings: EDITED });
    expect(scene.row).toMatchObject({ state: { kind: "closed" }, probes: 0 });
    expect(edited.circuit.join()).toEqual({ kind: "same" });
    expect(scene.row.settingsHash).toBe(hashSettings(EDITED));
  });

  test("does not end what a run with the old settings does: it goes on alone, told once", () => {
    const scene = new ProbersScene();
    const first = scene.run();
    const idle = scene.run();
    scene.run({ settings: EDITED });
    idle.circuit.look();
    expect([idle.circuit.isShared, idle.reasons.length]).toEqual([false, 1]);
    fail(first, 3);
    expect(first.circuit.look().state.kind).toBe("open");
    expect([first.circuit.isShared, first.reasons.length]).toEqual([false, 1]);
    expect(first.reasons[0]).toContain("nightly has begun it anew");
    expect(scene.row).toMatchObject({ state: { kind: "closed" }, probes: 0 });
    scene.lock.holder = 1;
    expect(first.circuit.takeLock()).toBe(true);
  });

  test("gives settings to a circuit that only calls have used, also beside another joiner", () => {
    const scene = new ProbersScene();
    const caller = scene.run({ isCaller: true });
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    expect(scene.row.settingsHash).toBeNull();
    scene.lock.holder = 1; // the one who asks at the same moment
    scene.run();
    expect(scene.row).toMatchObject({ job: "nightly", state: { consecutiveFailures: 1 } });
  });

  test("leaves a circuit open that calls have opened, with its wait", () => {
    const scene = new ProbersScene();
    const caller = scene.run({ isCaller: true });
    for (let calls = 0; calls < 3; calls += 1) {
      caller.circuit.tell({ kind: "call-failed", isTrial: false });
    }
    const { state } = scene.row;
    expect(state.kind).toBe("open");
    const run = scene.run();
    expect(run.circuit.look().state).toEqual(state);
    expect(scene.row.settingsHash).toBe(hashSettings(scene.settings));
  });

  test("takes no answer over that was given to whoever asked before a reset", () => {
    const scene = new ProbersScene();
    const first = scene.run();
    first.circuit.tell({ kind: "probe-succeeded" }, first.noteOf("good"));
    const settings = { settingsHash: null, target: null, job: null };
    scene.rows.put({ ...scene.row, ...settings });
    const other = scene.run({ settings: EDITED, job: "other" });
    expect(other.circuit.look()).toMatchObject({ lastGoodAt: null, lastProbe: null, probes: 0 });
  });

  test("without a store goes on in memory and says so", () => {
    const scene = new ProbersScene();
    scene.hasStore = false;
    const run = scene.run();
    expect(run.circuit.join()).toBe("unshared");
    fail(run, 3);
    expect(run.circuit.look().state.kind).toBe("open");
    expect(run.reasons).toEqual(["there is no journal"]);
  });

  test("a store that cannot be written respects what can be read", () => {
    const scene = new ProbersScene();
    fail(scene.run(), 3);
    scene.rows.trouble = "unwritten";
    const run = scene.run();
    expect([run.circuit.look().state.kind, run.reasons]).toEqual(["open", ["the disk is full"]]);
    expect(scene.run({ settings: EDITED, job: "other" }).circuit.join()).toMatchObject({
      because: "of-another-job",
    });
  });

  test("while the store is busy is made up for, also where it begins or replaces", () => {
    for (const hasRow of [true, false]) {
      const scene = new ProbersScene();
      if (hasRow) fail(scene.run(), 3);
      scene.rows.trouble = "busy";
      const run = scene.run({ settings: EDITED });
      expect(run.circuit.look().state.kind).toBe("closed");
      scene.rows.trouble = "none";
      fail(run, 1);
      expect(scene.row).toMatchObject({ probes: 1, settingsHash: hashSettings(EDITED) });
      expect([run.circuit.isShared, run.reasons]).toEqual([true, []]);
    }
  });
});
