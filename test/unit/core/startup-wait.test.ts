/** Each case in which a start goes on, gives up, asks or waits. */
import { describe, expect, test } from "bun:test";
import type { CircuitState } from "../../../src/core/circuit.ts";
import { DEFAULT_PROBE_BACKOFF } from "../../../src/core/probe-settings.ts";
import type { ProbeNote, SharedCircuit } from "../../../src/core/shared-circuit.ts";
import {
  beginStartup,
  decideStartup,
  type StartupSight,
  type StartupState,
} from "../../../src/core/startup-wait.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import { CLOSED_CIRCUIT } from "../../support/closed-circuit.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;
const START = 1_000_000;
const SETTINGS = {
  periodMs: 10_000,
  timeoutMs: 1_000,
  startupWaitMs: 60_000,
  backoff: DEFAULT_PROBE_BACKOFF,
};
const GOOD: ProbeNote = { because: "good", detail: "", at: at(START), wallAt: 0 as WallAt };
const BROKEN = { openedAt: at(0), backoff: { startedAt: at(0), attempts: 1, waits: 1 } };
const OPEN: CircuitState = { kind: "open", ...BROKEN, retryAt: at(START + 100) };
const HALF: CircuitState = { kind: "half-open", ...BROKEN, successes: 0, isTrialOut: true };
const FRESH = { goodProbes: 8, lastGoodAt: at(START - 10_000), lastProbe: GOOD };

interface Given extends Partial<Omit<StartupSight, "circuit">> {
  readonly circuit?: Partial<SharedCircuit>;
  readonly afterMs?: number;
  readonly before?: StartupState;
}

function decide({ circuit, afterMs = 0, before, ...given }: Given, settings = SETTINGS) {
  const nowMs = at(START + afterMs);
  const sight = { isProber: true, mayTry: true, troubles: 0, nowMs, random: 0.5, ...given };
  const seen = { ...CLOSED_CIRCUIT, ...circuit };
  return decideStartup(
    before ?? beginStartup(CLOSED_CIRCUIT, at(START)),
    { ...sight, circuit: seen },
    settings,
  );
}

describe("a closed circuit", () => {
  test.each<[string, Given, string]>([
    ["asked by who has the lock, at once", {}, "probe closed"],
    ["a good answer since it began", { circuit: { goodProbes: 9 } }, "ready answered"],
    [
      "the same for who only looks",
      { circuit: { goodProbes: 9 }, isProber: false },
      "ready answered",
    ],
    ["a fresh answer of another", { circuit: FRESH, isProber: false }, "ready fresh-answer"],
    ["a fresh answer that nobody goes on with", { circuit: FRESH }, "probe closed"],
    [
      "as old as it may be",
      { circuit: FRESH, isProber: false, afterMs: 1_000 },
      "ready fresh-answer",
    ],
    ["older", { circuit: FRESH, isProber: false, afterMs: 1_001 }, "wait other-prober"],
    [
      "from another clock",
      { circuit: { ...FRESH, lastGoodAt: at(START + 1) }, isProber: false },
      "wait other-prober",
    ],
    [
      "a bad one after it",
      { circuit: { ...FRESH, lastProbe: { ...GOOD, because: "refused" } }, isProber: false },
      "wait other-prober",
    ],
    ["a bad answer seen", { circuit: { probes: 11 } }, "wait backoff"],
    ["as many as are allowed", { circuit: { probes: 30 } }, "failed max-attempts"],
    ["one less", { circuit: { probes: 29 } }, "wait backoff"],
    ["more than anybody counts", { circuit: { probes: 1e9 } }, "failed max-attempts"],
    ["trouble of its own", { troubles: 1 }, "wait backoff"],
    ["trouble too often", { troubles: 20 }, "failed max-attempts"],
    [
      "the time is over beside another",
      { isProber: false, afterMs: 60_000 },
      "failed startup-wait",
    ],
    ["nearly", { isProber: false, afterMs: 59_999 }, "wait other-prober"],
    [
      "a bad answer when the time is over",
      { circuit: { probes: 11 }, afterMs: 60_000 },
      "failed startup-wait",
    ],
    ["counts that a reset made smaller", { circuit: { probes: 0, goodProbes: 0 } }, "probe closed"],
  ])("with %s", (_title, given, expected) => {
    const { kind, because } = decide(given);
    expect(`${kind} ${because}`).toBe(expected);
  });

  test("is asked again when the wait of the last bad answer is over, whoever got that", () => {
    const seen = decide({ circuit: { probes: 12 }, isProber: false });
    expect(seen).toMatchObject({ state: { nextAt: START + 1_000, probes: 12 } });
    if (!("state" in seen)) throw new Error("it waits");
    const given = { circuit: { probes: 12 }, before: seen.state };
    expect(decide({ ...given, afterMs: 999 })).toMatchObject({ because: "backoff" });
    expect(decide({ ...given, afterMs: 1_000 })).toMatchObject({ kind: "probe" });
  });

  test("sees a good answer after a reset", () => {
    const reset = decide({ circuit: { probes: 0, goodProbes: 0 }, isProber: false });
    if (!("state" in reset)) throw new Error("it waits");
    const after = { circuit: { probes: 1, goodProbes: 1 }, before: reset.state };
    expect(decide(after)).toMatchObject({ kind: "ready" });
  });

  test("waits no longer than its time is, and names what has ended it", () => {
    const settings = { ...SETTINGS, startupWaitMs: 300 };
    expect(decide({ circuit: { probes: 11 } }, settings)).toMatchObject({ untilAt: START + 300 });
    const late = { circuit: { probes: 11 }, afterMs: 301 };
    expect(decide(late, settings)).toEqual({ kind: "failed", because: "startup-wait" });
    const backoff = { ...DEFAULT_PROBE_BACKOFF, maxElapsedMs: 1_000 };
    const ended = decide({ isProber: false, afterMs: 1_000 }, { ...SETTINGS, backoff });
    expect(ended).toEqual({ kind: "failed", because: "max-elapsed" });
  });
});

describe("one that is not closed", () => {
  const open = { state: OPEN };
  const half = { state: HALF };
  test.each<[string, Given, string]>([
    ["open, not due", { circuit: open, mayTry: false }, "failed circuit-open"],
    ["open and due", { circuit: open }, "probe due"],
    ["open and due, and another probes", { circuit: open, isProber: false }, "wait other-prober"],
    ["open after a trial", { circuit: { ...open, probes: 11 } }, "failed trial-failed"],
    ["a good answer that came before", { circuit: { ...open, goodProbes: 9 } }, "probe due"],
    ["half-open, the trial is another's", { circuit: half, mayTry: false }, "wait trial-out"],
    ["half-open, nobody's", { circuit: half }, "probe due"],
    ["half-open after a good trial", { circuit: { ...half, probes: 11 } }, "wait between-trials"],
    [
      "half-open when the time is over",
      { circuit: half, mayTry: false, afterMs: 60_000 },
      "failed circuit-open",
    ],
    ["due when the time is over", { circuit: open, afterMs: 60_000 }, "probe due"],
    [
      "due beside another when the time is over",
      { circuit: open, isProber: false, afterMs: 60_000 },
      "failed circuit-open",
    ],
    ["half-open after trouble of its own", { circuit: half, troubles: 1 }, "wait between-trials"],
    ["trouble too often", { circuit: half, troubles: 20 }, "failed max-attempts"],
  ])("%s", (_title, given, expected) => {
    const { kind, because } = decide(given);
    expect(`${kind} ${because}`).toBe(expected);
  });
});
