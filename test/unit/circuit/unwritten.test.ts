/** A prober that asks once a second: what it writes, and what others see of it. */
import { describe, expect, test } from "bun:test";
import { type FakeRun, ProbersScene, settingsOf } from "../../support/probers-scene.ts";

const EACH_SECOND = settingsOf({ periodMs: 1_000 });

async function watching(seconds: number): Promise<{ scene: ProbersScene; run: FakeRun }> {
  const scene = new ProbersScene(EACH_SECOND);
  const run = scene.watching();
  await scene.time.pass(seconds * 1_000 + 10);
  return { scene, run };
}

describe("a prober of a dependency that is well", () => {
  test("writes every ten seconds, with the counts of all", async () => {
    const { scene, run } = await watching(1);
    const before = run.store.writes;
    await scene.time.pass(100_000);
    expect(scene.count).toBeGreaterThan(99);
    expect(run.store.writes - before).toBeLessThanOrEqual(12);
    expect(scene.row.probes).toBeGreaterThan(90);
    expect(scene.row.goodProbes).toBe(scene.row.probes);
    expect(run.circuit.look()).toMatchObject({ probes: scene.count, goodProbes: scene.count });
  });

  test("writes each where the period is as long: the negative twin", async () => {
    const scene = new ProbersScene();
    const run = scene.watching();
    await scene.time.pass(100_010);
    expect([scene.count, run.store.writes]).toEqual([11, 12]);
  });

  test("wakes once for each probe", async () => {
    const { scene } = await watching(1);
    let asked = 0;
    scene.lock.onTry = () => void (asked += 1);
    const { wake } = scene.time;
    let timers = 0;
    Object.assign(scene.time, {
      wake: (waitMs: number, act: () => void) => {
        timers += 1;
        return wake(waitMs, act);
      },
    });
    const before = scene.count;
    await scene.time.pass(50_000);
    const probes = scene.count - before;
    // One of its own, and one of the server's in this scene.
    expect(timers).toBeLessThanOrEqual(2 * probes + 2);
    expect(asked).toBe(0); // it has the lock, and only looks whether it has it still
  });

  test("writes a failure at once, and all that came before with it", async () => {
    const { scene } = await watching(5);
    expect(scene.row.probes).toBeLessThan(scene.count);
    scene.server.isUp = false;
    await scene.time.pass(1_000);
    expect(scene.row).toMatchObject({
      probes: scene.count,
      state: { consecutiveFailures: 1 },
      lastProbe: { because: "refused" },
    });
  });

  test("writes the first good one after a failure at once", async () => {
    const { scene } = await watching(5);
    scene.server.answers = ["refused"];
    await scene.time.pass(2_000);
    expect(scene.row).toMatchObject({
      probes: scene.count,
      state: { consecutiveFailures: 0 },
      lastProbe: { because: "good" },
    });
  });

  test("has written all of it when it leaves", async () => {
    const { scene, run } = await watching(5);
    run.stop();
    expect(scene.row).toMatchObject({ probes: scene.count, goodProbes: scene.count });
    const next = scene.watching();
    const last = scene.server.requests.at(-1)?.atMs ?? 0;
    await scene.time.pass(1_100);
    const first = scene.server.requests.find(({ by }) => by === next.pid)?.atMs ?? 0;
    expect(first - last).toBeGreaterThanOrEqual(1_000);
  });

  test("that is killed is followed by one that asks at once, and counts on", async () => {
    const { scene, run } = await watching(5);
    const { probes } = scene.row;
    const other = scene.watching();
    run.kill();
    await scene.time.pass(1_000);
    expect(scene.server.requests.at(-1)?.by).toBe(other.pid);
    const times = scene.server.requests.map(({ atMs }) => atMs);
    const gaps = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    expect(gaps.filter((gap) => gap < 1_000)).toHaveLength(1); // its first one
    await scene.time.pass(30_000);
    expect(scene.row.probes).toBeGreaterThan(probes + 20);
  });

  test("asks no earlier because somebody has written meanwhile", async () => {
    const scene = new ProbersScene(settingsOf({ periodMs: 3_000 }));
    scene.watching();
    await scene.time.pass(4_000);
    const caller = scene.run({ isCaller: true });
    for (let round = 0; round < 60; round += 1) {
      caller.circuit.tell({ kind: "call-failed", isTrial: false });
      caller.circuit.tell({ kind: "call-succeeded", isTrial: false });
      await scene.time.pass(370);
    }
    const times = scene.server.requests.map(({ atMs }) => atMs);
    const gaps = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(3_000);
  });
});

describe("others", () => {
  test("that call and fail are answered at once by the next good probe", async () => {
    const { scene } = await watching(5);
    const caller = scene.run({ isCaller: true });
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    caller.circuit.tell({ kind: "call-failed", isTrial: false });
    expect(scene.row.state).toMatchObject({ consecutiveFailures: 2 });
    await scene.time.pass(1_010);
    expect(scene.row.state).toMatchObject({ consecutiveFailures: 0 });
    expect(scene.row.probes).toBe(scene.count);
  });

  test("that open it are seen within a second, and nothing is asked", async () => {
    const { scene, run } = await watching(5);
    const caller = scene.run({ isCaller: true });
    for (let count = 0; count < 3; count += 1) {
      caller.circuit.tell({ kind: "call-failed", isTrial: false });
    }
    scene.random = () => 1;
    const { state } = scene.row;
    const before = scene.count;
    const waitMs = ("retryAt" in state ? state.retryAt : 0) - scene.time.nowMs - 1;
    await scene.time.pass(Math.min(waitMs, 1_000));
    expect(scene.count).toBe(before);
    await scene.time.pass(1_000);
    expect(run.told[0]).toMatchObject({ to: "open", isOurs: false });
  });

  test("that reset it have its counts begin anew, at once", async () => {
    const { scene, run } = await watching(5);
    const state = { kind: "closed", consecutiveFailures: 0, window: [] } as const;
    for (const settingsHash of [scene.row.settingsHash, null]) {
      const hash = run.circuit.look().settingsHash;
      scene.rows.put({ ...scene.row, settingsHash, state, probes: 0, goodProbes: 0 });
      const before = scene.count;
      await scene.time.pass(1_010);
      expect(scene.count - before).toBe(1);
      expect(run.circuit.look()).toMatchObject({ probes: 1, settingsHash: hash });
      if (settingsHash === null) expect(scene.row).toMatchObject({ probes: 1, settingsHash: hash });
      await scene.time.pass(15_000);
    }
  });

  test("that have lost the row get it again with the next probe", async () => {
    const { scene } = await watching(5);
    scene.rows.rows.clear();
    scene.rows.version += 1;
    await scene.time.pass(1_010);
    expect(scene.row.probes).toBe(scene.count);
  });

  test("that start go on by an answer that is as old as it may be, and ask nothing", async () => {
    const { scene, run } = await watching(1);
    for (let offset = 0; offset < 30; offset += 1) {
      await scene.time.pass(700);
      const next = scene.run();
      next.start();
      await scene.time.pass(0);
      expect(next.end?.kind).toBe("ready");
    }
    expect(new Set(scene.server.requests.map(({ by }) => by))).toEqual(new Set([run.pid]));
  });

  test("that start while it fails wait for what it finds", async () => {
    const { scene } = await watching(5);
    scene.server.isUp = false;
    await scene.time.pass(1_000);
    const next = scene.run();
    next.start();
    await scene.time.pass(500);
    expect(next.end).toBeUndefined();
  });

  test("do not take it for one that was stopped", async () => {
    const { scene, run } = await watching(1);
    scene.watching();
    await scene.time.pass(120_000);
    expect([scene.lock.takeovers, scene.lock.holder]).toEqual([0, run.pid]);
    run.suspend();
    await scene.time.pass(18_000);
    expect(scene.lock.takeovers).toBe(1);
  });
});
