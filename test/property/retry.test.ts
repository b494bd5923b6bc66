/**
 * What follows from an attempt, for every way in which one ends under many rules, against an oracle
 * that makes lists of statuses where the product asks one question after the other.
 */
import { expect, test } from "bun:test";
import type { Backoff, BackoffState } from "../../src/core/backoff.ts";
import { type AttemptEnd, decideAfterAttempt, type RetryRules } from "../../src/core/retry.ts";
import type { MonotonicAt } from "../../src/core/time.ts";

/** With the status that a shell shows, written by hand. */
const ENDS: readonly (readonly [number, AttemptEnd])[] = [
  [0, { kind: "exited", code: 0 }],
  [1, { kind: "exited", code: 1 }],
  [7, { kind: "exited", code: 7 }],
  [64, { kind: "exited", code: 64 }],
  [124, { kind: "exited", code: 124 }],
  [126, { kind: "exited", code: 126 }],
  [127, { kind: "exited", code: 127 }],
  [143, { kind: "exited", code: 143 }],
  [255, { kind: "exited", code: 255 }],
  [137, { kind: "signaled", signal: 9 }],
  [143, { kind: "signaled", signal: 15 }],
  [124, { kind: "timed-out" }],
  [127, { kind: "not-started", because: "not-found" }],
  [126, { kind: "not-started", because: "not-executable" }],
  [125, { kind: "not-started", because: "system" }],
];
const LISTS: readonly (readonly number[])[] = [
  [],
  [0],
  [1],
  [7, 124],
  [64, 126, 127],
  [125, 137, 143, 255],
];
const RETRY_ON: readonly (readonly number[] | undefined)[] = [undefined, ...LISTS];
const ASKED = [undefined, 15, 2];
const MAX_ELAPSED_MS = 1_000;
const ELAPSED_MS = [0, 999.5, 1_000, 5_000, -20];
const DICE = [0, 0.5, 0.999_999];
const BEGAN = 70_000;
const EVERY_STATUS = Array.from({ length: 256 }, (_, status) => status);
const HOPELESS = [64, 126, 127];

const BACKOFF: Backoff = {
  initialMs: 100,
  capMs: 300,
  factor: 2,
  maxAttempts: 3,
  maxElapsedMs: MAX_ELAPSED_MS,
};

interface Case {
  readonly status: number;
  readonly end: AttemptEnd;
  readonly rules: RetryRules;
  readonly askedBy: number | undefined;
  readonly attempts: number;
  readonly elapsedMs: number;
  readonly random: number;
}

function* listCases(): Generator<Case> {
  for (const [status, end] of ENDS)
    for (const retryOn of RETRY_ON)
      for (const noRetryOn of LISTS) {
        const rules = { backoff: BACKOFF, retryOn, noRetryOn };
        yield* listMoments({ status, end, rules });
      }
}

function listMoments(of: Pick<Case, "status" | "end" | "rules">): Case[] {
  return ASKED.flatMap((askedBy) =>
    [1, 2, 3].flatMap((attempts) =>
      ELAPSED_MS.flatMap((elapsedMs) =>
        DICE.map((random) => ({ ...of, askedBy, attempts, elapsedMs, random })),
      ),
    ),
  );
}

/** Those that may be tried again at all. */
function listAgain({ retryOn, noRetryOn }: RetryRules): Set<number> {
  const allowed = new Set(retryOn ?? EVERY_STATUS);
  for (const status of [0, ...HOPELESS, ...noRetryOn]) allowed.delete(status);
  return allowed;
}

const KIND_WORDS = {
  exited: "failed",
  signaled: "signaled",
  "timed-out": "timed-out",
  "not-started": "not-started",
};

function expectWords({ status, end, rules, askedBy, attempts, elapsedMs }: Case): string {
  if (askedBy !== undefined) return "done asked-to-end";
  if (!listAgain(rules).has(status)) {
    if (status === 0) return "done succeeded";
    if (HOPELESS.includes(status)) return "done never-retried";
    return rules.noRetryOn.includes(status) ? "done excluded" : "done not-listed";
  }
  if (attempts === 3) return "given-up max-attempts";
  return elapsedMs >= MAX_ELAPSED_MS ? "given-up max-elapsed" : `again ${KIND_WORDS[end.kind]}`;
}

function decide({ end, rules, askedBy, attempts, elapsedMs, random }: Case) {
  const state: BackoffState = { startedAt: BEGAN as MonotonicAt, attempts, waits: attempts - 1 };
  const chance = { nowMs: (BEGAN + elapsedMs) as MonotonicAt, random };
  return { state, decision: decideAfterAttempt({ end, askedBy, state }, rules, chance) };
}

test("what follows from an attempt is what the lists say, in every case", () => {
  const wrong: unknown[] = [];
  const seen = new Map<string, number>();
  for (const one of listCases()) {
    const { decision } = decide(one);
    const words = `${decision.kind} ${decision.because}`;
    seen.set(words, (seen.get(words) ?? 0) + 1);
    if (words !== expectWords(one)) wrong.push({ ...one, words });
  }
  expect(wrong.slice(0, 3)).toEqual([]);
  const total = [...seen.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBe(15 * 7 * 6 * 3 * 3 * 5 * 3);
  // Each reason there is was seen.
  expect([...seen.keys()].sort()).toEqual([
    "again failed",
    "again not-started",
    "again signaled",
    "again timed-out",
    "done asked-to-end",
    "done excluded",
    "done never-retried",
    "done not-listed",
    "done succeeded",
    "given-up max-attempts",
    "given-up max-elapsed",
  ]);
});

test("a wait is within its bound and the total time, and counts the attempt that it is for", () => {
  let waits = 0;
  for (const one of listCases()) {
    const { state, decision } = decide(one);
    if (decision.kind !== "again") continue;
    waits += 1;
    const bound = [100, 200, 300][state.waits] ?? 0;
    const rest = MAX_ELAPSED_MS - Math.max(0, one.elapsedMs);
    const isWithin = decision.delayMs >= 0 && decision.delayMs <= Math.min(bound, rest);
    const next = { ...state, attempts: state.attempts + 1, waits: state.waits + 1 };
    expect([isWithin, decision.state]).toEqual([true, next]);
  }
  expect(waits).toBeGreaterThan(1_000);
});

/** A command that never succeeds, its attempts of any length. */
function countAttempts(rules: RetryRules, lengthMs: number, random: number) {
  const starts: number[] = [];
  let now = BEGAN;
  let state: BackoffState = { startedAt: BEGAN as MonotonicAt, attempts: 1, waits: 0 };
  for (;;) {
    starts.push(now - BEGAN);
    now += lengthMs;
    const end = { kind: "exited", code: 1 } as const;
    const chance = { nowMs: now as MonotonicAt, random };
    const decision = decideAfterAttempt({ end, askedBy: undefined, state }, rules, chance);
    if (decision.kind !== "again") return { starts, because: decision.because };
    now += decision.delayMs;
    state = decision.state;
  }
}

test("there are never more attempts than allowed, and none begins after the total time", () => {
  const bounds = [1, 2, 5, 50].flatMap((maxAttempts) =>
    [100, 350, 5_000].map((maxElapsedMs) => ({ ...BACKOFF, maxAttempts, maxElapsedMs })),
  );
  const moments = [0, 1, 90, 700].flatMap((lengthMs) =>
    DICE.map((random) => ({ lengthMs, random })),
  );
  for (const backoff of bounds) {
    for (const { lengthMs, random } of moments) {
      const rules = { backoff, retryOn: undefined, noRetryOn: [] };
      const { starts, because } = countAttempts(rules, lengthMs, random);
      const isAll = because === "max-attempts";
      expect(starts.length <= backoff.maxAttempts - (isAll ? 0 : 1)).toBe(true);
      if (isAll) expect(starts).toHaveLength(backoff.maxAttempts);
      expect(Math.max(...starts)).toBeLessThanOrEqual(backoff.maxElapsedMs);
    }
  }
});
