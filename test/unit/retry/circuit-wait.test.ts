/** How long `retry` waits for a circuit that the run around it is paused on. */
import { expect, test } from "bun:test";
import type { RetryOptions } from "../../../src/core/retry-options.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";
import { Attempts, type AttemptsRequest } from "../../../src/retry/attempts.ts";
import type { BetweenAttempts } from "../../../src/retry/between.ts";
import type { Breaker } from "../../../src/retry/breaker.ts";
import type { RetryReport } from "../../../src/retry/report.ts";
import { MovingClock } from "../../../src/retry/standstill.ts";
import { CIRCUIT } from "../../support/circuit-samples.ts";

test("a circuit that stays open is waited for as long as all attempts may take", async () => {
  const began = 1_000_000;
  let nowMs = began;
  const backoff = { ...CIRCUIT.settings.backoff, maxElapsedMs: 250 };
  const breaker = { isProbed: true, admit: () => ({ kind: "refused", circuit: CIRCUIT }) };
  const waits: number[] = [];
  const between = {
    asking: undefined,
    wait: (delayMs: number): Promise<void> => {
      waits.push(delayMs);
      nowMs += delayMs;
      return waits.length > 100 ? Promise.reject(new Error("no end")) : Promise.resolve();
    },
  };
  const request: AttemptsRequest = {
    options: { backoff, isVerbose: false } as unknown as RetryOptions,
    program: "true",
    between: between as unknown as BetweenAttempts,
    breaker: breaker as unknown as Breaker,
    waitsForRun: true,
    clock: new MovingClock(false, () => nowMs as MonotonicAt),
    report: {} as unknown as RetryReport,
    run: () => Promise.reject(new Error("nothing is to be attempted")),
  };
  expect((await new Attempts(request).run()).because).toBe("max-elapsed");
  expect(waits).toEqual([100, 100, 50]);
});
