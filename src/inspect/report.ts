/**
 * What has happened since a moment, job by job: gathers for `watchdog report`; what is good and
 * what needs a person is decided in core/run-report.ts.
 *
 * Always: read only, but that the journal reads its spool in; without a state directory the report
 * is empty. Clock: the wall clock, as `now`; the pids of running rows are looked up in /proc.
 */
import {
  decideFate,
  type Fate,
  type JobFacts,
  makeReport,
  type Need,
  type ReportedRun,
  type RunReport,
} from "../core/run-report.ts";
import { describeSuspicion } from "../core/check-words.ts";
import { describeHolder } from "../core/in-the-way.ts";
import {
  type JobRows,
  readReportRows,
  type ReportRows,
  type RunGlance,
} from "../journal/report-queries.ts";
import { isRefusedByJob } from "../core/refused-start.ts";
import { renderIso } from "../core/time.ts";
import type { JournalRun } from "../journal/queries.ts";
import { readBrokenCircuits } from "./circuits.ts";
import { isGoingOn, viewAnswer } from "./journal-runs.ts";
import { findPlaceTroubles } from "./lease-places.ts";

export interface ReportQuestion {
  readonly stateDirectory: string;
  /** What else needs somebody, as others have found it. */
  readonly others: readonly Need[];
  /** Wall-clock milliseconds. */
  readonly since: number;
  readonly now: number;
}

export interface ReportView {
  readonly stateDirectory: string;
  readonly report: RunReport;
  /** Of the span, newest first: the time line. */
  readonly runs: readonly ReportedRun[];
  readonly omittedRuns: number;
  readonly omittedJobs: number;
  /** False: there is a journal, and nothing can be had from it. */
  readonly isReadable: boolean;
  readonly troubles: readonly string[];
}

const NO_ROWS: ReportRows = { jobs: [], omittedJobs: 0, runs: [], omittedRuns: 0 };

export function readReport({ stateDirectory, since, now, ...asked }: ReportQuestion): ReportView {
  const answer = viewAnswer(readReportRows(stateDirectory, since), NO_ROWS);
  const broken = readBrokenCircuits(stateDirectory);
  const { jobs, runs, omittedJobs, omittedRuns } = answer.value;
  const circuits = broken.circuits.map(({ circuit }): Need => {
    const text = `the circuit ${circuit.name} is ${circuit.state}`;
    return { job: null, because: "other", text };
  });
  const names = new Set(jobs.map(({ job }) => job));
  const facts = jobs.map((rows) => ({
    ...gatherFacts(rows, since),
    isStep: isStepOf(rows, names),
  }));
  return {
    stateDirectory,
    report: makeReport({ since, until: now }, facts, [...asked.others, ...circuits]),
    runs: runs.map(glance),
    omittedRuns,
    omittedJobs,
    isReadable: answer.isReadable,
    troubles: [
      ...findPlaceTroubles(stateDirectory),
      ...new Set([...answer.troubles, ...broken.troubles]),
    ],
  };
}

/** `nightly/upload`, run within a run, where `nightly` is reported, too. */
function isStepOf({ job, last }: JobRows, names: ReadonlySet<string>): boolean {
  const isNested = last !== undefined && last.runPath.includes("/");
  return isNested && [...names].some((name) => job.startsWith(`${name}/`));
}

function gatherFacts(rows: JobRows, since: number): Omit<JobFacts, "isStep"> {
  const { job, runs, good, stopped, skipped, partial, last, lastSkip, events } = rows;
  const lastFates = rows.lastRuns.map(fateOf);
  const running = lastFates.filter((fate) => fate === "running").length;
  return {
    job,
    counts: { runs, good, stopped, skipped, partial, running },
    last: last === undefined ? undefined : glance(last),
    isLastWithin: last !== undefined && (last.startedAt >= since || last.state === "running"),
    goodDurationsMs: rows.goodDurationsMs,
    lastFates,
    skippedBecause: lastSkip === undefined ? undefined : describeSkip(lastSkip),
    isRefusedByJob: lastSkip !== undefined && isRefusedByJob(lastSkip),
    leftovers: events["leftovers"] ?? 0,
    retries: events["retried"] ?? 0,
    unsignalable: last?.record?.unsignalable ?? [],
    suspicions: (last?.record?.suspicions ?? []).map(describeSuspicion),
  };
}

function describeSkip(run: JournalRun): string {
  return isRefusedByJob(run) ? BY_ITS_JOB : describeHolder(run.record?.held_by ?? null);
}

const BY_ITS_JOB = "its job cannot be gone on with as it was asked to";

function fateOf(run: RunGlance): Fate {
  return decideFate(run, run.state === "running" && isGoingOn(run));
}

function glance(run: RunGlance): ReportedRun {
  const { runId, job, outcome, because, exitStatus, startedAt, endedAt, durationMs } = run;
  const fate = fateOf(run);
  return { runId, job, fate, outcome, because, exitStatus, startedAt, endedAt, durationMs };
}

/** As `report --json` shows it. A contract; ignore unknown fields. */
export function showReport(view: ReportView): Record<string, unknown> {
  const { report } = view;
  return {
    format: 1,
    state_directory: view.stateDirectory,
    since: new Date(report.since).toISOString(),
    until: new Date(report.until).toISOString(),
    totals: report.totals,
    jobs: report.jobs.map((job) => ({
      job: job.job,
      runs: job.runs,
      good: job.good,
      bad: job.bad,
      stopped: job.stopped,
      skipped: job.skipped,
      partial: job.partial,
      running: job.running,
      last: job.last === undefined ? null : showRun(job.last),
      is_last_within: job.isLastWithin,
      usual_ms: job.usualMs ?? null,
      failures_in_row: job.failuresInRow,
      skipped_because: job.skippedBecause ?? null,
      leftovers: job.leftovers,
      retries: job.retries,
      needs: job.needs.map(showNeed),
    })),
    needs: report.needs.map(showNeed),
    runs: view.runs.map(showRun),
    omitted_runs: view.omittedRuns,
    omitted_jobs: view.omittedJobs,
    troubles: view.troubles,
  };
}

function showNeed({ job, because, text }: Need): Record<string, unknown> {
  return { job, because, text };
}

function showRun(run: ReportedRun): Record<string, unknown> {
  const instant = (at: number | null): string | null => (at === null ? null : renderIso(at));
  return {
    run_id: run.runId,
    job: run.job,
    fate: run.fate,
    outcome: run.outcome,
    because: run.because,
    exit_status: run.exitStatus,
    started_at: instant(run.startedAt),
    ended_at: instant(run.endedAt),
    duration_ms: run.durationMs,
  };
}
