/** Starts that wait in their backoff, beside a job that is watched: whose the lock is then. */
import { describe, expect, test } from "bun:test";
import { DEFAULT_PROBE_BACKOFF, type ProbeSettings } from "../../../src/core/probe-settings.ts";
import { ProbersScene, settingsOf } from "../../support/probers-scene.ts";

describe("starts in a long backoff beside a job that runs", () => {
  const HOUR_MS = 3_600_000;
  const LONG = {
    ...DEFAULT_PROBE_BACKOFF,
    initialMs: HOUR_MS,
    capMs: HOUR_MS,
    maxElapsedMs: 10 * HOUR_MS,
  };

  /** Down, one of the starts has the lock and waits, and the others for that one. */
  async function waiting(changes: Partial<ProbeSettings> = {}): Promise<ProbersScene> {
    const startupWaitMs = 10 * HOUR_MS;
    const scene = new ProbersScene(settingsOf({ backoff: LONG, startupWaitMs, ...changes }));
    scene.server.isUp = false;
    for (let index = 0; index < 5; index += 1) scene.run().start();
    await scene.time.pass(2_000);
    expect([scene.count, scene.lock.holder]).toEqual([1, scene.runs[0]?.pid]);
    return scene;
  }

  test("leave it the lock within one look of each, and it hears what is to be heard", async () => {
    const scene = await waiting();
    const job = scene.watching();
    expect(scene.wanted.holder).toBe(job.pid);
    await scene.time.pass(2_000);
    expect([scene.lock.holder, scene.wanted.holder]).toEqual([job.pid, undefined]);
    await scene.time.pass(28_000);
    expect(job.told.map(({ to, isOurs }) => [to, isOurs])).toEqual([["open", true]]);
    expect(scene.server.requests.slice(1).map(({ by }) => by)).toEqual(Array(3).fill(job.pid));
    expect(scene.runs.slice(0, 5).map(({ end }) => end?.kind)).toEqual(Array(5).fill("failed"));
  });

  test("go on by its good answer, long before they would have asked", async () => {
    const scene = await waiting();
    const job = scene.watching();
    await scene.time.pass(2_000);
    scene.server.isUp = true;
    await scene.time.pass(12_000);
    expect(scene.runs.slice(0, 5).map(({ end }) => end?.kind)).toEqual(Array(5).fill("ready"));
    expect(scene.server.requests.slice(1).every(({ by }) => by === job.pid)).toBe(true);
  });

  test("keep the lock from one another where nobody watches, or does so any more", async () => {
    const scene = await waiting({ failureThreshold: 1_000 });
    const [holder] = scene.runs;
    await scene.time.pass(20_000);
    expect(scene.lock.holder).toBe(holder?.pid);
    const job = scene.watching();
    await scene.time.pass(15_000);
    const asked = scene.count;
    job.stop();
    await scene.time.pass(2_000);
    expect([scene.wanted.holder, scene.count]).toEqual([undefined, asked]);
    const next = scene.lock.holder;
    await scene.time.pass(60_000);
    expect([scene.lock.holder, scene.count]).toEqual([next, asked]);
    expect(scene.runs.slice(0, 5).map(({ pid }) => pid)).toContain(next ?? 0);
  });

  test("are kept for long by no watch that is stopped, and ask no more for that", async () => {
    const backoff = { ...LONG, initialMs: 20_000, capMs: 20_000, maxAttempts: 1_000 };
    const scene = await waiting({ backoff, failureThreshold: 1_000 });
    const job = scene.watching();
    job.suspend(); // it wants the lock, and never takes it
    expect(scene.wanted.holder).toBe(job.pid);
    const before = scene.count;
    await scene.time.pass(13_900);
    expect([scene.count - before, scene.lock.holder]).toEqual([0, undefined]);
    await scene.time.pass(3_000);
    expect(scene.count - before).toBe(1);
    await scene.time.pass(160_000);
    expect(scene.count - before).toBeGreaterThanOrEqual(8);
    expect(scene.count - before).toBeLessThanOrEqual(11);
    job.goOn();
    await scene.time.pass(3_000);
    expect(scene.lock.holder).toBe(job.pid);
  });
});
