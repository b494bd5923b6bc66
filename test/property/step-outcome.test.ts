/**
 * What follows from the end of a step, for every way in which one ends, against a table written by
 * hand: exactly one line fits each case.
 */
import { describe, expect, test } from "bun:test";
import {
  decideStepEnd,
  endOfNestedRun,
  gatherArtifacts,
  type NestedRun,
  type StepArtifacts,
  type StepEnd,
} from "../../src/core/step-outcome.ts";
import type { MonotonicAt } from "../../src/core/time.ts";
import { left, step } from "../support/job-specs.ts";
import { combine, compareTable, parseTable } from "../support/word-tables.ts";

/** What follows: kind, reason, status. */
const TABLE = `
end        stopped effects artifacts tries follows
ok         no      *       good      *     done exited
ok         yes     *       *         *     interrupted stopped
ok         no      none    missing   more  retry artifact-missing 65
ok         no      none    missing   last  failed artifact-missing 65
ok         no      unsafe  missing   *     failed artifact-missing 65
ok         no      none    unlooked  more  retry artifact-unreadable 65
ok         no      none    unlooked  last  failed artifact-unreadable 65
ok         no      unsafe  unlooked  *     failed artifact-unreadable 65
status-7   yes     *       *         *     interrupted stopped
status-7   no      *       *         more  retry exited 7
status-7   no      *       *         last  failed exited 7
status-64  yes     *       *         *     interrupted stopped
status-64  no      *       *         *     failed exited 64
status-126 yes     *       *         *     interrupted stopped
status-126 no      *       *         *     failed exited 126
status-127 yes     *       *         *     interrupted stopped
status-127 no      *       *         *     failed exited 127
status-128 yes     *       *         *     interrupted stopped
status-128 no      *       *         more  retry exited 128
status-128 no      *       *         last  failed exited 128
status-255 yes     *       *         *     interrupted stopped
status-255 no      *       *         more  retry exited 255
status-255 no      *       *         last  failed exited 255
status-137 yes     *       *         *     interrupted stopped
status-137 no      none    *         more  retry exited 137
status-137 no      none    *         last  failed exited 137
status-137 no      unsafe  *         *     interrupted killed-by-signal
status-192 yes     *       *         *     interrupted stopped
status-192 no      none    *         more  retry exited 192
status-192 no      none    *         last  failed exited 192
status-192 no      unsafe  *         *     interrupted killed-by-signal
signal-9   yes     *       *         *     interrupted stopped
signal-9   no      none    *         more  retry killed-by-signal 137
signal-9   no      none    *         last  failed killed-by-signal 137
signal-9   no      unsafe  *         *     interrupted killed-by-signal
time-limit yes     *       *         *     interrupted stopped
time-limit no      none    *         more  retry timeout 124
time-limit no      none    *         last  failed timeout 124
time-limit no      unsafe  *         *     interrupted timeout
not-found  *       *       *         *     failed not-found 127
no-program *       *       *         *     failed not-executable 126
no-fork    yes     *       *         *     failed not-started 125
no-fork    no      *       *         more  retry not-started 125
no-fork    no      *       *         last  failed not-started 125
run-none   yes     *       *         *     failed not-started 69
run-none   no      *       *         more  retry not-started 69
run-none   no      *       *         last  failed not-started 69
run-all    yes     *       *         *     interrupted stopped
run-all    no      none    *         more  retry run-failed 65
run-all    no      none    *         last  failed run-failed 65
run-all    no      unsafe  *         *     failed run-failed 65
run-part   yes     *       *         *     interrupted stopped
run-part   no      none    *         more  retry run-failed 69
run-part   no      none    *         last  failed run-failed 69
run-part   no      unsafe  *         *     interrupted run-failed
ended-none *       none    *         *     interrupted stopped
ended-none *       unsafe  *         *     failed not-started 143
ended-part *       *       *         *     interrupted stopped
`;

const ENDS: Readonly<Record<string, StepEnd>> = {
  ok: { kind: "exited", code: 0 },
  ...Object.fromEntries(
    [7, 64, 126, 127, 128, 137, 192, 255].map((code) => [
      `status-${code}`,
      { kind: "exited", code } as const,
    ]),
  ),
  "signal-9": { kind: "signaled", signal: 9 },
  "time-limit": { kind: "timed-out" },
  "not-found": { kind: "not-started", because: "not-found" },
  "no-program": { kind: "not-started", because: "not-executable" },
  "no-fork": { kind: "not-started", because: "system" },
  "run-none": { kind: "run-failed", status: 69, work: "none" },
  "run-all": { kind: "run-failed", status: 65, work: "all" },
  "ended-none": { kind: "run-stopped", status: 143, work: "none" },
  "ended-part": { kind: "run-stopped", status: 143, work: "part" },
  "run-part": { kind: "run-failed", status: 69, work: "part" },
};

const ARTIFACTS: Readonly<Record<string, StepArtifacts | undefined>> = {
  good: { kind: "good", artifacts: [left("s", "out")] },
  missing: { kind: "bad", because: "artifact-missing", detail: "out: is not there" },
  unlooked: undefined,
};

const COLUMNS: readonly (readonly string[])[] = [
  Object.keys(ENDS),
  ["yes", "no"],
  ["none", "unsafe"],
  Object.keys(ARTIFACTS),
  ["more", "last"],
];

function decide([end = "", stopped, effects, artifacts = "", tries]: readonly string[]): string {
  const found = ENDS[end];
  if (found === undefined) throw new Error(`no end ${end}`);
  const backoff = { ...step("s").backoff, initialMs: 100, capMs: 100, maxAttempts: 3 };
  const attempts = tries === "more" ? 2 : 3;
  const decision = decideStepEnd(
    {
      end: found,
      isStopped: stopped === "yes",
      sideEffects: effects === "unsafe" ? "unsafe" : "none",
      artifacts: ARTIFACTS[artifacts],
      backoff,
      attempts: { startedAt: 0 as MonotonicAt, attempts, waits: attempts - 1 },
    },
    { nowMs: 5 as MonotonicAt, random: 0.5 },
  );
  if (decision.kind === "retry")
    expect([decision.delayMs, decision.attempts.attempts]).toEqual([50, 3]);
  const status = "status" in decision ? ` ${decision.status}` : "";
  return `${decision.kind} ${decision.because}${status}`;
}

test("what follows from every end is what the table says", () => {
  const { wrong, unused } = compareTable(parseTable(TABLE), combine(COLUMNS), decide);
  expect(wrong.slice(0, 3)).toEqual([]);
  expect(unused).toEqual([]);
});

test("artifacts are good together where each one is, else the first bad one speaks", () => {
  const { step: _, ...list } = left("s", "list");
  const good = { kind: "good", artifact: list } as const;
  const bad = { kind: "bad", because: "artifact-empty", detail: "out: is empty" } as const;
  const worse = { kind: "bad", because: "artifact-missing", detail: "x: is not there" } as const;
  expect(gatherArtifacts("s", [])).toEqual({ kind: "good", artifacts: [] });
  expect(gatherArtifacts("s", [good])).toEqual({ kind: "good", artifacts: [left("s", "list")] });
  expect(gatherArtifacts("s", [good, bad, worse])).toEqual(bad);
});

describe("the run around a command", () => {
  const exited = (code: number) => ({ kind: "exited", code }) as const;
  const killed = { kind: "signaled", signal: 9 } as const;
  const failed = (status: number, work: string) => ({ kind: "run-failed", status, work });

  const stopped = (status: number, work: string) => ({ kind: "run-stopped", status, work });

  test.each<[NestedRun["outcome"], number, boolean, StepEnd | undefined, object]>([
    ["ok", 0, true, exited(0), exited(0)],
    ["ok", 3, true, exited(3), exited(0)],
    ["failed", 7, true, exited(7), exited(7)],
    ["failed", 0, true, exited(0), failed(125, "part")],
    ["failed", 7, true, undefined, failed(7, "part")],
    ["signaled", 137, true, killed, killed],
    ["stopped", 143, true, killed, stopped(143, "part")],
    ["stopped", 7, true, exited(7), stopped(7, "part")],
    ["stopped", 0, true, exited(0), stopped(143, "part")],
    ["stopped", 143, false, undefined, stopped(143, "none")],
    ["timeout", 124, true, killed, { kind: "timed-out" }],
    ["idle_timeout", 124, true, killed, { kind: "timed-out" }],
    ["not_found", 127, false, undefined, { kind: "not-started", because: "not-found" }],
    ["not_executable", 126, false, undefined, { kind: "not-started", because: "not-executable" }],
    ["bad_output", 65, true, exited(0), failed(65, "all")],
    ["bad_output", 65, true, exited(143), failed(65, "part")],
    ["bad_output", 65, true, killed, failed(65, "part")],
    ["dependency_down", 69, false, undefined, failed(69, "none")],
    ["dependency_down", 69, true, killed, failed(69, "part")],
    ["lease_lost", 76, true, killed, failed(76, "part")],
    ["config_error", 78, false, undefined, failed(78, "none")],
    ["wrapper_error", 125, true, undefined, failed(125, "part")],
    ["abandoned", 137, false, undefined, failed(137, "part")],
    ["abandoned", 137, true, undefined, failed(137, "part")],
    [undefined, 137, false, undefined, failed(137, "part")],
  ])("that ended as %s with %d (started: %p) is read as it must be", (...row) => {
    const [outcome, status, wasStarted, end, expected] = row;
    const ended = end?.kind === "exited" || end?.kind === "signaled" ? end : undefined;
    expect(endOfNestedRun({ outcome, status, wasStarted, end: ended })).toEqual(
      expected as StepEnd,
    );
  });
});
