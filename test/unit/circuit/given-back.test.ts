/** What a process of a circuit has to give back: the lock, its trial, and its turn. */
import { describe, expect, test } from "bun:test";
import { CircuitWatch } from "../../../src/circuit/watch.ts";
import { at, type FakeRun, ProbersScene } from "../../support/probers-scene.ts";

function fail(run: FakeRun, times: number): void {
  for (let count = 0; count < times; count += 1) {
    run.circuit.tell({ kind: "probe-failed" }, run.noteOf("refused"));
  }
}

/** A scene whose circuit is open, and due. */
async function dueScene(): Promise<{ readonly scene: ProbersScene; readonly run: FakeRun }> {
  const scene = new ProbersScene();
  const run = scene.run();
  fail(run, 3);
  await scene.time.pass(1_000);
  expect([scene.row.state.kind, run.circuit.mayTry]).toEqual(["open", true]);
  return { scene, run };
}

describe("the lock", () => {
  test("is given back by a run that cannot share what it finds any more", () => {
    const scene = new ProbersScene();
    const run = scene.run();
    expect([run.circuit.takeLock(), scene.lock.holder]).toEqual([true, run.pid]);
    scene.rows.trouble = "unwritten";
    fail(run, 1);
    expect(run.circuit.takeLock()).toBe(true); // probes for itself
    expect(scene.lock.holder).toBeUndefined();
  });

  test("that was given back early is not given back once more later", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    run.circuit.takeLock();
    run.circuit.keepFor(10_000, run.wake);
    run.circuit.unlock();
    expect(scene.time.timerCount).toBe(0);
    run.circuit.takeLock();
    await scene.time.pass(20_000);
    expect(scene.lock.holder).toBe(run.pid);
  });
});

describe("the trial of a start", () => {
  test("is free for others as soon as it could not be asked for reasons of its own", async () => {
    const { scene, run } = await dueScene();
    scene.server.answers = ["command-not-started"];
    run.start();
    await scene.time.pass(10);
    expect(scene.count).toBe(1);
    expect(scene.row.trialBy).toBeNull();
    expect(scene.row.state).toMatchObject({ kind: "half-open", isTrialOut: false });
  });

  test("is asked for once a look where the row cannot be had, not again and again", async () => {
    const { scene, run } = await dueScene();
    scene.rows.trouble = "busy";
    run.store.tries = 0;
    const change = run.store.change.bind(run.store);
    run.store.change = (...words) => {
      if (run.store.tries > 100) throw new Error("it is asked again and again");
      return change(...words);
    };
    run.start();
    await scene.time.pass(2_500);
    expect(scene.count).toBe(0);
    expect(run.store.tries).toBeWithin(1, 10);
  });
});

describe("a watch that is ended by what it tells", () => {
  test("asks nothing more, and leaves the trial that is due to others", async () => {
    const { scene, run } = await dueScene();
    const told: string[] = [];
    const watch = new CircuitWatch({
      circuit: run.circuit,
      settings: run.settings,
      wake: run.wake,
      probe: (signal) => scene.server.ask(run.pid, signal),
      startedAt: at(scene.time.nowMs),
      onChange: ({ state }) => {
        told.push(state.kind);
        watch.end();
      },
    });
    watch.begin();
    expect([told, scene.count, scene.row.state.kind]).toEqual([["open"], 0, "open"]);
    expect([scene.lock.holder, scene.time.timerCount]).toEqual([undefined, 0]);
  });
});
