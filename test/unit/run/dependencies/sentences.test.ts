/** What is said of a start that was refused: nobody is called down who was not asked. */
import { describe, expect, test } from "bun:test";
import type { StartRefusal } from "../../../../src/core/outcome.ts";
import type { ProbeReason } from "../../../../src/core/probe-result.ts";
import type { ProbeNote } from "../../../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../../../src/core/time.ts";
import { sentences } from "../../../../src/run/dependencies/sentences.ts";

const noteOf = (because: ProbeReason): ProbeNote => ({
  because,
  detail: `it was ${because}`,
  at: 0 as MonotonicAt,
  wallAt: 0 as WallAt,
});

const say = (because: StartRefusal, last: ProbeNote | undefined): string =>
  sentences.notStarted("db", because, { last, openForMs: 3_000 });

describe("a start that was refused", () => {
  test("while the circuit is open says since when and why, or that calls have opened it", () => {
    const open = "watchdog: not started: db is down, its circuit has been open for 3.0 s";
    expect(say("circuit-open", noteOf("refused"))).toBe(`${open}: it was refused`);
    expect(say("circuit-open", noteOf("good"))).toBe(`${open}: calls to it have failed`);
    expect(say("circuit-open", undefined)).toBe(open);
  });

  test("without a good answer says what the last one was", () => {
    for (const because of ["startup-wait", "max-attempts", "max-elapsed"] as const) {
      expect(say(because, noteOf("refused"))).toStartWith("watchdog: not started: db is down, no");
      expect(say(because, noteOf("refused"))).toEndWith(": it was refused");
    }
  });

  test("without any answer calls nobody down", () => {
    const unasked = "watchdog: not started: db was not asked by whoever probes it, no good answer";
    for (const last of [undefined, noteOf("good")]) {
      expect(say("startup-wait", last)).toBe(`${unasked} within --probe-startup-wait`);
    }
  });
});
