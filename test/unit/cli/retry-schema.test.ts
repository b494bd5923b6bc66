/**
 * The contract of `watchdog retry --result-file`: what is taken, what is not, what is described.
 */
import { describe, expect, test } from "bun:test";
import { listRetryFields, RETRY_REASONS, retrySchema } from "../../../src/cli/retry-schema.ts";
import type { RetryRecord } from "../../../src/core/retry-record.ts";

const ENDED: RetryRecord = {
  format: 1,
  state: "ended",
  outcome: "failed",
  because: "max-attempts",
  exit_status: 7,
  status_of: "command",
  command: ["curl", "-f", "http://127.0.0.1/"],
  pid: 10,
  started_at: "2026-01-01T00:00:00.000Z",
  ended_at: "2026-01-01T00:00:05.000Z",
  duration_ms: 5_000,
  attempt_count: 1,
  attempts: [
    {
      attempt: 1,
      started_at: "2026-01-01T00:00:00.000Z",
      duration_ms: 12,
      exit_code: 7,
      signal: null,
      status: 7,
      because: "max-attempts",
      waited_ms: 0,
    },
  ],
  circuit: { name: "server", state: "open" },
  watchdog: { version: "0.1.0", commit: "abc" },
};

describe("the record of retry", () => {
  test("is taken as it is written, with fields of a later version", () => {
    expect(retrySchema.parse({ ...ENDED, later: 1 })).toMatchObject({ ...ENDED });
    const running = { state: "running", outcome: null, ended_at: null, circuit: null } as const;
    expect(retrySchema.safeParse({ ...ENDED, ...running }).success).toBe(true);
  });

  test.each([
    ["an end without an outcome", { outcome: null }],
    ["another format", { format: 2 }],
    ["an attempt without a number", { attempts: [{ ...ENDED.attempts[0], attempt: 0 }] }],
    ["a reason of no list", { because: "bad-luck" }],
    ["an attempt with one", { attempts: [{ ...ENDED.attempts[0], because: "exited" }] }],
    ["no command", { command: [] }],
    ["a circuit of no known state", { circuit: { name: "x", state: "ajar" } }],
  ])("is refused with %s", (_, change) => {
    expect(retrySchema.safeParse({ ...ENDED, ...change }).success).toBe(false);
  });

  test("explains every reason, and lists the words of a field that has few", () => {
    const words = RETRY_REASONS.map(({ because }) => because);
    for (const because of words) {
      const attempts = [{ ...ENDED.attempts[0], because }];
      expect(retrySchema.safeParse({ ...ENDED, attempts }).success).toBe(true);
    }
    expect(words).toContain("asked-to-end");
    expect(RETRY_REASONS.filter(({ meaning }) => meaning === "")).toEqual([]);
    const state = listRetryFields().find(({ path }) => path === "circuit.state");
    expect(state?.meaning).toBe(
      "where it was left; one of `closed`, `open`, `half-open`, `permanent`",
    );
  });

  test("has each of its fields described", () => {
    const fields = listRetryFields();
    expect(fields.map(({ path }) => path)).toContain("attempts[].waited_ms");
    expect(fields.filter(({ meaning }) => meaning === "")).toEqual([]);
    const described = new Set(fields.map(({ path }) => path));
    expect(Object.keys(ENDED).filter((name) => !described.has(name))).toEqual([]);
  });
});
