/** A run's own question whether a dependency wants work. */
import { describe, expect, test } from "bun:test";
import { ReadinessWatch } from "../../../src/circuit/readiness.ts";
import type { ProbeResult } from "../../../src/core/probe-result.ts";
import type { ProbeSettings } from "../../../src/core/probe-settings.ts";
import type { WallAt } from "../../../src/core/time.ts";
import { at, FakeServer, FakeTime, settingsOf } from "../../support/probers-scene.ts";

function ready(changes: Partial<ProbeSettings> = {}) {
  const time = new FakeTime();
  const server = new FakeServer(time);
  const told: (readonly [boolean, string])[] = [];
  const troubles: ProbeResult[] = [];
  const watch = new ReadinessWatch({
    settings: settingsOf({ role: "readiness", ...changes }),
    probe: (signal) => server.ask(1, signal),
    wake: time.wake,
    now: () => at(time.nowMs),
    wall: () => time.nowMs as WallAt,
    startedAt: at(time.nowMs),
    onChange: (isReady, { because }) => void told.push([isReady, because]),
    onTrouble: (result) => void troubles.push(result),
  });
  watch.begin();
  return { time, server, told, troubles, watch };
}

describe("a readiness", () => {
  test("is asked once a period after the first delay, and tells nothing that is good", async () => {
    const { time, server, told } = ready({ initialDelayMs: 5_000 });
    await time.pass(35_010);
    expect(server.requests.map(({ atMs }) => atMs - 1_000_000)).toEqual([
      5_000, 15_000, 25_000, 35_000,
    ]);
    expect(told).toEqual([]);
  });

  test("is told when it is lost and when it is back, by the thresholds", async () => {
    const { time, server, told, watch } = ready({ successThreshold: 2 });
    server.isUp = false;
    await time.pass(29_000);
    expect(told).toEqual([]);
    await time.pass(2_000);
    expect([told, watch.isReady]).toEqual([[[false, "refused"]], false]);
    server.isUp = true;
    await time.pass(10_000);
    expect(told).toHaveLength(1);
    await time.pass(10_000);
    expect([told[1], watch.isReady]).toEqual([[true, "good"], true]);
  });

  test("has no backoff: it is asked as often while it is away", async () => {
    const { time, server } = ready();
    server.isUp = false;
    await time.pass(600_010);
    expect(server.requests).toHaveLength(61);
  });

  test("is not lost by trouble of our own", async () => {
    const { time, server, told, troubles } = ready({ failureThreshold: 1 });
    server.answers = ["worker-lost", "worker-lost", "unusable-settings"];
    await time.pass(40_000);
    expect(told).toEqual([]);
    expect(troubles.map(({ because }) => because)).toEqual(["worker-lost", "unusable-settings"]);
  });

  test("is heard of no more after the end, and its probe is aborted", async () => {
    const { time, server, told, troubles, watch } = ready({ failureThreshold: 1 });
    server.isUp = false;
    await time.pass(2);
    watch.end();
    expect(server.open.size).toBe(0);
    await time.pass(100_000);
    expect([told, troubles, time.timerCount, server.requests.length]).toEqual([[], [], 0, 1]);
  });
});
