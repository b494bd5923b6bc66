/** One process's hand on a circuit: a store that is busy or broken, and whose trial it is. */
import { describe, expect, test } from "bun:test";
import type { SharedCircuit } from "../../../src/core/shared-circuit.ts";
import { BUSY_PATIENCE_MS } from "../../../src/circuit/shared-copy.ts";
import { at, type FakeRun, ProbersScene, settingsOf } from "../../support/probers-scene.ts";

function fail(run: FakeRun, times = 1): void {
  for (let count = 0; count < times; count += 1) {
    run.circuit.tell({ kind: "probe-failed" }, run.noteOf("refused"));
  }
}

describe("a store that is busy", () => {
  test("protects at once, and loses nothing of what was said", async () => {
    const scene = new ProbersScene();
    const [run, other] = [scene.run(), scene.run()];
    fail(run, 1);
    scene.rows.trouble = "busy";
    fail(run, 2);
    expect(run.circuit.look().state.kind).toBe("open");
    expect([scene.row.probes, other.circuit.look().state.kind]).toEqual([1, "closed"]);
    scene.rows.trouble = "none";
    await scene.time.pass(1_000);
    const { state } = run.circuit.look();
    expect(scene.row).toMatchObject({ probes: 3, state });
    expect(other.circuit.look().state).toEqual(state);
    expect(run.reasons).toEqual([]);
  });

  test("is asked for that once a second at most", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.rows.trouble = "busy";
    fail(run, 1);
    run.store.tries = 0;
    for (let count = 0; count < 100; count += 1) {
      run.circuit.look();
      await scene.time.pass(100);
    }
    expect(run.store.tries).toBe(10);
  });

  test("and what others have said meanwhile both count", () => {
    const scene = new ProbersScene();
    const [run, caller] = [scene.run(), scene.run({ isCaller: true })];
    scene.rows.trouble = "busy";
    fail(run, 2);
    scene.rows.trouble = "none";
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    expect(scene.row.state).toMatchObject({ consecutiveFailures: 1 });
    fail(run, 0);
    run.circuit.look();
    expect(scene.row.state.kind).toBe("open");
  });

  test("lets no trial through on the copy alone, until it was busy for long", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    fail(run, 3);
    await scene.time.pass(1_000);
    scene.rows.trouble = "busy";
    expect(run.circuit.mayTry).toBe(true);
    expect(run.circuit.tell({ kind: "due" }).decision.isAdmitted).toBe(false);
    expect(run.circuit.look().state.kind).toBe("open");
    await scene.time.pass(BUSY_PATIENCE_MS);
    expect(run.circuit.tell({ kind: "due" })).toMatchObject({ isTrial: true });
    fail(run, 1);
    scene.rows.trouble = "none";
    await scene.time.pass(1_000);
    run.circuit.look();
    expect(scene.row).toMatchObject({ state: { kind: "open", backoff: { attempts: 2 } } });
  });

  test("lets calls through a closed one all the same", () => {
    const scene = new ProbersScene();
    scene.rows.trouble = "busy";
    const caller = scene.run({ isCaller: true });
    expect(caller.circuit.tell({ kind: "due" }).decision.isAdmitted).toBe(true);
  });

  test("the answer of a trial that the row gave to another one is only counted", async () => {
    const scene = new ProbersScene();
    const [run, other] = [scene.run(), scene.run()];
    fail(run, 3);
    await scene.time.pass(1_000);
    run.circuit.look();
    scene.rows.trouble = "busy";
    run.circuit.tell({ kind: "due" });
    await scene.time.pass(BUSY_PATIENCE_MS);
    run.circuit.tell({ kind: "due" });
    run.circuit.tell({ kind: "probe-succeeded" }, run.noteOf("good"));
    expect(run.circuit.look().state.kind).toBe("closed");
    scene.rows.trouble = "none";
    expect(other.circuit.tell({ kind: "due" }).isTrial).toBe(true);
    await scene.time.pass(1_000);
    run.circuit.look();
    expect(scene.row).toMatchObject({ goodProbes: 1, trialBy: { pid: other.pid } });
    expect(run.circuit.look().state.kind).toBe("half-open");
  });

  test("that has lost the row meanwhile gets it again by a look alone", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.rows.trouble = "busy";
    fail(run, 3);
    scene.rows.rows.clear();
    scene.rows.trouble = "none";
    await scene.time.pass(1_000);
    run.circuit.look();
    expect(scene.row).toMatchObject({ probes: 3, state: { kind: "open" } });
  });

  test("is tried once more by who leaves", () => {
    const scene = new ProbersScene();
    const run = scene.run();
    run.circuit.takeLock();
    scene.rows.trouble = "busy";
    fail(run, 3);
    scene.rows.trouble = "none";
    run.circuit.leave();
    expect([scene.row.probes, scene.lock.holder]).toEqual([3, undefined]);
  });

  test("keeps the last ones where there are too many", () => {
    const scene = new ProbersScene(settingsOf({ failureThreshold: 1_000 }));
    const run = scene.run();
    scene.rows.trouble = "busy";
    fail(run, 500);
    scene.rows.trouble = "none";
    fail(run, 1);
    expect(scene.row.probes).toBe(201);
  });
});

describe("a store that fails", () => {
  test("is told once, decided without, and made up for when it is back", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.rows.trouble = "unwritten";
    fail(run, 3);
    expect([run.circuit.isShared, run.reasons]).toEqual([false, ["the disk is full"]]);
    scene.lock.holder = 1;
    expect(run.circuit.takeLock()).toBe(true);
    scene.rows.trouble = "none";
    await scene.time.pass(1_000);
    expect(run.circuit.look().state.kind).toBe("open");
    expect([scene.row.state.kind, run.circuit.isShared]).toEqual(["open", true]);
    expect(run.circuit.takeLock()).toBe(false);
  });

  test("and cannot be read makes a run probe on its own", () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.lock.holder = 1;
    expect(run.circuit.takeLock()).toBe(false);
    scene.rows.trouble = "unread";
    scene.rows.version += 1;
    run.circuit.look();
    expect([run.circuit.takeLock(), run.reasons]).toEqual([true, ["it is torn"]]);
    scene.rows.trouble = "none";
    run.circuit.look();
    expect(run.circuit.takeLock()).toBe(false);
  });

  test("and has lost the row gets it again as it is known", () => {
    const scene = new ProbersScene();
    const run = scene.run();
    fail(run, 2);
    scene.rows.rows.clear();
    scene.rows.version += 1;
    run.circuit.look();
    fail(run, 1);
    expect(scene.row).toMatchObject({ probes: 3, state: { kind: "open" } });
  });
});

describe("a trial", () => {
  async function due(): Promise<{ scene: ProbersScene; holder: FakeRun; other: FakeRun }> {
    const scene = new ProbersScene();
    const [holder, other] = [scene.run(), scene.run()];
    fail(holder, 3);
    await scene.time.pass(1_000);
    expect(holder.circuit.tell({ kind: "due" }).isTrial).toBe(true);
    return { scene, holder, other };
  }

  function trialOf({ trialBy }: SharedCircuit): number | undefined {
    return trialBy?.pid;
  }

  test("is recorded with its holder until it ends", async () => {
    for (const kind of ["probe-succeeded", "probe-failed"] as const) {
      const { scene, holder } = await due();
      expect(scene.row.trialBy).toEqual({
        pid: holder.pid,
        start_time: holder.pid,
        boot_id: "boot",
        pid_namespace: "1",
        at: at(scene.time.nowMs),
      });
      holder.circuit.tell({ kind });
      expect(scene.row.trialBy).toBeNull();
    }
  });

  test("is refused to all others, and their answers decide nothing", async () => {
    const { scene, holder, other } = await due();
    expect(other.circuit.tell({ kind: "due" }).decision.isAdmitted).toBe(false);
    other.circuit.tell({ kind: "probe-succeeded" }, other.noteOf("good"));
    other.circuit.tell({ kind: "call-failed", isTrial: true });
    other.circuit.tell({ kind: "trial-lost" });
    expect([scene.row.state.kind, trialOf(scene.row)]).toEqual(["half-open", holder.pid]);
    holder.circuit.tell({ kind: "probe-succeeded" });
    expect(scene.row.state.kind).toBe("closed");
  });

  test("of a dead process is given to the next one that asks", async () => {
    const { scene, holder, other } = await due();
    holder.kill();
    expect(other.circuit.tell({ kind: "due" }).isTrial).toBe(true);
    expect(trialOf(scene.row)).toBe(other.pid);
  });

  test("of one that takes too long, too, and its late answer decides nothing", async () => {
    const { scene, holder, other } = await due();
    await scene.time.pass(600_000);
    expect(other.circuit.tell({ kind: "due" }).isTrial).toBe(false);
    await scene.time.pass(1);
    expect(other.circuit.tell({ kind: "due" }).isTrial).toBe(true);
    holder.circuit.tell({ kind: "probe-succeeded" });
    expect([scene.row.state.kind, trialOf(scene.row)]).toEqual(["half-open", other.pid]);
  });

  test("that its own process asks for again begins anew", async () => {
    const { scene, holder } = await due();
    expect(holder.circuit.tell({ kind: "due" }).isTrial).toBe(true);
    expect(trialOf(scene.row)).toBe(holder.pid);
  });

  test("is given up by who leaves", async () => {
    const { scene, holder } = await due();
    holder.circuit.leave();
    expect(scene.row).toMatchObject({ trialBy: null, state: { isTrialOut: false } });
  });

  test("of one that cannot be seen is lost to who takes the lock over", async () => {
    const { scene, holder, other } = await due();
    scene.lock.holder = undefined;
    other.circuit.takeLock();
    expect(trialOf(scene.row)).toBe(holder.pid);
    other.circuit.unlock();
    const { row } = scene;
    if (row.trialBy !== null) {
      scene.rows.put({ ...row, trialBy: { ...row.trialBy, pid_namespace: "2" } });
    }
    other.circuit.takeLock();
    expect(scene.row.trialBy).toBeNull();
  });
});

test("a reset begins everything anew, the counts too", () => {
  const scene = new ProbersScene();
  const run = scene.run();
  fail(run, 3);
  run.circuit.tell({ kind: "reset" });
  expect(scene.row).toMatchObject({ state: { kind: "closed" }, probes: 0, goodProbes: 0 });
});

describe("what is written", () => {
  test("is nothing where nothing has changed: calls of a healthy dependency cost no write", () => {
    const scene = new ProbersScene();
    scene.run();
    const caller = scene.run({ isCaller: true });
    for (let count = 0; count < 10; count += 1) {
      caller.circuit.tell({ kind: "due" });
      caller.circuit.tell({ kind: "call-succeeded", isTrial: false });
    }
    expect(caller.store.writes).toBe(0);
  });

  test("by a caller alone begins with the first failure", () => {
    const scene = new ProbersScene();
    const caller = scene.run({ isCaller: true });
    caller.circuit.tell({ kind: "due" });
    expect(scene.rows.rows.size).toBe(0);
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    expect(scene.row).toMatchObject({ settingsHash: null, state: { consecutiveFailures: 1 } });
  });

  test("by a caller is counted with the settings that the row has", () => {
    const scene = new ProbersScene(settingsOf({ failureThreshold: 2 }));
    scene.run();
    const caller = scene.run({ isCaller: true, settings: settingsOf({ failureThreshold: 9 }) });
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    expect(scene.row.state.kind).toBe("open");
  });
});
