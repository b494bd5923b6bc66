/**
 * The contract of `--result-file`: what is taken, what is not, what is described.
 */

import { describe, expect, test } from "bun:test";
import { listFields, RESULT_REASONS, resultSchema } from "../../../src/cli/result-schema.ts";
import { ABANDONED_BECAUSE } from "../../../src/core/burial.ts";
import type { RunRecord } from "../../../src/core/run-record.ts";

const ENDED = {
  format: 1,
  run_id: "01900000-0000-7000-8000-000000000000",
  run_path: "01900000-0000-7000-8000-000000000000",
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
  paused_ms: 0,
  leases: [{ kind: "job", name: "nightly", generation: 7 }],
  held_by: null,
  guard: true,
  limits: { timeout_ms: 5_000, idle_timeout_ms: null, not_after: "06:00:00" },
  dependencies: [
    {
      name: "server",
      role: "liveness",
      target: "http://127.0.0.1:8080/health",
      policy: "pause",
      state: "half-open",
      probes: 7,
      failed_probes: 3,
      last_because: "http-status",
      last_detail: "status 503",
      last_at: "2026-01-01T00:00:04.000Z",
    },
  ],
  signals: [{ signal: "TERM", at_ms: 5_000, to: "tree", count: 1, why: "limit" }],
  leftovers: [{ pid: 12, command: "redis-server", ended_by: "KILL" }],
  kept: [{ pid: 13, command: "keeper" }],
  left_alone: [{ pid: 14, command: "tail", why: "inborn" }],
  unsignalable: [],
  steps: null,
  items: {
    ok: 3,
    failed: 1,
    total: 10,
    checkpoint: "tables",
    ignored: 0,
    rate_per_minute: 2.5,
    last_message: "t4: no such table",
  },
  output: {
    stdout_bytes: 0,
    stderr_bytes: 3,
    last_output_at: null,
    is_copied: true,
    write_error: null,
  },
  log: { path: "/l", kept_bytes: 3, omitted_bytes: 0, dropped_bytes: 0, because: null },
  checks: [
    {
      check: "expect-file",
      target: "out",
      passed: true,
      because: null,
      found: "3 bytes",
      expected: "a file",
    },
  ],
  artifacts: [
    {
      path: "/w/out",
      target: "out",
      files: 1,
      bytes: 3,
      changed_at: "2026-01-01T00:00:00.000Z",
    },
  ],
  suspicions: [{ measure: "output_bytes", value: 2, usual: 9_000, spread: 1.1, runs: 7 }],
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

const HOLDER = {
  key: "job:nightly",
  because: "beat-fresh",
  run_id: "01900000-0000-7000-8000-000000000001",
  runner: "me@here",
  pid: 9,
  since: "2026-01-01T00:00:00.000Z",
};
const LOCKED = {
  ...ENDED,
  outcome: "locked",
  because: "lease-held",
  exit_status: 75,
  signal: null,
  child_pid: null,
  leases: [],
  held_by: HOLDER,
  guard: false,
} as const satisfies RunRecord;

const [DEPENDENCY] = ENDED.dependencies;

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

  test("of a run that was refused names the holder, as far as its record could be read", () => {
    expect(isTaken(LOCKED)).toBe(true);
    const unread = { ...HOLDER, run_id: null, runner: null, pid: null, since: null };
    expect(isTaken({ ...LOCKED, held_by: unread })).toBe(true);
    expect(isTaken({ ...LOCKED, held_by: null })).toBe(true);
  });

  test("of a dependency that was down says why, and what is known of it", () => {
    const unasked = { ...DEPENDENCY, last_because: null, last_detail: null, last_at: null };
    const down = { ...ENDED, outcome: "dependency_down", exit_status: 69, paused_ms: 2_000.5 };
    const reasons = ["circuit-opened", "max-attempts", "max-elapsed", "circuit-open"];
    for (const because of [...reasons, "trial-failed", "startup-wait"]) {
      const record = { ...down, because, dependencies: [{ ...unasked, probes: 0 }] };
      expect([because, isTaken(record)]).toEqual([because, true]);
    }
  });

  test("of a run whose watchdog was killed has an outcome and no status", () => {
    const abandoned = { outcome: "abandoned", because: ABANDONED_BECAUSE, signal: null };
    const unseen = { exit_status: null, status_of: null, duration_ms: null };
    expect(isTaken({ ...ENDED, ...abandoned, ...unseen })).toBe(true);
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
      { ...ENDED, leases: [{ kind: "job", name: "nightly", generation: 0 }] },
      { ...ENDED, held_by: HOLDER },
      { ...RUNNING, held_by: HOLDER },
      { ...LOCKED, held_by: { ...HOLDER, run_id: "x" } },
      { ...LOCKED, held_by: { ...HOLDER, because: null } },
      { ...ENDED, paused_ms: -1 },
      { ...ENDED, paused_ms: null },
      ...Object.keys(DEPENDENCY).map((field) => {
        const { [field as "name"]: _left, ...rest } = DEPENDENCY;
        return { ...ENDED, dependencies: [rest] };
      }),
      { ...ENDED, dependencies: [{ ...DEPENDENCY, state: "stuck" }] },
      { ...ENDED, dependencies: [{ ...DEPENDENCY, role: "startup" }] },
      { ...ENDED, dependencies: [{ ...DEPENDENCY, policy: "go" }] },
      { ...ENDED, dependencies: [{ ...DEPENDENCY, probes: -1 }] },
    ];
    for (const record of wrong) expect(isTaken(record)).toBe(false);
  });
});

test("a field with few words lists them once, whether or not it may be null", () => {
  const meanings = new Map(listFields().map(({ path, meaning }) => [path, meaning]));
  expect(meanings.get("status_of")).toBe("whose status that is; one of `command`, `watchdog`");
  expect(meanings.get("state")).toBe("`running` from the start, `ended` at the end");
  expect(meanings.get("dependencies[].policy")).toEndWith("; one of `stop`, `pause`, `notify`");
  expect(meanings.get("leftovers[].ended_by")).toEndWith("; one of `TERM`, `KILL`");
  // Longer lists are tables of their own.
  expect(meanings.get("because")).not.toContain("`exited`");
  const listed = listFields().filter(({ meaning }) => meaning.includes("; one of `"));
  expect(listed.map(({ path }) => path)).toEqual([
    "status_of",
    "dependencies[].role",
    "dependencies[].policy",
    "dependencies[].state",
    "signals[].to",
    "leftovers[].ended_by",
  ]);
});

test("every reason of the record is explained in one clause", () => {
  const words = RESULT_REASONS.map(({ because }) => because);
  for (const because of words) expect(isTaken({ ...ENDED, because })).toBe(true);
  expect([words.length > 20, new Set(words).size]).toEqual([true, words.length]);
  for (const { because, meaning } of RESULT_REASONS) {
    expect([because, /^\S.*[^.\s]$/.test(meaning)]).toEqual([because, true]);
  }
});

test("every field is described in one clause, with its parts behind it", () => {
  const fields = listFields();
  const paths = fields.map((field) => field.path);
  const own = Object.keys(resultSchema.shape);
  expect(paths.filter((path) => !/[.[]/.test(path))).toEqual(own);
  expect(paths).toContain("limits.timeout_ms");
  expect(paths).toContain("signals[].to");
  expect(paths).toContain("log.dropped_bytes");
  expect(paths).toContain("leases[].generation");
  expect(paths).toContain("held_by.runner");
  expect(paths).toContain("dependencies[].last_because");
  for (const { path, meaning } of fields) {
    expect([path, /^\S.*[^.\s]$/.test(meaning)]).toEqual([path, true]);
  }
});
