/** What the report of a morning says of each job, and what needs a person. */
import { describe, expect, test } from "bun:test";
import {
  decideFate,
  type Fate,
  type JobFacts,
  makeReport,
  medianOf,
  type ReportedRun,
} from "../../../src/core/run-report.ts";

const SPAN = { since: 0, until: 1_000 };

function runOf(fate: Fate, change: Partial<ReportedRun> = {}): ReportedRun {
  return {
    runId: "r",
    job: "j",
    fate,
    outcome: fate === "bad" ? "failed" : null,
    because: "exited",
    exitStatus: null,
    startedAt: 500,
    endedAt: null,
    durationMs: null,
    ...change,
  };
}

function factsOf(change: Partial<JobFacts> & { readonly fates?: readonly Fate[] } = {}): JobFacts {
  const { fates = ["good"], ...rest } = change;
  const count = (fate: Fate): number => fates.filter((one) => one === fate).length;
  const own = fates.filter((fate) => fate !== "skipped" && fate !== "partial");
  const [last] = own;
  return {
    job: "j",
    isStep: false,
    counts: {
      runs: fates.length,
      good: count("good"),
      stopped: count("stopped"),
      skipped: count("skipped"),
      partial: count("partial"),
      running: count("running"),
    },
    last: last === undefined ? undefined : runOf(last),
    isLastWithin: true,
    goodDurationsMs: [],
    lastFates: own,
    skippedBecause: undefined,
    isRefusedByJob: false,
    leftovers: 0,
    retries: 0,
    unsignalable: [],
    suspicions: [],
    ...rest,
  };
}

test("every outcome has one fate: a skip is no failure, and a request is neither", () => {
  const table: readonly (readonly [string | null, Fate])[] = [
    ["ok", "good"],
    ["locked", "skipped"],
    ["stopped", "stopped"],
    ["failed", "bad"],
    ["signaled", "bad"],
    ["timeout", "bad"],
    ["abandoned", "bad"],
    ["bad_output", "bad"],
    ["dependency_down", "bad"],
    [null, "bad"],
  ];
  for (const [outcome, fate] of table) {
    const ended = { state: "ended", outcome, because: "exited" } as const;
    expect([outcome, decideFate(ended, true)]).toEqual([outcome, fate]);
  }
  const refused = { state: "ended", outcome: "config_error" } as const;
  expect(decideFate({ ...refused, because: "job-refused" }, true)).toBe("skipped");
  expect(decideFate({ ...refused, because: "job-lost" }, true)).toBe("bad");
  const running = { state: "running", outcome: null, because: null } as const;
  expect(decideFate(running, true)).toBe("running");
  expect(decideFate(running, false)).toBe("unfinished");
  // Of a job of many steps one alone was asked for.
  const alone = { state: "ended", outcome: "ok", because: "only-done" } as const;
  expect(decideFate(alone, true)).toBe("partial");
});

describe("a job", () => {
  test("of which it is a step needs somebody in its place", () => {
    const needsOf = (isStep: boolean) =>
      makeReport(SPAN, [factsOf({ fates: ["bad"], isStep })], []).needs.length;
    expect([needsOf(true), needsOf(false)]).toEqual([0, 1]);
  });

  test("counts what is bad as all that is nothing else", () => {
    const fates = [
      "good",
      "bad",
      "skipped",
      "stopped",
      "running",
      "unfinished",
      "partial",
    ] as const;
    const { jobs, totals } = makeReport(SPAN, [factsOf({ fates })], []);
    const counts = { runs: 7, good: 1, bad: 2, stopped: 1, skipped: 1, partial: 1, running: 1 };
    expect(jobs[0]).toMatchObject(counts);
    expect(totals).toEqual(counts);
  });

  test("has failed so often in a row as nothing else came between, whatever runs now", () => {
    const rowOf = (fates: readonly Fate[]): number | undefined =>
      makeReport(SPAN, [factsOf({ fates })], []).jobs[0]?.failuresInRow;
    expect(rowOf(["good", "bad", "bad"])).toBe(0);
    expect(rowOf(["bad", "bad", "good", "bad"])).toBe(2);
    expect(rowOf(["running", "bad", "unfinished", "stopped", "bad"])).toBe(2);
    expect(rowOf(["bad", "bad"])).toBe(2);
    expect(rowOf([])).toBe(0);
  });

  test("needs a person for what it cannot mend by itself, and for nothing else", () => {
    const needsOf = (change: Parameters<typeof factsOf>[0]): unknown[] =>
      makeReport(SPAN, [factsOf(change)], []).needs.map(({ because, text }) => [because, text]);
    expect(needsOf({ fates: ["good", "bad"] })).toEqual([]);
    expect(needsOf({ fates: ["stopped"] })).toEqual([]);
    expect(needsOf({ fates: ["running", "bad"] })).toEqual([]);
    expect(needsOf({ fates: ["bad", "good"] })).toEqual([["failed", "failed"]]);
    expect(needsOf({ fates: ["bad", "bad"] })).toEqual([["failed", "failed, 2 times in a row"]]);
    const last = runOf("bad", { outcome: "timeout", because: "idle" });
    expect(needsOf({ fates: ["bad"], last })).toEqual([["failed", "timeout (idle)"]]);
    expect(needsOf({ fates: ["unfinished"] })[0]).toContain("unfinished");
    const unsignalable = [{ pid: 7, command: "stuck" }];
    expect(needsOf({ unsignalable })).toEqual([["not-ended", "could not be ended: 7 stuck"]]);
    expect(needsOf({ suspicions: ["duration", "output"] })).toEqual([
      ["suspicious", "said that all went well, and is unlike itself: duration, output"],
    ]);
    expect(needsOf({ fates: ["bad"], suspicions: ["duration"] })).toHaveLength(1);
    expect(needsOf({ fates: ["skipped", "skipped"] })).toEqual([]);
    expect(needsOf({ fates: ["skipped", "skipped", "skipped"] })).toEqual([
      ["always-skipped", "skipped 3 times, and has not run once"],
    ]);
    expect(needsOf({ fates: ["good", "skipped", "skipped", "skipped"] })).toEqual([]);
    // Where nothing else has run since, its job refuses the next start too.
    expect(needsOf({ fates: ["skipped"], isRefusedByJob: true })).toEqual([
      ["always-skipped", "refused by its job, and has not run once"],
    ]);
    expect(needsOf({ fates: ["skipped", "good"], isRefusedByJob: true })).toEqual([]);
    expect(needsOf({ fates: ["skipped", "bad"], isRefusedByJob: true })).toEqual([
      ["failed", "failed"],
    ]);
  });
});

test("jobs that need a person come first, then the newest; what is of no job comes last", () => {
  const at = (job: string, fate: Fate, startedAt: number): JobFacts => ({
    ...factsOf({ fates: [fate], last: runOf(fate, { job, startedAt }) }),
    job,
  });
  const other = { job: null, because: "other", text: "x" } as const;
  const jobs = [at("a", "good", 3), at("b", "bad", 1), at("d", "good", 9), at("c", "bad", 2)];
  const report = makeReport(SPAN, jobs, [other]);
  expect(report.jobs.map(({ job }) => job)).toEqual(["c", "b", "d", "a"]);
  expect(report.needs.map(({ job }) => job)).toEqual(["c", "b", null]);
});

test("usual is the median of three or more", () => {
  expect([medianOf([]), medianOf([1, 2])]).toEqual([undefined, undefined]);
  expect([medianOf([9, 1, 5]), medianOf([4, 1, 3, 2])]).toEqual([5, 2.5]);
  expect(medianOf([7, 7, 7, 1_000_000])).toBe(7);
});
