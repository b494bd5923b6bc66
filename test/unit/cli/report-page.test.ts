/** The page of `report --html`: whatever a job or a process is called is text in it. */
import { expect, test } from "bun:test";
import { escapeHtml, renderPage } from "../../../src/cli/report-page.ts";
import { type JobFacts, makeReport, type ReportedRun } from "../../../src/core/run-report.ts";
import type { ReportView } from "../../../src/inspect/report.ts";

const AT = Date.parse("2025-03-04T02:00:00.000Z");
const HOUR_MS = 3_600_000;
const HOSTILE = `<img src=x onerror="alert(1)">&'</title></svg><script>`;

function viewOf(job: string, word: string): ReportView {
  const run: ReportedRun = {
    runId: "r1",
    job,
    fate: "bad",
    outcome: word,
    because: word,
    exitStatus: 3,
    startedAt: AT,
    endedAt: AT + 60_000,
    durationMs: 60_000,
  };
  const facts: JobFacts = {
    job,
    isStep: false,
    counts: { runs: 1, good: 0, stopped: 0, skipped: 0, partial: 0, running: 0 },
    last: run,
    isLastWithin: true,
    goodDurationsMs: [1_000, 1_000, 1_000],
    lastFates: ["bad"],
    skippedBecause: word,
    isRefusedByJob: false,
    leftovers: 1,
    retries: 1,
    unsignalable: [{ pid: 7, command: word }],
    suspicions: [word],
  };
  const span = { since: AT - HOUR_MS, until: AT + HOUR_MS };
  return {
    stateDirectory: word,
    report: makeReport(span, [facts], [{ job: word, because: "other", text: word }]),
    runs: [run],
    omittedRuns: 0,
    omittedJobs: 0,
    isReadable: true,
    troubles: [word],
  };
}

/** Every tag of a page, in order: what a browser would make of it. */
function tagsOf(page: string): string[] {
  return page.match(/<\/?[a-z!][^>]*>/gi) ?? [];
}

test("no name, no word and no command of a job changes what a page is made of", () => {
  const plain = tagsOf(renderPage(viewOf("nightly", "failed")));
  const page = renderPage(viewOf(HOSTILE, HOSTILE));
  expect(plain.length).toBeGreaterThan(30);
  expect(tagsOf(page)).toEqual(plain);
  // In the list of needs, in the time line, in the table, and in what could not be read.
  const shown = page.split(escapeHtml(HOSTILE)).length - 1;
  expect(shown).toBeGreaterThanOrEqual(8);
});

test("a page asks a browser for nothing, and may not", () => {
  const page = renderPage(viewOf("nightly", "failed"));
  expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
  expect(page).not.toMatch(/\b(src|href|url|@import)\s*[=(]/);
});

test("a letter that moves a cursor or turns a text around is written as what it is", () => {
  expect(escapeHtml("a\u001b[2J\u202e")).toBe(String.raw`a\x1b[2J\u{202e}`);
});
