/**
 * `watchdog report --html`: the same report as one page that needs nothing but itself: no script,
 * no font, no picture and no request. Pure text from a view; decides nothing.
 *
 * Always: what comes from a job (names, commands, reasons) is escaped, so that it is text and never
 * markup; colours are told by words too.
 */

import { escapeUnprintable } from "../core/printable.ts";
import type { Fate, JobReport, ReportedRun } from "../core/run-report.ts";
import type { ReportView } from "../inspect/report.ts";
import {
  describeCounts,
  describeExtras,
  describeNoNeeds,
  describeNoRuns,
  wordOf,
  wordOfNone,
} from "./render-report.ts";
import { renderCount, renderInstant, renderSpanText, UNKNOWN } from "./render-words.ts";

/** Of the drawing: units of its own, stretched to the width of the page. */
const WIDTH = 1_000;
const NAME_WIDTH = 200;
const ROW_HEIGHT = 24;
const BAR_HEIGHT = 14;
const AXIS_HEIGHT = 22;
/** A run of a moment must be seen, too. */
const NARROWEST = 2.5;
/** Rows of the time line; the table has all jobs. */
const MOST_ROWS = 60;
const TICKS = 6;
/** Below this the day says nothing, and the seconds do. */
const SHORT_MS = 3_600_000;
const LONGEST_NAME = 28;

export function renderPage(view: ReportView): string {
  const { since, until, totals, needs } = view.report;
  const span = `${renderInstant(since)} to ${renderInstant(until)}`;
  const counts = totals.runs === 0 ? describeNoRuns(view) : describeCounts(totals);
  const head = needs.length === 0 ? describeNoNeeds(view) : describeNeedCount(needs.length);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>watchdog: ${escapeHtml(span)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${head.replace(/^./, (first) => first.toUpperCase())}</h1>
<p>${escapeHtml(span)} · ${renderCount(totals.runs, "run", "runs")} · ${escapeHtml(counts)}</p>
</header>
<main>
${renderNeeds(view)}${renderTimeLine(view)}${renderTable(view)}${renderTroubles(view)}</main>
</body>
</html>
`;
}

function describeNeedCount(count: number): string {
  return `${renderCount(count, "thing needs", "things need")} a person`;
}

function renderNeeds({ report: { needs } }: ReportView): string {
  if (needs.length === 0) return "";
  const items = needs.map(({ job, text }) => {
    const whose = job === null ? "" : `<strong>${escapeHtml(job)}</strong> `;
    return `<li>${whose}${escapeHtml(text)}</li>\n`;
  });
  return `<ul class="needs">\n${items.join("")}</ul>\n`;
}

/** A row a job, a bar a run, from the beginning of the span to its end. */
function renderTimeLine({ report, runs, omittedRuns }: ReportView): string {
  const jobs = report.jobs.filter((job) => job.runs > 0).slice(0, MOST_ROWS);
  if (jobs.length === 0) return "";
  const { since, until } = report;
  const scale = (at: number): number => {
    const share = (Math.min(Math.max(at, since), until) - since) / Math.max(1, until - since);
    return NAME_WIDTH + share * (WIDTH - NAME_WIDTH);
  };
  const height = jobs.length * ROW_HEIGHT + AXIS_HEIGHT;
  const rows = jobs.map((job, index) => {
    const own = runs.filter((run) => run.job === job.job).toReversed();
    const y = index * ROW_HEIGHT;
    const bars = own.map((run) => renderBar(run, { y, scale, until })).join("");
    const name = escapeHtml(shorten(job.job));
    const title = `<title>${escapeHtml(job.job)}</title>`;
    return `<text class="name" x="0" y="${y + 16}">${name}${title}</text>
<line x1="${NAME_WIDTH}" y1="${y + ROW_HEIGHT}" x2="${WIDTH}" y2="${y + ROW_HEIGHT}"/>
${bars}`;
  });
  const shown = Math.min(jobs.length, MOST_ROWS);
  const label = `Time line of ${renderCount(shown, "job", "jobs")}`;
  const left =
    omittedRuns === 0 ? "" : `<p class="note">${omittedRuns} older runs are left out.</p>\n`;
  return `<h2>Time line</h2>
<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${label}">
${rows.join("")}${renderTicks(since, until, { y: jobs.length * ROW_HEIGHT, scale })}</svg>
${renderLegend(runs)}${left}`;
}

interface Place {
  readonly y: number;
  readonly scale: (at: number) => number;
}

function renderBar(
  run: ReportedRun,
  { y, scale, until }: Place & { readonly until: number },
): string {
  const from = scale(run.startedAt);
  const to = scale(run.endedAt ?? (run.fate === "running" ? until : run.startedAt));
  const width = Math.max(NARROWEST, to - from);
  const top = y + (ROW_HEIGHT - BAR_HEIGHT) / 2;
  const took = run.durationMs === null ? "" : `, took ${renderSpanText(run.durationMs)}`;
  const title = `${run.job}: ${wordOf(run)}, ${renderInstant(run.startedAt)}${took}`;
  const x = Math.min(from, WIDTH - width);
  return (
    `<rect class="${run.fate}" x="${round(x)}" y="${top}" width="${round(width)}" ` +
    `height="${BAR_HEIGHT}" rx="2"><title>${escapeHtml(title)}</title></rect>\n`
  );
}

function renderTicks(since: number, until: number, { y, scale }: Place): string {
  const isShort = until - since < SHORT_MS;
  return Array.from({ length: TICKS + 1 }, (_, index) => {
    const at = since + ((until - since) * index) / TICKS;
    const x = round(scale(at));
    const anchor = index === 0 ? "start" : index === TICKS ? "end" : "middle";
    const text = isShort ? renderInstant(at).slice(11) : renderInstant(at).slice(5, 16);
    return `<text class="tick" x="${x}" y="${y + 16}" text-anchor="${anchor}">${text}</text>\n`;
  }).join("");
}

const FATES: readonly Fate[] = [
  "good",
  "bad",
  "stopped",
  "skipped",
  "partial",
  "running",
  "unfinished",
];

function renderLegend(runs: readonly ReportedRun[]): string {
  const there = FATES.filter((fate) => runs.some((run) => run.fate === fate));
  const items = there.map((fate) => `<span><i class="${fate}"></i>${fate}</span>`);
  return `<p class="legend">${items.join(" ")}</p>\n`;
}

const HEAD = ["Job", "Last", "Status", "Began", "Took", "Usually", "Runs", ""];

function renderTable({ report, omittedJobs }: ReportView): string {
  if (report.jobs.length === 0) return "";
  const more =
    omittedJobs === 0 ? "" : `<p class="note">${omittedJobs} more jobs are left out.</p>\n`;
  return `<h2>Jobs</h2>
<div class="wide"><table>
<thead><tr>${HEAD.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>
<tbody>
${report.jobs.map(renderRow).join("")}</tbody>
</table></div>
${more}`;
}

function renderRow(job: JobReport): string {
  const { last } = job;
  const fate = last?.fate ?? "skipped";
  const word = last === undefined ? wordOfNone(job) : wordOf(last);
  const cells = [
    last === undefined || last.exitStatus === null ? UNKNOWN : String(last.exitStatus),
    last === undefined ? UNKNOWN : renderInstant(last.startedAt),
    renderSpanText(last?.durationMs),
    renderSpanText(job.usualMs),
    describeCounts(job),
    describeExtras(job).join("; "),
  ].map((text) => `<td>${escapeHtml(text)}</td>`);
  const when = last !== undefined && !job.isLastWithin ? " before" : "";
  return (
    `<tr><th scope="row">${escapeHtml(job.job)}</th>` +
    `<td><i class="${fate}"></i>${escapeHtml(word)}${when}</td>${cells.join("")}</tr>\n`
  );
}

function renderTroubles({ troubles }: ReportView): string {
  if (troubles.length === 0) return "";
  const items = troubles.map((line) => `<li>${escapeHtml(line)}</li>\n`);
  return `<h2>What could not be read</h2>\n<ul>\n${items.join("")}</ul>\n`;
}

function shorten(name: string): string {
  const letters = [...name];
  return letters.length <= LONGEST_NAME ? name : `${letters.slice(0, LONGEST_NAME - 1).join("")}…`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text for an element or an attribute in quotes. */
export function escapeHtml(text: string): string {
  return escapeUnprintable(text).replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? letter);
}

function styleOf(fate: Fate): string {
  return `.${fate} { fill: var(--${fate}); } i.${fate} { background: var(--${fate}); }`;
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --rule: #d9d9e0; --page: #fff;
  --good: #2b9a66; --bad: #ce2c31; --stopped: #8b8d98; --skipped: #b9bbc6; --partial: #7d66d9;
  --running: #0d74ce;  --unfinished: #ab6400; }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #b0b4ba; --rule: #363a3f;
  --page: #111113; --good: #3dd68c; --bad: #ff9592; --stopped: #777b84; --skipped: #5a6169;
  --partial: #baa7ff; --running: #70b8ff; --unfinished: #ffca16; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 76rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
header p, .note, .legend { color: var(--soft); margin: .25rem 0; }
.needs { border-left: 4px solid var(--bad); margin: 1.25rem 0; padding: .25rem 0 .25rem 1.75rem; }
svg { width: 100%; height: auto; } svg line { stroke: var(--rule); }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); } svg .tick { fill: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; white-space: nowrap; }
td:last-child { white-space: normal; color: var(--soft); } tbody th { font-weight: 600; }
i { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px; margin-right: .4rem; }
.legend span { margin-right: 1rem; }
${FATES.map(styleOf).join("\n")}
`;
