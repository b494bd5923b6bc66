/** When the one who has the lock of a circuit counts as silent, so that another may take it. */
import { describe, expect, test } from "bun:test";
import { type CircuitState, FRESH_CIRCUIT } from "../../../src/core/circuit.ts";
import { isSilent } from "../../../src/core/probe-schedule.ts";
import type { ProbeReason } from "../../../src/core/probe-result.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import { CIRCUIT } from "../../support/circuit-samples.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;
const SINCE = 1_000_000;
const BACKOFF = { ...CIRCUIT.settings.backoff, capMs: 30_000 };
const TIMES = { periodMs: 10_000, timeoutMs: 2_000, backoff: BACKOFF };
/** That of the answer, and what a busy machine may need besides. */
const GRACE = 7_000;
const BROKEN = { openedAt: at(SINCE), backoff: { startedAt: at(SINCE), attempts: 1, waits: 1 } };

interface Seen {
  readonly state?: CircuitState;
  readonly last?: readonly [ProbeReason, number];
  readonly mayTry?: boolean;
}

/** The last instant at which it is not silent; undefined: it never is. */
function patienceOf({ state = FRESH_CIRCUIT, last, mayTry = true }: Seen): number | undefined {
  const [because, lastAt] = last ?? ["good", 0];
  const note = { because, detail: "", at: at(lastAt), wallAt: 0 as WallAt };
  const circuit = { ...CIRCUIT, state, lastProbe: last === undefined ? null : note };
  const isSilentAt = (ms: number): boolean =>
    isSilent({ circuit, mayTry, nowMs: at(SINCE + ms), sinceAt: at(SINCE) }, TIMES);
  const patience = [GRACE, 10_000 + GRACE, 15_000 + GRACE, 30_000 + GRACE].find(
    (ms) => !isSilentAt(ms) && isSilentAt(ms + 1),
  );
  return patience ?? (isSilentAt(1_000_000) ? -1 : undefined);
}

describe("the one who has the lock is silent", () => {
  test("a period after the last good answer, and what that takes", () => {
    expect(patienceOf({ last: ["good", SINCE] })).toBe(10_000 + GRACE);
  });

  test("not before he was seen for as long, however old the last answer is", () => {
    expect(patienceOf({ last: ["good", SINCE - 900_000] })).toBe(GRACE);
  });

  test("after the longest backoff where a start may wait by it", () => {
    expect(patienceOf({})).toBe(30_000 + GRACE);
    expect(patienceOf({ last: ["refused", SINCE] })).toBe(30_000 + GRACE);
  });

  test("as if nothing was known where the last answer is of a time to come", () => {
    expect(patienceOf({ last: ["good", SINCE + 500_000] })).toBe(30_000 + GRACE);
  });

  test("once the trial of an open circuit is due, and never before", () => {
    const state = { kind: "open", ...BROKEN, retryAt: at(SINCE + 15_000) } as const;
    expect(patienceOf({ state })).toBe(15_000 + GRACE);
    expect(patienceOf({ state, mayTry: false })).toBeUndefined();
  });

  test("never while his trial is out, and a period after it was good", () => {
    const state = { kind: "half-open", ...BROKEN, successes: 1, isTrialOut: true } as const;
    const last = ["good", SINCE] as const;
    expect(patienceOf({ state, last, mayTry: false })).toBeUndefined();
    expect(patienceOf({ state: { ...state, isTrialOut: false }, last })).toBe(10_000 + GRACE);
  });
});
