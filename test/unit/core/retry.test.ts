/** What follows from an attempt: whose signal counts, what a circuit is told, how it all ends. */
import { describe, expect, test } from "bun:test";
import { startBackoff } from "../../../src/core/backoff.ts";
import {
  type AttemptEnd,
  decideCounted,
  findAsking,
  LATEST_WAKE_MS,
  mayBegin,
  outcomeOfAttempt,
  statusOf,
} from "../../../src/core/retry.ts";
import { DEFAULT_RETRY_BACKOFF } from "../../../src/core/retry-options.ts";
import { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGWINCH } from "../../../src/core/signals.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";

const exited = (code: number): AttemptEnd => ({ kind: "exited", code });
const killedBy = (signal: number): AttemptEnd => ({ kind: "signaled", signal });
const notStarted = (because: "not-found" | "not-executable" | "system"): AttemptEnd => ({
  kind: "not-started",
  because,
});
const TIMED_OUT: AttemptEnd = { kind: "timed-out" };

describe("a signal that came to us during an attempt", () => {
  test.each([SIGTERM, SIGINT, SIGQUIT, SIGHUP])("asks for the end if it is %d", (signal) => {
    expect(findAsking(exited(0), new Set([signal]))).toBe(signal);
    expect(findAsking(exited(1), new Set([SIGWINCH, signal]))).toBe(signal);
  });

  test("asks for the end if the command has died of it", () => {
    expect(findAsking(killedBy(SIGUSR1), new Set([SIGUSR1]))).toBe(SIGUSR1);
  });

  test("does not if it is another one, or if the signal was sent to the command alone", () => {
    expect(findAsking(exited(1), new Set([SIGUSR1, SIGWINCH]))).toBeUndefined();
    expect(findAsking(killedBy(SIGTERM), new Set([SIGUSR1]))).toBeUndefined();
    expect(findAsking(killedBy(SIGTERM), new Set())).toBeUndefined();
  });
});

test.each([
  [exited(0), undefined, 0, "succeeded", "ok", "exited", 0],
  [exited(0), SIGTERM, 0, "succeeded", "stopped", "terminated", 0],
  [exited(7), undefined, 7, "failed", "failed", "exited", 7],
  [exited(7), SIGHUP, 7, "nothing", "stopped", "hung-up", 7],
  [exited(64), undefined, 64, "nothing", "failed", "exited", 64],
  [exited(126), undefined, 126, "nothing", "failed", "exited", 126],
  [exited(127), undefined, 127, "nothing", "failed", "exited", 127],
  [exited(125), undefined, 125, "failed", "failed", "exited", 125],
  [killedBy(9), undefined, 137, "failed", "signaled", "killed-by-signal", -9],
  [killedBy(2), SIGINT, 130, "nothing", "stopped", "interrupted", -2],
  [killedBy(10), SIGUSR1, 138, "nothing", "signaled", "killed-by-signal", -10],
  [TIMED_OUT, undefined, 124, "failed", "timeout", "timeout", 124],
  [TIMED_OUT, SIGTERM, 124, "nothing", "timeout", "timeout", 124],
  [notStarted("not-found"), undefined, 127, "nothing", "not_found", "command-not-found", 127],
  [
    notStarted("not-executable"),
    undefined,
    126,
    "nothing",
    "not_executable",
    "command-not-executable",
    126,
  ],
  [notStarted("system"), undefined, 125, "nothing", "wrapper_error", "command-not-started", 125],
] as const)("%j, asked by %p, shows as %d, counts as %s, and ends as %s because %s", (...row) => {
  const [end, askedBy, status, counted, name, because, leaving] = row;
  const ended = { end, askedBy };
  expect(statusOf(end)).toBe(status);
  expect(decideCounted(ended)).toBe(counted);
  expect(outcomeOfAttempt(ended)).toMatchObject({
    name,
    because,
    leaving: leaving < 0 ? { kind: "signal", signal: -leaving } : { kind: "status", code: leaving },
  });
});

describe("an attempt that was waited for", () => {
  const state = { ...startBackoff(1_000 as MonotonicAt, 2), waits: 1 };
  const { maxElapsedMs } = DEFAULT_RETRY_BACKOFF;
  const rules = { backoff: DEFAULT_RETRY_BACKOFF, retryOn: undefined, noRetryOn: [] };
  const at = (ms: number): MonotonicAt => (1_000 + ms) as MonotonicAt;

  test("begins within the total time, a wake-up being late by what it may be", () => {
    expect(mayBegin(rules, state, at(0))).toBe(true);
    expect(mayBegin(rules, state, at(maxElapsedMs))).toBe(true);
    expect(mayBegin(rules, state, at(maxElapsedMs + LATEST_WAKE_MS))).toBe(true);
  });

  test("does not begin after it, and the first one does whenever it is", () => {
    const late = at(maxElapsedMs + LATEST_WAKE_MS + 1);
    expect(mayBegin(rules, state, late)).toBe(false);
    expect(mayBegin(rules, { ...state, attempts: 1 }, late)).toBe(true);
  });
});
