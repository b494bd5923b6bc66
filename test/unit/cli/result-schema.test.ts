/**
 * The contract of `--result-file`: what is taken, what is not, what is described.
 */

import { describe, expect, test } from "bun:test";
import { listFields, resultSchema } from "../../../src/cli/result-schema.ts";
import type { RunRecord } from "../../../src/core/run-record.ts";

const ENDED = {
  format: 1,
  run_id: "01900000-0000-7000-8000-000000000000",
  job: "nightly",
  state: "ended",
  outcome: "timeout",
  because: "timeout",
  exit_status: 124,
  status_of: "watchdog",
  exit_code: null,
  signal: "TERM",
  command: ["sleep", "100"],
  cwd: "/",
  pid: 10,
  child_pid: 11,
  started_at: "2026-01-01T00:00:00.000Z",
  ended_at: "2026-01-01T00:00:05.000Z",
  duration_ms: 5_000.5,
  suspended_ms: 0,
  limits: { timeout_ms: 5_000, idle_timeout_ms: null, not_after: "06:00:00" },
  signals: [{ signal: "TERM", at_ms: 5_000, to: "tree", count: 1, why: "limit" }],
  leftovers: [{ pid: 12, command: "redis-server", ended_by: "KILL" }],
  kept: [{ pid: 13, command: "keeper" }],
  left_alone: [{ pid: 14, command: "tail", why: "inborn" }],
  unsignalable: [],
  output: {
    stdout_bytes: 0,
    stderr_bytes: 3,
    last_output_at: null,
    is_copied: true,
    write_error: null,
  },
  log: { path: "/l", kept_bytes: 3, omitted_bytes: 0, dropped_bytes: 0, because: null },
  degraded: [],
  dropped_lines: 0,
  watchdog: { version: "0.1.0", commit: "unknown" },
} as const satisfies RunRecord;

/** Does not compile when the record that is written has other fields than the promised one. */
type SchemaField = keyof typeof resultSchema.shape;
const UNPROMISED: [Exclude<keyof RunRecord, SchemaField>] extends [never] ? 0 : never = 0;
const UNWRITTEN: [Exclude<SchemaField, keyof RunRecord>] extends [never] ? 0 : never = 0;

const RUNNING = {
  ...ENDED,
  state: "running",
  outcome: null,
  because: null,
  exit_status: null,
  status_of: null,
  signal: null,
  ended_at: null,
  duration_ms: null,
  log: null,
};

function isTaken(record: unknown): boolean {
  return resultSchema.safeParse(record).success;
}

describe("a record", () => {
  test("of a run that runs or has ended is taken, with fields of later versions", () => {
    expect([UNPROMISED, UNWRITTEN]).toEqual([0, 0]);
    expect(isTaken(ENDED)).toBe(true);
    expect(isTaken(RUNNING)).toBe(true);
    const later = { ...ENDED, later: 1, limits: { ...ENDED.limits, later: 1 } };
    expect(resultSchema.parse(later)).toEqual(later as never);
    expect(isTaken({ ...ENDED, command_bytes: ["c2xlZXA=", "/w=="] })).toBe(true);
  });

  test("is refused when any field but command_bytes is missing", () => {
    for (const field of Object.keys(ENDED)) {
      const { [field as "job"]: _left, ...rest } = ENDED;
      expect([field, isTaken(rest)]).toEqual([field, false]);
    }
  });

  test("is refused when it contradicts itself or uses a word of no list", () => {
    const wrong = [
      { ...RUNNING, outcome: "ok" },
      { ...ENDED, outcome: null },
      { ...ENDED, ended_at: null },
      { ...RUNNING, ended_at: ENDED.ended_at },
      { ...ENDED, outcome: "killed" },
      { ...ENDED, because: "whatever" },
      { ...ENDED, format: 2 },
      { ...ENDED, exit_status: 256 },
      { ...ENDED, command: [] },
      { ...ENDED, command_bytes: ["*"] },
      { ...ENDED, run_id: "x" },
    ];
    for (const record of wrong) expect(isTaken(record)).toBe(false);
  });
});

test("every field is described in one clause, with its parts behind it", () => {
  const fields = listFields();
  const paths = fields.map((field) => field.path);
  const own = Object.keys(resultSchema.shape);
  expect(paths.filter((path) => !/[.[]/.test(path))).toEqual(own);
  expect(paths).toContain("limits.timeout_ms");
  expect(paths).toContain("signals[].to");
  expect(paths).toContain("log.dropped_bytes");
  for (const { path, meaning } of fields) {
    expect([path, /^\S.*[^.\s]$/.test(meaning)]).toEqual([path, true]);
  }
});
