/** A circuit during the run: who probes when, what is told, and who takes over. */
import { describe, expect, test } from "bun:test";
import { LONGEST_TRIAL_MS } from "../../../src/core/circuit-change.ts";
import { DEFAULT_PROBE_BACKOFF } from "../../../src/core/probe-settings.ts";
import type { FakeRun } from "../../support/probers-scene.ts";
import { at, ProbersScene, settingsOf } from "../../support/probers-scene.ts";

function changesOf(run: FakeRun): string[] {
  return run.told.map(({ to, isOurs }) => `${to}${isOurs ? "" : " by another"}`);
}

describe("a run that watches alone", () => {
  test("asks at once and then once a period, from question to question", async () => {
    const scene = new ProbersScene();
    scene.server.latencyMs = 700;
    scene.watching();
    await scene.time.pass(30_500);
    expect(scene.server.requests.map(({ atMs }) => atMs - 1_000_000)).toEqual([
      0, 10_000, 20_000, 30_000,
    ]);
    expect(scene.row).toMatchObject({ probes: 3, goodProbes: 3 });
  });

  test("waits for the first delay, and leaves the lock to others meanwhile", async () => {
    const scene = new ProbersScene(settingsOf({ initialDelayMs: 25_000 }));
    const run = scene.run();
    run.circuit.takeLock();
    run.watch();
    await scene.time.pass(24_990);
    expect([scene.count, scene.lock.holder]).toEqual([0, undefined]);
    await scene.time.pass(20);
    expect(scene.count).toBe(1);
  });

  test("opens at the third failure, tries by the backoff, closes, and tells each", async () => {
    const scene = new ProbersScene();
    const run = scene.watching();
    await scene.time.pass(5_000);
    scene.server.isUp = false;
    await scene.time.pass(25_200);
    expect(changesOf(run)).toEqual(["open"]);
    expect(run.told[0]?.transition?.because).toBe("consecutive-failures");
    const before = scene.count;
    await scene.time.pass(400);
    expect([changesOf(run), scene.count - before]).toEqual([["open", "half-open", "open"], 1]);
    scene.server.isUp = true;
    await scene.time.pass(1_100);
    expect(changesOf(run)).toEqual(["open", "half-open", "open", "half-open", "closed"]);
    expect(run.told.every(({ isOurs }) => isOurs)).toBe(true);
  });

  test("has one probe at a time, however long that takes", async () => {
    const scene = new ProbersScene();
    scene.server.latencyMs = 25_000;
    scene.watching();
    await scene.time.pass(74_000);
    expect(scene.count).toBe(3);
  });

  test("sends nothing where it is due and the row cannot be asked", async () => {
    const scene = new ProbersScene();
    scene.server.isUp = false;
    scene.watching();
    await scene.time.pass(20_100);
    expect(scene.row.state.kind).toBe("open");
    const before = scene.count;
    scene.rows.trouble = "busy";
    await scene.time.pass(4_000);
    expect(scene.count).toBe(before);
    scene.rows.trouble = "none";
    await scene.time.pass(1_100);
    expect(scene.count).toBeGreaterThan(before);
  });

  test("never opens at failures that are fewer in a row than the threshold", async () => {
    const scene = new ProbersScene(settingsOf({ periodMs: 1_000 }));
    const run = scene.watching();
    for (let round = 0; round < 50; round += 1) {
      scene.server.answers = ["refused", "refused", "good"];
      await scene.time.pass(3_000);
    }
    expect([run.told, scene.row.state.kind]).toEqual([[], "closed"]);
    expect(scene.count).toBeGreaterThan(140);
    scene.server.answers = ["refused", "refused", "refused"];
    await scene.time.pass(3_100);
    expect(changesOf(run)[0]).toBe("open");
  });

  test("is permanent at the bound, has one trial a cap's time, and comes back", async () => {
    const backoff = { ...DEFAULT_PROBE_BACKOFF, maxAttempts: 2 };
    const scene = new ProbersScene(settingsOf({ backoff }));
    scene.server.isUp = false;
    const run = scene.watching();
    await scene.time.pass(24_000);
    expect(changesOf(run).at(-1)).toBe("permanent");
    const before = scene.count;
    await scene.time.pass(27_000);
    expect(scene.count).toBe(before);
    scene.server.isUp = true;
    await scene.time.pass(1_000);
    expect([scene.count - before, changesOf(run).at(-1)]).toEqual([1, "closed"]);
  });

  test("takes trouble of its own for no answer, tells each kind once, and asks again", async () => {
    const scene = new ProbersScene();
    scene.server.answers = ["unusable-settings", "unusable-settings", "worker-lost"];
    const run = scene.watching();
    await scene.time.pass(35_000);
    expect(run.troubles.map(({ because }) => because)).toEqual([
      "unusable-settings",
      "worker-lost",
    ]);
    expect([run.told, scene.count, scene.row.probes]).toEqual([[], 4, 1]);
  });

  test("with trouble in a trial leaves that to another one", async () => {
    const scene = new ProbersScene();
    scene.server.isUp = false;
    const [first, second] = [scene.watching(), scene.watching()];
    await scene.time.pass(20_100);
    scene.server.answers = ["unusable-settings"];
    scene.server.isUp = true;
    await scene.time.pass(2_500);
    expect(scene.row.state.kind).toBe("closed");
    expect(scene.server.requests.slice(-2).map(({ by }) => by)).toEqual([first.pid, second.pid]);
  });

  test("counts a probe that fails by itself as trouble of its own", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    scene.server.onRequest = () => {
      throw new Error("no room");
    };
    run.watch();
    await scene.time.pass(100);
    expect(run.troubles).toMatchObject([{ because: "worker-lost" }]);
    expect(scene.lock.holder).toBeUndefined();
  });

  test("is told nothing after its end, and leaves no timer and no request", async () => {
    for (const isUp of [true, false]) {
      const scene = new ProbersScene(settingsOf({ failureThreshold: 1 }));
      scene.server.isUp = isUp;
      const run = scene.watching();
      await scene.time.pass(2);
      run.stop();
      expect(scene.server.open.size).toBe(0);
      await scene.time.pass(100_000);
      expect([run.told, run.troubles, scene.time.timerCount, scene.server.open.size]).toEqual([
        [],
        [],
        0,
        0,
      ]);
      expect([scene.count, scene.lock.holder]).toEqual([1, undefined]);
    }
  });

  test("that ends in a trial lets the next one try at once", async () => {
    const scene = new ProbersScene(settingsOf({ failureThreshold: 1 }));
    scene.server.isUp = false;
    const run = scene.watching();
    await scene.time.pass(507);
    expect(scene.row.trialBy?.pid).toBe(run.pid);
    run.stop();
    expect(scene.row).toMatchObject({ trialBy: null, state: { isTrialOut: false } });
    const next = scene.run();
    next.start();
    await scene.time.pass(6);
    expect(next.end).toMatchObject({ kind: "failed", because: "trial-failed" });
  });

  test("waits for no instant that is of another clock", async () => {
    const scene = new ProbersScene();
    const run = scene.run();
    const later = at(scene.time.nowMs + 1e9);
    scene.rows.put({ ...scene.row, lastProbe: { ...NOTE, at: later } });
    run.watch();
    await scene.time.pass(10);
    expect(scene.count).toBe(1);
  });
});

const NOTE = { because: "good", detail: "", at: at(0), wallAt: 0 as never } as const;

describe("runs that share a circuit", () => {
  test("ask as often as one, and each is told of each change", async () => {
    const scene = new ProbersScene();
    for (let index = 0; index < 50; index += 1) scene.watching();
    await scene.time.pass(60_000);
    expect(scene.count).toBe(7);
    scene.server.isUp = false;
    await scene.time.pass(31_100);
    expect(changesOf(scene.runs[0] as FakeRun)).toEqual(["open", "half-open", "open"]);
    for (const run of scene.runs.slice(1)) {
      expect(changesOf(run)).toEqual(["open by another"]);
    }
  });

  test("tell one that comes while it is open", async () => {
    const scene = new ProbersScene();
    scene.server.isUp = false;
    scene.watching();
    await scene.time.pass(20_100);
    expect(changesOf(scene.watching())).toEqual(["open by another"]);
  });

  test("are asked for by exactly one other when the one that probes is killed", async () => {
    const scene = new ProbersScene();
    for (let index = 0; index < 10; index += 1) scene.watching();
    await scene.time.pass(12_000);
    const first = scene.runs[0] as FakeRun;
    expect(scene.lock.holder).toBe(first.pid);
    first.kill();
    await scene.time.pass(60_000);
    const others = scene.server.requests.filter(({ by }) => by !== first.pid);
    expect(new Set(others.map(({ by }) => by)).size).toBe(1);
    const times = others.map(({ atMs }) => atMs - 1_000_000);
    expect(times).toEqual([20_000, 30_000, 40_000, 50_000, 60_000, 70_000]);
  });

  test("make the trial again that the killed one had out, and no other too early", async () => {
    const scene = new ProbersScene(settingsOf({ failureThreshold: 1 }));
    scene.server.isUp = false;
    const [first] = [scene.watching(), scene.watching(), scene.watching()];
    await scene.time.pass(507);
    expect(scene.row.trialBy?.pid).toBe(first?.pid);
    first?.kill();
    scene.server.isUp = true;
    await scene.time.pass(1_100);
    expect([scene.row.state.kind, scene.count]).toEqual(["closed", 3]);
  });

  test("stop asking when somebody resets it: they go on as for one that never failed", async () => {
    const scene = new ProbersScene(settingsOf({ backoff: SLOW }));
    scene.server.isUp = false;
    const [prober, other] = [scene.watching(), scene.watching()];
    await scene.time.pass(21_100);
    const { row } = scene;
    const state = { kind: "closed", consecutiveFailures: 0, window: [] } as const;
    for (const settingsHash of [row.settingsHash, null]) {
      scene.rows.put({ ...row, settingsHash, state, probes: 0, goodProbes: 0 });
      await scene.time.pass(1_000);
      expect([changesOf(prober), changesOf(other)]).toEqual([
        ["open", "closed by another"],
        ["open by another", "closed by another"],
      ]);
    }
    const before = scene.count;
    await scene.time.pass(15_000);
    expect(scene.count - before).toBeGreaterThan(0);
    expect([scene.row.settingsHash, scene.row.probes]).toEqual([
      row.settingsHash,
      scene.count - before,
    ]);
  });

  test("make no trial while a call has it, and one when the caller is dead or late", async () => {
    for (const how of ["dead", "late"] as const) {
      const scene = new ProbersScene();
      scene.server.isUp = false;
      const [prober, caller] = [scene.watching(), scene.run({ isCaller: true })];
      await scene.time.pass(20_100);
      prober.stop();
      await scene.time.pass(1_000);
      expect(caller.circuit.tell({ kind: "due" }).isTrial).toBe(true);
      prober.watch();
      const before = scene.count;
      await scene.time.pass(300_000);
      expect(scene.count).toBe(before);
      if (how === "dead") caller.kill();
      else await scene.time.pass(LONGEST_TRIAL_MS - 300_000);
      scene.server.isUp = true;
      await scene.time.pass(1_100);
      expect([scene.count, scene.row.state.kind]).toEqual([before + 1, "closed"]);
    }
  });

  test("are protected by the failures of calls, without a probe of their own", async () => {
    const scene = new ProbersScene();
    const [run, caller] = [scene.watching(), scene.run({ isCaller: true })];
    await scene.time.pass(1_000);
    for (let count = 0; count < 3; count += 1) {
      expect(caller.circuit.tell({ kind: "due" }).decision.isAdmitted).toBe(true);
      caller.circuit.tell({ kind: "call-failed", isTrial: false });
    }
    expect(caller.circuit.tell({ kind: "due" }).decision.isAdmitted).toBe(false);
    const { state } = scene.row;
    await scene.time.pass(1_000);
    expect(changesOf(run)[0]).toBe("open by another");
    const [, trial] = scene.server.requests;
    expect(trial?.atMs).toBeGreaterThanOrEqual("retryAt" in state ? state.retryAt : Infinity);
  });
});

const SLOW = { ...DEFAULT_PROBE_BACKOFF, initialMs: 30_000 };

describe("a lock that cannot be had", () => {
  test("for an error of the system makes it probe on its own, told once", async () => {
    const scene = new ProbersScene();
    scene.lock.trouble = "EACCES";
    const run = scene.watching();
    await scene.time.pass(25_000);
    expect([scene.count, run.reasons]).toEqual([3, ["EACCES"]]);
  });
});

describe("a prober that is stopped, and lives", () => {
  /** Of the defaults: a period, a limit and SILENCE_MS, with a look of the other. */
  const SILENT_MS = 10_000 + 1_000 + 5_000 + 1_000;

  function three(scene: ProbersScene): readonly [FakeRun, FakeRun, FakeRun] {
    return [scene.watching(), scene.watching(), scene.watching()];
  }

  test("is followed by one other, who finds what it would have found", async () => {
    const scene = new ProbersScene();
    const [first, second, third] = three(scene);
    await scene.time.pass(5_000);
    first.suspend();
    scene.server.isUp = false;
    const before = scene.count;
    await scene.time.pass(SILENT_MS);
    expect([scene.count - before, scene.lock.takeovers]).toEqual([1, 1]);
    await scene.time.pass(20_000);
    expect(scene.lock.takeovers).toBe(1);
    expect([changesOf(second), changesOf(third)].map(([first]) => first?.slice(0, 4))).toEqual([
      "open",
      "open",
    ]);
    expect(new Set(scene.server.requests.slice(before).map(({ by }) => by)).size).toBe(1);
  });

  test("finds when it goes on that another one probes, and hears what has become", async () => {
    const scene = new ProbersScene();
    const [first] = three(scene);
    await scene.time.pass(5_000);
    first.suspend();
    await scene.time.pass(60_000);
    first.goOn();
    const before = scene.count;
    scene.server.isUp = false;
    await scene.time.pass(31_000);
    expect(changesOf(first)[0]).toBe("open by another");
    expect(scene.server.requests.slice(before).filter(({ by }) => by === first.pid)).toEqual([]);
  });

  test("leaves nobody waiting where the circuit is open, nor with its trial", async () => {
    for (const hasTrial of [false, true]) {
      const scene = new ProbersScene();
      const [first, second] = three(scene);
      scene.server.isUp = false;
      await scene.time.pass(30_010);
      expect(scene.row.state.kind).toBe("open");
      if (hasTrial) scene.server.onRequest = () => first.suspend();
      else first.suspend();
      await scene.time.pass(600);
      expect(scene.row.state.kind).toBe(hasTrial ? "half-open" : "open");
      scene.server.onRequest = () => undefined;
      scene.server.isUp = true;
      await scene.time.pass(SILENT_MS);
      expect(scene.row.state.kind).toBe("closed");
      expect(changesOf(second).at(-1)).toStartWith("closed");
    }
  });

  test("is told from one that has nothing to say: at its start, beside a trial", async () => {
    const scene = new ProbersScene();
    scene.server.isUp = false;
    scene.random = () => 0.99;
    const starts = [scene.run(), scene.run()];
    for (const run of starts) run.start();
    await scene.time.pass(59_000);
    expect(scene.lock.takeovers).toBe(0);

    const other = new ProbersScene();
    three(other);
    const caller = other.run({ isCaller: true });
    other.server.isUp = false;
    await other.time.pass(30_010);
    other.runs[0]?.suspend();
    await other.time.pass(1_000);
    expect(caller.circuit.tell({ kind: "due" })).toMatchObject({ isTrial: true });
    await other.time.pass(60_000);
    expect([other.lock.takeovers, other.row.state.kind]).toEqual([0, "half-open"]);
  });
});
