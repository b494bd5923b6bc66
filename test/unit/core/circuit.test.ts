/** Each state of a circuit against each event, and what is admitted when. */
import { describe, expect, test } from "bun:test";
import { decideCircuit, FRESH_CIRCUIT } from "../../../src/core/circuit.ts";
import type {
  CircuitEvent,
  CircuitSettings,
  CircuitState,
  HalfOpenCircuit,
  OpenCircuit,
  PermanentCircuit,
} from "../../../src/core/circuit.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";

const SETTINGS: CircuitSettings = {
  failureThreshold: 3,
  failureWindow: undefined,
  successThreshold: 1,
  backoff: { initialMs: 1_000, capMs: 30_000, factor: 2, maxAttempts: 20, maxElapsedMs: 300_000 },
};
const NOW = 1_000_000;
const at = (ms: number): MonotonicAt => ms as MonotonicAt;

const BROKEN = { openedAt: at(NOW), backoff: { startedAt: at(NOW), attempts: 1, waits: 1 } };
const OPEN: OpenCircuit = { kind: "open", ...BROKEN, retryAt: at(NOW + 500) };
const HALF: HalfOpenCircuit = { kind: "half-open", ...BROKEN, successes: 0, isTrialOut: true };
const PERMANENT: PermanentCircuit = {
  kind: "permanent",
  ...BROKEN,
  because: "max-attempts",
  retryAt: at(NOW + 30_000),
};

const GOOD: CircuitEvent = { kind: "probe-succeeded" };
const BAD: CircuitEvent = { kind: "probe-failed" };
const CALL_BAD: CircuitEvent = { kind: "call-failed", isTrial: false };

function decide(
  state: CircuitState,
  event: CircuitEvent | CircuitEvent["kind"],
  { settings = SETTINGS, nowMs = NOW, random = 0.5 } = {},
) {
  const whole = typeof event === "string" ? ({ kind: event } as CircuitEvent) : event;
  return decideCircuit(state, whole, settings, { nowMs: at(nowMs), random });
}

/** The last decision of a row of events. */
function decideAll(events: readonly CircuitEvent[], settings = SETTINGS) {
  let last = decide(FRESH_CIRCUIT, "reset");
  for (const event of events) last = decide(last.state, event, { settings });
  return last;
}

describe("a closed circuit", () => {
  test("opens at the third failure in a row, for half of the first delay", () => {
    expect(decideAll([BAD, BAD]).state).toMatchObject({ kind: "closed", consecutiveFailures: 2 });
    const { state, transition } = decideAll([BAD, BAD, BAD]);
    expect(state).toEqual(OPEN);
    expect(transition).toEqual({ from: "closed", to: "open", because: "consecutive-failures" });
  });

  test("counts failures of probes and of calls together", () => {
    expect(decideAll([BAD, CALL_BAD, BAD]).state.kind).toBe("open");
  });

  test("begins to count anew after a success of either kind", () => {
    for (const good of [GOOD, { kind: "call-succeeded", isTrial: false } as const]) {
      expect(decideAll([BAD, BAD, good, BAD, BAD]).state.kind).toBe("closed");
    }
  });

  test("opens at so many failures among the last ones, and forgets what is older", () => {
    const settings = { ...SETTINGS, failureWindow: { failures: 3, size: 5 } };
    const opened = decideAll([BAD, GOOD, BAD, GOOD, BAD], settings);
    expect(opened.transition?.because).toBe("windowed-failures");
    const kept = decideAll([BAD, GOOD, BAD, GOOD, GOOD, BAD], settings).state;
    const window = [false, true, false, false, true];
    expect(kept).toEqual({ kind: "closed", consecutiveFailures: 1, window });
  });

  test("does not open at a success, whatever a larger window has left behind", () => {
    const failureWindow = { failures: 2, size: 5 };
    const state = { ...FRESH_CIRCUIT, window: [true, true, true] };
    const settings = { ...SETTINGS, failureWindow };
    expect(decide(state, GOOD, { settings }).state.kind).toBe("closed");
    expect(decide(state, BAD, { settings }).state.kind).toBe("open");
  });

  test("keeps no window where none is asked for", () => {
    const state = { ...FRESH_CIRCUIT, window: [true, true] };
    expect(decide(state, BAD).state).toMatchObject({ window: [] });
  });

  test("lets everybody through", () => {
    const { state, transition, isAdmitted } = decide(FRESH_CIRCUIT, "due");
    expect([state, transition, isAdmitted]).toEqual([FRESH_CIRCUIT, undefined, true]);
  });

  test("forgets its failures when it is reset, and tells of no change", () => {
    const state = { ...FRESH_CIRCUIT, consecutiveFailures: 2 };
    const decision = { state: FRESH_CIRCUIT, transition: undefined, isAdmitted: false };
    expect(decide(state, "reset")).toEqual(decision);
  });

  test("is permanent at once where the bound leaves no attempt", () => {
    const settings = { ...SETTINGS, backoff: { ...SETTINGS.backoff, maxAttempts: 0 } };
    expect(decideAll([BAD, BAD, BAD], settings).state).toMatchObject({
      kind: "permanent",
      because: "max-attempts",
    });
  });
});

describe("an open circuit", () => {
  test("admits nobody before its time, and then one", () => {
    const early = decide(OPEN, "due", { nowMs: NOW + 499 });
    expect(early).toEqual({ state: OPEN, transition: undefined, isAdmitted: false });
    const first = decide(OPEN, "due", { nowMs: NOW + 500 });
    expect(first.state).toEqual(HALF);
    expect(first.transition).toEqual({ from: "open", to: "half-open", because: "due" });
    expect(first.isAdmitted).toBe(true);
    const second = decide(first.state, "due", { nowMs: NOW + 900 });
    expect(second).toEqual({ state: HALF, transition: undefined, isAdmitted: false });
  });

  test("does not wait for an instant that is farther away than any wait", () => {
    const retryAt = at(NOW + 30_000);
    expect(decide({ ...OPEN, retryAt }, "due").isAdmitted).toBe(false);
    expect(decide({ ...OPEN, retryAt: at(NOW + 30_002) }, "due").isAdmitted).toBe(true);
  });
});

describe("a half-open circuit", () => {
  test("closes at the success of its trial, with nothing counted", () => {
    const { state, transition } = decide(HALF, GOOD);
    expect(state).toEqual(FRESH_CIRCUIT);
    expect(transition).toEqual({ from: "half-open", to: "closed", because: "success-threshold" });
  });

  test("wants as many successes as the threshold says, one trial after the other", () => {
    const settings = { ...SETTINGS, successThreshold: 2 };
    const first = decide(HALF, GOOD, { settings });
    expect(first.state).toEqual({ ...HALF, successes: 1, isTrialOut: false });
    expect(first.transition).toBeUndefined();
    const next = decide(first.state, "due", { settings });
    expect([next.isAdmitted, next.transition]).toEqual([true, undefined]);
    expect(decide(next.state, GOOD, { settings }).state).toEqual(FRESH_CIRCUIT);
  });

  test("opens again at the failure of its trial, and waits longer", () => {
    const { state, transition } = decide(HALF, BAD, { nowMs: NOW + 700 });
    expect(transition).toEqual({ from: "half-open", to: "open", because: "trial-failed" });
    expect(state).toEqual({
      kind: "open",
      openedAt: at(NOW),
      backoff: { startedAt: at(NOW), attempts: 2, waits: 2 },
      retryAt: at(NOW + 1_700),
    });
  });

  test.each([
    ["max-attempts", { attempts: 20 }, NOW],
    ["max-elapsed", { attempts: 1 }, NOW + 300_000],
  ] as const)("becomes permanent at the bound: %s", (because, count, nowMs) => {
    const backoff = { ...BROKEN.backoff, ...count };
    const { state, transition } = decide({ ...HALF, backoff }, BAD, { nowMs });
    expect(transition).toEqual({ from: "half-open", to: "permanent", because });
    const retryAt = at(nowMs + 30_000);
    expect(state).toEqual({ kind: "permanent", because, openedAt: at(NOW), backoff, retryAt });
  });

  test("counts a call only if it is the trial", () => {
    expect(decide(HALF, CALL_BAD).state).toEqual(HALF);
    expect(decide(HALF, { kind: "call-failed", isTrial: true }).state.kind).toBe("open");
    expect(decide(HALF, { kind: "call-succeeded", isTrial: false }).state).toEqual(HALF);
    expect(decide(HALF, { kind: "call-succeeded", isTrial: true }).state.kind).toBe("closed");
  });

  test("counts nothing while no trial is out", () => {
    const idle = { ...HALF, isTrialOut: false };
    for (const event of [GOOD, BAD]) expect(decide(idle, event).state).toEqual(idle);
  });

  test("admits another one when the trial is lost", () => {
    const { state, transition } = decide(HALF, "trial-lost");
    expect([state, transition]).toEqual([{ ...HALF, isTrialOut: false }, undefined]);
    expect(decide(state, "due").isAdmitted).toBe(true);
  });
});

describe("a permanent circuit", () => {
  test("admits nobody until a cap's time is over, and then one", () => {
    expect(decide(PERMANENT, "due", { nowMs: NOW + 29_999 }).isAdmitted).toBe(false);
    const late = decide(PERMANENT, "due", { nowMs: NOW + 30_000 });
    expect(late.transition).toEqual({ from: "permanent", to: "half-open", because: "due" });
    expect(late.isAdmitted).toBe(true);
  });

  test("admits nobody at the instant at which it became so, with whatever fraction", () => {
    const trial = { ...HALF, backoff: { ...BROKEN.backoff, attempts: 20 } };
    for (let step = 1; step <= 2_000; step += 1) {
      const nowMs = 2 ** 20 - 20_000 + step * 0.123; // its sums have coarser fractions
      const { state } = decide(trial, BAD, { nowMs });
      expect([state.kind, decide(state, "due", { nowMs }).isAdmitted]).toEqual([
        "permanent",
        false,
      ]);
    }
  });

  test("is permanent again if that fails, and closed if it succeeds", () => {
    const backoff = { ...BROKEN.backoff, attempts: 20 };
    const trial = decide({ ...PERMANENT, backoff }, "due", { nowMs: NOW + 30_000 }).state;
    expect(decide(trial, BAD, { nowMs: NOW + 30_001 }).state).toMatchObject({
      kind: "permanent",
      retryAt: at(NOW + 60_001),
    });
    expect(decide(trial, GOOD).state).toEqual(FRESH_CIRCUIT);
  });
});

describe("a circuit that lets nothing pass", () => {
  test.each([[OPEN], [PERMANENT]])("does not count late answers: $kind", (state) => {
    const late = [
      GOOD,
      BAD,
      CALL_BAD,
      { kind: "call-succeeded", isTrial: true } as const,
      { kind: "trial-lost" } as const,
    ];
    for (const event of late) {
      expect(decide(state, event)).toEqual({ state, transition: undefined, isAdmitted: false });
    }
  });

  test.each([[OPEN], [HALF], [PERMANENT]])("is closed by a reset: $kind", (state) => {
    const { state: after, transition } = decide(state, "reset");
    expect(after).toEqual(FRESH_CIRCUIT);
    expect(transition).toEqual({ from: state.kind, to: "closed", because: "reset" });
  });
});
