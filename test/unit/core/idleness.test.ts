/**
 * When a tree counts as idle, sample by sample, and against a slow reading of the same sentence.
 */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  type ActivitySample,
  decideIdleness,
  dropOldSamples,
  type IdlePolicy,
} from "../../../src/core/idleness.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";

const POLICY: IdlePolicy = { spanMs: 60_000, cpuPercent: 1, ioBytesPerMinute: 65_536 };
const at = (ms: number): MonotonicAt => ms as MonotonicAt;

function sample(ms: number, cpuMs = 0, ioBytes = 0): ActivitySample {
  return { at: at(ms), cpuMs, ioBytes };
}

describe("a tree", () => {
  test("is active while it is younger than the span", () => {
    const young = { kind: "active", because: "young" } as const;
    expect(decideIdleness([], undefined, POLICY)).toEqual(young);
    expect(decideIdleness([sample(0)], undefined, POLICY)).toEqual(young);
    expect(decideIdleness([sample(0), sample(59_999)], undefined, POLICY)).toEqual(young);
  });

  test("is idle after a whole span of nothing", () => {
    const idle = { kind: "idle", cpuMs: 0, ioBytes: 0 } as const;
    expect(decideIdleness([sample(0), sample(60_000)], undefined, POLICY)).toEqual(idle);
    expect(decideIdleness([sample(0), sample(60_000)], at(0), POLICY)).toEqual(idle);
  });

  test("is active for a span after its last output", () => {
    const samples = [sample(0), sample(60_000), sample(90_000)];
    const output = { kind: "active", because: "output" } as const;
    expect(decideIdleness(samples, at(30_001), POLICY)).toEqual(output);
    expect(decideIdleness(samples, at(30_000), POLICY).kind).toBe("idle");
  });

  test("is idle while it only spins at 0.2 % of a core, and active at 1 %", () => {
    const spinning = [sample(0), sample(60_000, 120)];
    expect(decideIdleness(spinning, undefined, POLICY)).toEqual({
      kind: "idle",
      cpuMs: 120,
      ioBytes: 0,
    });
    const computing = [sample(0), sample(60_000, 600)];
    expect(decideIdleness(computing, undefined, POLICY)).toEqual({
      kind: "active",
      because: "cpu",
    });
    expect(decideIdleness([sample(0), sample(60_000, 599)], undefined, POLICY).kind).toBe("idle");
  });

  test("is active when it moves enough bytes", () => {
    const moving = (bytes: number) => [sample(0), sample(60_000, 0, bytes)];
    expect(decideIdleness(moving(65_536), undefined, POLICY)).toEqual({
      kind: "active",
      because: "io",
    });
    expect(decideIdleness(moving(65_535), undefined, POLICY).kind).toBe("idle");
  });

  test("is judged over the youngest span alone: work before it does not count", () => {
    const samples = [sample(0), sample(10_000, 5_000), sample(70_000, 5_000)];
    expect(decideIdleness(samples, undefined, POLICY).kind).toBe("idle");
  });
});

/** What the sentence says, word by word. */
function isIdleSlowly(
  samples: readonly ActivitySample[],
  lastOutputAt: number | undefined,
  policy: IdlePolicy,
): boolean {
  const now = samples[samples.length - 1];
  if (now === undefined) return false;
  const old = samples.filter((each) => now.at - each.at >= policy.spanMs);
  if (old.length === 0) return false;
  const from = old.reduce((youngest, each) => (each.at >= youngest.at ? each : youngest));
  if (lastOutputAt !== undefined && now.at - lastOutputAt < policy.spanMs) return false;
  const seconds = (now.at - from.at) / 1_000;
  const percent = (now.cpuMs - from.cpuMs) / 10 / seconds;
  const perMinute = ((now.ioBytes - from.ioBytes) / seconds) * 60;
  return percent < policy.cpuPercent && perMinute < policy.ioBytesPerMinute;
}

const growing = fc
  .array(fc.tuple(fc.nat(30_000), fc.nat(400), fc.nat(50_000)), { minLength: 1, maxLength: 20 })
  .map((steps) => {
    let last = sample(1, 0, 0);
    return steps.map(([ms, cpuMs, ioBytes]) => {
      last = sample(last.at + ms + 1, last.cpuMs + cpuMs, last.ioBytes + ioBytes);
      return last;
    });
  });
const outputs = fc.option(fc.nat(300_000), { nil: undefined });

test("any samples are judged as the sentence says", () => {
  const counts = { idle: 0, active: 0 };
  fc.assert(
    fc.property(growing, outputs, (samples, outputAt) => {
      const last = outputAt === undefined ? undefined : at(outputAt);
      const { kind } = decideIdleness(samples, last, POLICY);
      counts[kind] += 1;
      expect(kind === "idle").toBe(isIdleSlowly(samples, outputAt, POLICY));
    }),
    { numRuns: 5_000 },
  );
  expect(Math.min(counts.idle, counts.active)).toBeGreaterThan(10);
});

test("samples that are dropped change no answer, and few are kept", () => {
  fc.assert(
    fc.property(growing, outputs, (samples, outputAt) => {
      const last = outputAt === undefined ? undefined : at(outputAt);
      const kept = dropOldSamples(samples, POLICY.spanMs);
      expect(decideIdleness(kept, last, POLICY)).toEqual(decideIdleness(samples, last, POLICY));
      const newest = samples.at(-1)?.at ?? 0;
      expect(kept.slice(1).every((each) => newest - each.at < POLICY.spanMs)).toBe(true);
    }),
    { numRuns: 200 },
  );
  expect(dropOldSamples([], 5)).toEqual([]);
});
