/**
 * `watchdog report` for people: last night on one screen. Pure text from a view; decides nothing.
 */

import { escapeUnprintable } from "../core/printable.ts";
import { placeIn } from "../os/own-line.ts";
import type { JobReport, ReportedRun, RunReport } from "../core/run-report.ts";
import type { ReportView } from "../inspect/report.ts";
import {
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
  UNKNOWN,
} from "./render-words.ts";

/** What needs a person first, then every job, one line each. */
export function renderReport(view: ReportView): string {
  const blocks = [[renderHead(view)], renderNeeds(view), renderJobs(view)];
  return blocks
    .filter((block) => block.length > 0)
    .map(renderLines)
    .join("\n");
}

function renderHead(view: ReportView): string {
  const { since, until, totals } = view.report;
  const span = `${renderInstant(since)} to ${renderInstant(until)}`;
  if (totals.runs === 0) return `${span}: ${describeNoRuns(view)}`;
  return `${span}: ${renderCount(totals.runs, "run", "runs")}: ${describeCounts(totals)}`;
}

/** A journal that cannot be read says nothing, and not that there was nothing. */
export function describeNoRuns({ isReadable }: Pick<ReportView, "isReadable">): string {
  return isReadable ? "nothing has run" : "what has run cannot be told";
}

export function describeNoNeeds({ isReadable }: Pick<ReportView, "isReadable">): string {
  return isReadable ? "nothing needs a person" : "what needs a person cannot be told";
}

/** `3 good, 1 bad, 2 skipped`: what there is none of is left out. */
export function describeCounts(counts: Omit<RunReport["totals"], "runs">): string {
  const named = [
    [counts.good, "good"],
    [counts.bad, "bad"],
    [counts.stopped, "stopped"],
    [counts.skipped, "skipped"],
    [counts.partial, "of one step (--only)"],
    [counts.running, "running"],
  ] as const;
  return named.flatMap(([count, name]) => (count > 0 ? `${count} ${name}` : [])).join(", ");
}

function renderNeeds(view: ReportView): string[] {
  const { needs } = view.report;
  if (needs.length === 0) return [describeNoNeeds(view)];
  const rows = needs.map(({ job, text }) => [`  ${job ?? UNKNOWN}`, text]);
  const head = `${renderCount(needs.length, "thing needs", "things need")} a person`;
  const [named] = needs.flatMap(({ job }) => job ?? []);
  const hint =
    named === undefined ? [] : [`  hint: ${placeIn(`watchdog why ${escapeUnprintable(named)}`)}`];
  return [head, ...renderColumns(rows), ...hint];
}

function renderJobs({ report, omittedJobs }: ReportView): string[] {
  if (report.jobs.length === 0) return [];
  const head = ["job", "last", "status", "began", "took", "usually", "runs", ""];
  const rows = renderColumns([head, ...report.jobs.map(jobCells)]);
  if (omittedJobs === 0) return rows;
  return [...rows, `and ${renderCount(omittedJobs, "job more", "jobs more")}`];
}

function jobCells(job: JobReport): string[] {
  const { last } = job;
  return [
    job.job,
    describeLast(job),
    last === undefined || last.exitStatus === null ? UNKNOWN : String(last.exitStatus),
    last === undefined ? UNKNOWN : renderInstant(last.startedAt),
    renderSpanText(last?.durationMs),
    renderSpanText(job.usualMs),
    describeCounts(job),
    describeExtras(job).join("; "),
  ];
}

/** The word for how it ended, or that it has only been skipped. */
function describeLast(job: JobReport): string {
  const { last, isLastWithin } = job;
  if (last === undefined) return wordOfNone(job);
  return isLastWithin ? wordOf(last) : `${wordOf(last)} before`;
}

/** Of a job without a run that says something about it. */
export function wordOfNone({ partial }: Pick<JobReport, "partial">): string {
  return partial > 0 ? "never as a whole" : "never ran";
}

export function wordOf({ fate, outcome }: ReportedRun): string {
  if (fate === "running" || fate === "unfinished") return fate;
  return outcome ?? UNKNOWN;
}

/** Skips with their reason, and what a run has left or done again. */
export function describeExtras({ skippedBecause, leftovers, retries }: JobReport): string[] {
  return [
    ...(skippedBecause === undefined ? [] : [`skipped: ${skippedBecause}`]),
    ...(leftovers === 0 ? [] : [`left processes ${renderCount(leftovers, "time", "times")}`]),
    ...(retries === 0 ? [] : [renderCount(retries, "call retried", "calls retried")]),
  ];
}
