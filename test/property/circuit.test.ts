/**
 * Circuits over whole histories: every short one against a model that reads the list of answers
 * from the outside, and random ones, with events at the wrong time, against what must never be.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseCircuit, renderCircuit } from "../../src/core/circuit-record.ts";
import { decideCircuit, FRESH_CIRCUIT } from "../../src/core/circuit.ts";
import type { CircuitEvent, CircuitSettings, CircuitState } from "../../src/core/circuit.ts";
import type { MonotonicAt, WallAt } from "../../src/core/time.ts";
import { CIRCUIT } from "../support/circuit-samples.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;

/** `+` and `-` since it closed last; whether the last answer opens it. */
function opensAt(answers: string, { failureThreshold, failureWindow }: CircuitSettings): boolean {
  if (answers.endsWith("-".repeat(failureThreshold))) return true;
  if (failureWindow === undefined || !answers.endsWith("-")) return false;
  const recent = answers.slice(-failureWindow.size);
  return recent.length - recent.replaceAll("-", "").length >= failureWindow.failures;
}

type Name = CircuitState["kind"];

/** Where it stands after each answer, if a trial is made whenever it is time for one. */
function modelOf(answers: string, settings: CircuitSettings): Name[] {
  const { maxAttempts } = settings.backoff;
  const names: Name[] = [];
  let [isClosed, begin, failed] = [true, 0, 0];
  for (let end = 1; end <= answers.length; end += 1) {
    const since = answers.slice(begin, end);
    if (isClosed && !opensAt(since, settings)) names.push("closed");
    else if (isClosed) {
      names.push("open");
      [isClosed, begin, failed] = [false, end, 0];
    } else if (since.endsWith("-")) {
      failed += 1;
      names.push(failed >= maxAttempts ? "permanent" : "open");
    } else if (since.endsWith("+".repeat(settings.successThreshold))) {
      names.push("closed");
      [isClosed, begin] = [true, end];
    } else names.push("half-open");
  }
  return names;
}

/** Waits as long as it takes, and gives the one answer. */
function answer(state: CircuitState, sign: string, { settings, nowMs, random }: Step) {
  const chance = { nowMs: at(nowMs), random };
  const due = decideCircuit(state, { kind: "due" }, settings, chance);
  expect(due.isAdmitted).toBe(true);
  const kind = sign === "-" ? "probe-failed" : "probe-succeeded";
  return decideCircuit(due.state, { kind }, settings, chance);
}

interface Step {
  readonly settings: CircuitSettings;
  readonly nowMs: number;
  readonly random: number;
}

const REST = { initialMs: 1_000, capMs: 30_000, factor: 2, maxElapsedMs: 1e9 };

function listSettings(): CircuitSettings[] {
  const windows = [undefined, { failures: 2, size: 3 }, { failures: 3, size: 5 }];
  const bounds = [1, 2, 20].map((maxAttempts) => ({ ...REST, maxAttempts }));
  return [1, 2, 3, 4].flatMap((failureThreshold) =>
    windows.flatMap((failureWindow) =>
      [1, 2, 3].flatMap((successThreshold) =>
        bounds.map((backoff) => ({ failureThreshold, failureWindow, successThreshold, backoff })),
      ),
    ),
  );
}

const LENGTH = 9;
const HISTORIES = Array.from({ length: 2 ** LENGTH }, (_, bits) =>
  bits.toString(2).padStart(LENGTH, "0").replaceAll("0", "+").replaceAll("1", "-"),
);

test("every flapping opens at a threshold, closes at the other, and nowhere else", () => {
  const wrong: unknown[] = [];
  const seen = new Map<Name, number>();
  for (const settings of listSettings()) {
    for (const history of HISTORIES) {
      let state: CircuitState = FRESH_CIRCUIT;
      const names = Array.from(history, (sign, index) => {
        state = answer(state, sign, { settings, nowMs: 60_000 * (index + 1), random: 0.5 }).state;
        seen.set(state.kind, (seen.get(state.kind) ?? 0) + 1);
        return state.kind;
      });
      const model = modelOf(history, settings);
      if (!Bun.deepEquals(names, model) && wrong.length < 3) {
        wrong.push({ history, settings, names, model });
      }
    }
  }
  expect(wrong).toEqual([]);
  expect([...seen.keys()].toSorted()).toEqual(["closed", "half-open", "open", "permanent"]);
  expect([...seen.values()].reduce((sum, count) => sum + count)).toBe(108 * 2 ** LENGTH * LENGTH);
});

const events = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<CircuitEvent>({ kind: "due" }) },
  {
    weight: 8,
    arbitrary: fc.constantFrom<CircuitEvent>(
      { kind: "probe-failed" },
      { kind: "probe-succeeded" },
      { kind: "call-failed", isTrial: false },
      { kind: "call-succeeded", isTrial: false },
      { kind: "call-failed", isTrial: true },
      { kind: "call-succeeded", isTrial: true },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<CircuitEvent>({ kind: "trial-lost" }, { kind: "reset" }),
  },
);
const steps = fc.array(
  fc.record({
    event: events,
    passMs: fc.constantFrom(0, 1, 400, 5_000, 40_000),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  }),
  { maxLength: 60 },
);
const settings = fc.record({
  failureThreshold: fc.integer({ min: 1, max: 5 }),
  failureWindow: fc.option(fc.constantFrom({ failures: 2, size: 4 }, { failures: 5, size: 5 }), {
    nil: undefined,
  }),
  successThreshold: fc.integer({ min: 1, max: 3 }),
  backoff: fc.record({
    initialMs: fc.constantFrom(1, 1_000),
    capMs: fc.constantFrom(1_000, 30_000),
    factor: fc.constantFrom(1, 2, 10),
    maxAttempts: fc.integer({ min: 1, max: 8 }),
    maxElapsedMs: fc.constantFrom(1_000, 50_000, 1e9),
  }),
});

interface Seen {
  readonly before: CircuitState;
  readonly event: CircuitEvent;
  readonly after: CircuitState;
  readonly isAdmitted: boolean;
  readonly nowMs: number;
  readonly limits: CircuitSettings;
}

function isEarly({ before, nowMs }: Seen): boolean {
  return "retryAt" in before && nowMs < before.retryAt;
}

function hasTrialOut(state: CircuitState): boolean {
  return state.kind === "half-open" && state.isTrialOut;
}

/** What must never be, one step after the other. */
const NEVER: Readonly<Record<string, (seen: Seen) => boolean>> = {
  "admits unasked": ({ event, isAdmitted }) => isAdmitted && event.kind !== "due",
  "a second trial": ({ before, isAdmitted }) => isAdmitted && hasTrialOut(before),
  "a trial before its time": (seen) => seen.isAdmitted && isEarly(seen),
  "admits while it stays open": ({ after, isAdmitted }) =>
    isAdmitted && after.kind !== "closed" && !hasTrialOut(after),
  "opens without a failure": ({ before, event, after }) =>
    before.kind === "closed" && after.kind !== "closed" && !event.kind.endsWith("failed"),
  "closes without the success of a trial": ({ before, event, after }) =>
    before.kind !== "closed" &&
    after.kind === "closed" &&
    event.kind !== "reset" &&
    !(hasTrialOut(before) && event.kind.endsWith("succeeded")),
  "stays half-open after the threshold": ({ after, limits }) =>
    after.kind === "half-open" && after.successes >= limits.successThreshold,
  "stays closed at the threshold": ({ after, limits }) =>
    after.kind === "closed" && after.consecutiveFailures >= limits.failureThreshold,
  "a window that grows": ({ after, limits }) =>
    after.kind === "closed" && after.window.length > (limits.failureWindow?.size ?? 0),
  "too many attempts": ({ after, limits }) =>
    after.kind !== "closed" && after.backoff.attempts > limits.backoff.maxAttempts,
  "a wait of no size": ({ before, after, nowMs, limits }) => {
    if (before === after || !("retryAt" in after)) return false;
    const waitMs = after.retryAt - nowMs;
    return !(waitMs >= 0 && waitMs <= limits.backoff.capMs);
  },
};

function complain(seen: Seen): string | undefined {
  return Object.entries(NEVER).find(([, isSo]) => isSo(seen))?.[0];
}

test("events in any order never admit two, never open or close without the answer for it", () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(settings, steps, (limits, list) => {
      let [state, nowMs]: [CircuitState, number] = [FRESH_CIRCUIT, 1_000];
      for (const { event, passMs, random } of list) {
        nowMs += passMs;
        const made = decideCircuit(state, event, limits, { nowMs: at(nowMs), random });
        const { state: after, isAdmitted, transition } = made;
        const complaint = complain({ before: state, event, after, isAdmitted, nowMs, limits });
        expect(complaint).toBeUndefined();
        const isChange = state.kind !== after.kind;
        expect([transition !== undefined, transition?.to ?? after.kind]).toEqual([
          isChange,
          after.kind,
        ]);
        if (transition !== undefined) {
          expect(transition.from).toBe(state.kind);
          seen.set(transition.because, (seen.get(transition.because) ?? 0) + 1);
        }
        state = after;
      }
    }),
    { numRuns: 3_000 },
  );
  expect([...seen.keys()].toSorted()).toEqual([
    "consecutive-failures",
    "due",
    "max-attempts",
    "max-elapsed",
    "reset",
    "success-threshold",
    "trial-failed",
    "windowed-failures",
  ]);
});

test("a circuit that is kept as text in between goes on as if it was not", () => {
  fc.assert(
    fc.property(settings, steps, (limits, list) => {
      let [state, nowMs]: [CircuitState, number] = [FRESH_CIRCUIT, 1_000.25];
      for (const { event, passMs, random } of list) {
        nowMs += passMs;
        state = decideCircuit(state, event, limits, { nowMs: at(nowMs), random }).state;
        const clock = { bootId: "b", timeNamespace: "n", nowMs: at(nowMs), wallMs: 5 as WallAt };
        const circuit = { ...CIRCUIT, settings: limits, state };
        const text = renderCircuit(circuit, clock);
        const reading = parseCircuit(text, circuit.name, { ...clock, nowMs: at(nowMs + 7) });
        expect(reading).toEqual({ kind: "read", circuit });
      }
    }),
    { numRuns: 300 },
  );
});
