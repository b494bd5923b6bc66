/** What a run is judged by when its command has said 0: its own time, and its own good runs. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Expectations, NO_EXPECTATIONS } from "../../src/core/expectations.ts";
import type { RunRecord } from "../../src/core/run-record.ts";
import type { GoodRun } from "../../src/journal/good-runs.ts";
import { monotonicNow } from "../../src/os/clock.ts";
import { lookAtFiles } from "../../src/run/checks/expected-files.ts";
import { judgeRun } from "../../src/run/checks/run-checks.ts";
import type { Course } from "../../src/run/course.ts";
import type { RunOutput } from "../../src/run/output.ts";
import { endedRecord } from "../support/journal-scene.ts";

const cwd = mkdtempSync(join(tmpdir(), "watchdog-judged-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const NO_OUTPUT = {
  stdout_bytes: null,
  stderr_bytes: null,
  last_output_at: null,
  is_copied: false,
  write_error: null,
};
const output = {
  read: () => Promise.resolve(undefined),
  summary: () => NO_OUTPUT,
} as unknown as RunOutput;

interface Given {
  readonly asked: Partial<Expectations>;
  readonly tookMs: number;
  readonly pausedMs?: number;
  readonly good?: readonly GoodRun[];
  /** What the command does to its files. */
  readonly act?: () => void;
}

async function judge({ asked, tookMs, pausedMs = 0, good = [], act }: Given) {
  const options: Expectations = { ...NO_EXPECTATIONS, ...asked };
  const before = await lookAtFiles(cwd, options.expectFiles, "start");
  act?.();
  const course = {
    options,
    identity: { cwd, jobName: "nightly", startedAt: monotonicNow() - tookMs, startedWallAt: 0 },
    journal: { goodRuns: () => good },
    ledger: { pausedMs },
    request: {},
  } as unknown as Course;
  const { failedChecks, results } = await judgeRun(course, output, before);
  return [failedChecks, results.suspicions.map(({ measure }) => measure)];
}

function goodRun(changes: Partial<RunRecord>, isOk = true): GoodRun {
  return { isOk, record: endedRecord(1, { outcome: "ok", ...changes }) };
}

test("the time for which a run was paused is none of its own", async () => {
  const asked = { minDurationMs: 60_000 };
  expect(await judge({ asked, tookMs: 70_000 })).toEqual([[], []]);
  expect(await judge({ asked, tookMs: 70_000, pausedMs: 50_000 })).toEqual([["too-short"], []]);
});

test("nor is it that of the good runs with which it is compared", async () => {
  const hour = { duration_ms: 3_600_000, paused_ms: 3_500_000 };
  const good = Array.from({ length: 9 }, () => goodRun(hour));
  expect(await judge({ asked: {}, tookMs: 100_000, good })).toEqual([[], []]);
  expect(await judge({ asked: {}, tookMs: 3_600_000, pausedMs: 3_500_000, good })).toEqual([
    [],
    [],
  ]);
  expect(await judge({ asked: {}, tookMs: 3_600_000, good })).toEqual([[], ["duration_ms"]]);
});

test("a file is measured by the last good run, not by one that --strict refused", async () => {
  const target = "dump";
  const asked = { expectFiles: [{ target, minBytes: 1, isAnyAge: false, minRatio: 0.5 }] };
  const of = (bytes: number) => [{ path: "", target, files: 1, bytes, changed_at: "" }];
  const good = [goodRun({ artifacts: of(10) }, false), goodRun({ artifacts: of(1_000) })];
  const act = (bytes: number) => () => writeFileSync(join(cwd, target), "x".repeat(bytes));
  const took = { asked, tookMs: 1_000, good };
  expect(await judge({ ...took, act: act(499) })).toEqual([["file-shrunk"], []]);
  expect(await judge({ ...took, act: act(500) })).toEqual([[], []]);
  // Nothing to compare with is no failure.
  expect(await judge({ ...took, good: [], act: act(5) })).toEqual([[], []]);
});
