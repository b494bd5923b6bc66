/** Starts that wait for a dependency, alone and beside many others. */
import { describe, expect, test } from "bun:test";
import { DEFAULT_PROBE_BACKOFF } from "../../../src/core/probe-settings.ts";
import { FakeTime, ProbersScene, settingsOf } from "../../support/probers-scene.ts";

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** So many starts at the same time on a dependency that is down, and how often it was asked. */
async function askDown(runs: number, maxAttempts: number, gapMs = 0): Promise<number> {
  const backoff = { ...DEFAULT_PROBE_BACKOFF, maxAttempts };
  const scene = new ProbersScene(settingsOf({ backoff }));
  scene.random = seeded(7);
  scene.server.isUp = false;
  for (let index = 0; index < runs; index += 1) {
    scene.run().start();
    await scene.time.pass(gapMs);
  }
  await scene.time.pass(400_000);
  expect(scene.runs.map(({ end }) => end?.kind)).toEqual(Array(runs).fill("failed"));
  expect(scene.lock.holder).toBeUndefined();
  expect(scene.time.timerCount).toBe(0);
  return scene.count;
}

describe("a start alone", () => {
  test("goes on at the first good answer, and keeps the lock while that is fresh", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    run.start();
    await scene.time.pass(10);
    expect([run.end?.kind, scene.count, scene.row.goodProbes]).toEqual(["ready", 1, 1]);
    expect(scene.lock.holder).toBe(run.pid);
    await scene.time.pass(9_900);
    expect(scene.lock.holder).toBe(run.pid);
    await scene.time.pass(200);
    expect(scene.lock.holder).toBeUndefined();
    expect(scene.time.timerCount).toBe(0);
  });

  test("keeps it for good once its job is watched", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    run.start();
    await scene.time.pass(10);
    run.watch();
    await scene.time.pass(60_000);
    expect(scene.lock.holder).toBe(run.pid);
    expect(scene.count).toBe(7); // the one of the start counts for the first period
  });

  test("gives it to others where its own probes are to begin later", async () => {
    const scene = new ProbersScene(settingsOf({ initialDelayMs: 60_000 }));
    const run = scene.run();
    run.start();
    await scene.time.pass(10);
    expect([run.end?.kind, scene.lock.holder]).toEqual(["ready", undefined]);
  });

  test("asks as often as it may, waits in between, and then gives up", async () => {
    const backoff = { ...DEFAULT_PROBE_BACKOFF, maxAttempts: 6 };
    const scene = new ProbersScene(settingsOf({ backoff }));
    scene.server.isUp = false;
    const run = scene.run();
    run.start();
    await scene.time.pass(60_000);
    expect(run.end).toMatchObject({ kind: "failed", because: "max-attempts" });
    expect(run.end).toMatchObject({ last: { because: "refused", detail: "it is refused" } });
    const times = scene.server.requests.map(({ atMs }) => atMs);
    const gaps = times.slice(1).map((atMs, index) => Math.round(atMs - (times[index] ?? 0)));
    expect(gaps).toEqual([505, 1_005, 2_005, 4_005, 8_005]);
  });

  test("gives up when its time is over, with one attempt however short that is", async () => {
    for (const [startupWaitMs, requests] of [
      [20_000, 7],
      [0, 1],
    ] as const) {
      const scene = new ProbersScene(settingsOf({ startupWaitMs }));
      scene.server.isUp = false;
      const run = scene.run();
      run.start();
      await scene.time.pass(startupWaitMs + 10);
      expect(run.end).toMatchObject({ kind: "failed", because: "startup-wait" });
      expect(scene.count).toBe(requests);
    }
  });

  test("names the total time of the backoff where that is shorter", async () => {
    const backoff = { ...DEFAULT_PROBE_BACKOFF, maxElapsedMs: 3_000 };
    const scene = new ProbersScene(settingsOf({ backoff }));
    scene.server.isUp = false;
    const run = scene.run();
    run.start();
    await scene.time.pass(4_000);
    expect(run.end).toMatchObject({ kind: "failed", because: "max-elapsed" });
  });

  test("never opens the circuit, however often it fails", async () => {
    const scene = new ProbersScene();
    scene.server.isUp = false;
    scene.run().start();
    await scene.time.pass(60_010);
    expect(scene.row.probes).toBeGreaterThan(3);
    expect(scene.row.state).toEqual({ kind: "closed", consecutiveFailures: 0, window: [] });
  });

  test("ends at a signal, also in the middle of a probe", async () => {
    for (const afterMs of [2, 300]) {
      const scene = new ProbersScene();
      scene.server.isUp = false;
      const abort = new AbortController();
      const run = scene.run();
      run.start(abort.signal);
      await scene.time.pass(afterMs);
      abort.abort();
      await scene.time.pass(0);
      expect([run.end, scene.lock.holder, scene.time.timerCount, scene.server.open.size]).toEqual([
        { kind: "stopped" },
        undefined,
        0,
        0,
      ]);
    }
  });

  test("asks no earlier for timers that come early", async () => {
    const scene = new ProbersScene(settingsOf(), new FakeTime(3));
    scene.server.isUp = false;
    scene.run().start();
    await scene.time.pass(501);
    expect(scene.count).toBe(1);
    await scene.time.pass(10);
    expect(scene.count).toBe(2);
  });
});

test("whoever gets the lock has seen what the one before noted right before", async () => {
  const backoff = { ...DEFAULT_PROBE_BACKOFF, maxAttempts: 2 };
  const scene = new ProbersScene(settingsOf({ backoff }));
  const run = scene.run();
  scene.lock.holder = 1;
  run.start();
  await scene.time.pass(1_500);
  scene.lock.onTry = () => {
    scene.lock.onTry = () => undefined;
    scene.rows.put({ ...scene.row, probes: 2 });
    scene.lock.holder = undefined;
  };
  await scene.time.pass(1_000);
  expect(run.end).toMatchObject({ kind: "failed", because: "max-attempts" });
  expect(scene.count).toBe(0);
});

test("a lock that is kept for longer than a timer can wait is kept", async () => {
  const scene = new ProbersScene(settingsOf({ periodMs: 60_000 }));
  const run = scene.run();
  run.start();
  await scene.time.pass(45_000);
  expect(scene.lock.holder).toBe(run.pid);
  await scene.time.pass(16_000);
  expect(scene.lock.holder).toBeUndefined();
});

describe("trouble of our own", () => {
  test("counts as an attempt, never as an answer, and gives the lock to another", async () => {
    const backoff = { ...DEFAULT_PROBE_BACKOFF, maxAttempts: 3 };
    const scene = new ProbersScene(settingsOf({ backoff }));
    scene.server.answers = ["unusable-settings", "worker-lost", "command-not-started"];
    const run = scene.run();
    run.start();
    await scene.time.pass(7);
    expect(scene.lock.holder).toBeUndefined();
    await scene.time.pass(30_000);
    expect(run.end).toMatchObject({ kind: "failed", because: "max-attempts" });
    expect(run.end).toMatchObject({ last: { because: "command-not-started" } });
    expect([scene.count, scene.row.probes]).toEqual([3, 0]);
  });

  test("of one start does not keep the next from asking", async () => {
    const scene = new ProbersScene();
    scene.server.answers = ["unusable-settings"];
    const [troubled, next] = [scene.run(), scene.run()];
    troubled.start();
    next.start();
    await scene.time.pass(3_000);
    expect(scene.server.requests.map(({ by }) => by)).toEqual([troubled.pid, expect.any(Number)]);
    expect([troubled.end?.kind, next.end?.kind]).toEqual(["ready", "ready"]);
  });
});

describe("50 starts together", () => {
  test("ask a dependency that is down as often as one, bounded by the attempts", async () => {
    const alone = await askDown(1, 6);
    expect(alone).toBe(6);
    expect(await askDown(50, 6)).toBeLessThanOrEqual(1.2 * alone);
  });

  test("and with the time as the bound", async () => {
    const alone = await askDown(1, 20);
    expect(alone).toBeGreaterThan(3);
    expect(await askDown(50, 20)).toBeLessThanOrEqual(1.2 * alone);
  });

  test("all go on at one good answer", async () => {
    const scene = new ProbersScene();
    scene.random = seeded(3);
    scene.server.isUp = false;
    for (let index = 0; index < 50; index += 1) scene.run().start();
    await scene.time.pass(10_000);
    const before = scene.count;
    scene.server.isUp = true;
    await scene.time.pass(20_000);
    expect(scene.runs.map(({ end }) => end?.kind)).toEqual(Array(50).fill("ready"));
    expect(scene.count - before).toBe(1);
  });

  test("those that come one after the other share the answer of the first", async () => {
    const scene = new ProbersScene();
    for (let index = 0; index < 50; index += 1) {
      scene.run().start();
      await scene.time.pass(100);
    }
    expect(scene.runs.map(({ end }) => end?.kind)).toEqual(Array(50).fill("ready"));
    expect(scene.count).toBe(1);
  });

  test("do not go on asking where the one that asks is killed, but for one other", async () => {
    const scene = new ProbersScene();
    scene.server.isUp = false;
    for (let index = 0; index < 50; index += 1) scene.run().start();
    await scene.time.pass(5_000);
    const first = scene.runs.find(({ pid }) => pid === scene.lock.holder);
    first?.kill();
    await scene.time.pass(30_000);
    const others = scene.server.requests.filter(({ by }) => by !== first?.pid);
    expect(others.length).toBeGreaterThan(0);
    expect(new Set(others.map(({ by }) => by)).size).toBe(1);
  });

  test("each ask alone where there is nothing to share by: the negative twin", async () => {
    const scene = new ProbersScene(
      settingsOf({ backoff: { ...DEFAULT_PROBE_BACKOFF, maxAttempts: 6 } }),
    );
    scene.hasStore = false;
    scene.server.isUp = false;
    for (let index = 0; index < 50; index += 1) scene.run().start();
    await scene.time.pass(400_000);
    expect(scene.count).toBe(300);
    expect(scene.runs.every(({ reasons }) => reasons.length === 1)).toBe(true);
  });
});

describe("a start beside one that probes", () => {
  test("goes on by its fresh good answer and asks nothing itself", async () => {
    const scene = new ProbersScene();
    scene.watching();
    await scene.time.pass(19_000);
    const before = scene.count;
    const run = scene.run();
    run.start();
    await scene.time.pass(0);
    expect([run.end?.kind, scene.count]).toEqual(["ready", before]);
  });

  test("does not go on by an answer that is too old, or followed by a bad one", async () => {
    const scene = new ProbersScene();
    const first = scene.watching();
    await scene.time.pass(9_000);
    scene.server.isUp = false;
    await scene.time.pass(2_000);
    expect(scene.row.lastProbe?.because).toBe("refused");
    const run = scene.run();
    run.start();
    await scene.time.pass(500);
    expect(run.end).toBeUndefined();
    scene.server.isUp = true;
    await scene.time.pass(10_000);
    expect([run.end?.kind, scene.server.requests.every(({ by }) => by === first.pid)]).toEqual([
      "ready",
      true,
    ]);
  });

  test("asks itself where the same answer is nobody's any more", async () => {
    const scene = new ProbersScene();
    scene.watching().kill();
    await scene.time.pass(100);
    const before = scene.count;
    const run = scene.run();
    run.start();
    await scene.time.pass(10);
    expect([run.end?.kind, scene.count]).toEqual(["ready", before + 1]);
  });
});

describe("a start while the circuit is open", () => {
  async function opened(scene: ProbersScene): Promise<void> {
    scene.server.isUp = false;
    const run = scene.watching();
    await scene.time.pass(20_010);
    expect(scene.row.state.kind).toBe("open");
    run.kill();
  }

  test("fails at once without a request", async () => {
    const scene = new ProbersScene();
    await opened(scene);
    const before = scene.count;
    const run = scene.run();
    run.start();
    await scene.time.pass(0);
    expect(run.end).toMatchObject({ kind: "failed", because: "circuit-open" });
    expect([scene.count, scene.lock.holder]).toEqual([before, undefined]);
  });

  test("makes one trial where it is due, and fails with it", async () => {
    const scene = new ProbersScene();
    await opened(scene);
    scene.random = () => 0; // the wait that follows is over at once: it is no second trial
    await scene.time.pass(1_000);
    const before = scene.count;
    const run = scene.run();
    run.start();
    await scene.time.pass(100);
    expect(run.end).toMatchObject({ kind: "failed", because: "trial-failed" });
    expect([scene.count - before, scene.row.state.kind]).toEqual([1, "open"]);
  });

  test("goes on where the trial is good", async () => {
    const scene = new ProbersScene();
    await opened(scene);
    scene.server.isUp = true;
    await scene.time.pass(1_000);
    const run = scene.run();
    run.start();
    await scene.time.pass(100);
    expect([run.end?.kind, scene.row.state.kind, scene.row.trialBy]).toEqual([
      "ready",
      "closed",
      null,
    ]);
  });

  test("makes as many trials as the threshold asks for, a period apart", async () => {
    const scene = new ProbersScene(settingsOf({ successThreshold: 3 }));
    await opened(scene);
    scene.server.isUp = true;
    await scene.time.pass(1_000);
    const before = scene.count;
    const run = scene.run();
    run.start();
    await scene.time.pass(15_000);
    expect([run.end, scene.count - before]).toEqual([undefined, 2]);
    await scene.time.pass(6_000);
    expect([run.end?.kind, scene.count - before]).toEqual(["ready", 3]);
  });

  test("with many others makes one trial together", async () => {
    for (const isUp of [true, false]) {
      const scene = new ProbersScene();
      await opened(scene);
      scene.server.isUp = isUp;
      await scene.time.pass(1_000);
      const before = scene.count;
      for (let index = 0; index < 50; index += 1) scene.run().start();
      await scene.time.pass(2_000);
      expect(scene.count - before).toBe(1);
      const ends = scene.runs.slice(1).map(({ end }) => end?.kind);
      expect(ends).toEqual(Array(50).fill(isUp ? "ready" : "failed"));
    }
  });

  test("that is permanent tries once when a cap's time is over, and not before", async () => {
    const backoff = { ...DEFAULT_PROBE_BACKOFF, maxAttempts: 1 };
    const scene = new ProbersScene(settingsOf({ backoff }));
    await opened(scene);
    const trial = scene.watching();
    await scene.time.pass(2_000);
    expect(scene.row.state.kind).toBe("permanent");
    trial.kill();
    const early = scene.run();
    const before = scene.count;
    early.start();
    await scene.time.pass(30_000);
    expect([early.end?.kind, scene.count]).toEqual(["failed", before]);
    const late = scene.run();
    late.start();
    await scene.time.pass(30_000);
    expect(late.end).toMatchObject({ kind: "failed", because: "trial-failed" });
    expect([scene.count, scene.row.state.kind]).toEqual([before + 1, "permanent"]);
  });
});
