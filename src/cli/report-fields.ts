/**
 * The fields of `report --json` and `why --json`: a part of the table of cli/answer-fields.ts.
 */

import type { Meanings } from "./dependency-fields.ts";

const FATES =
  "how it went: `good`, `bad`, `stopped` (ended on request), `skipped` (refused for its lease, " +
  "or by its job: 78 with `job-refused`), " +
  "`partial` (one step alone, by --only, which went well), `running`, " +
  "`unfinished` (its watchdog is gone, and nobody wrote its end down)";

export function reportFields(): Meanings {
  return {
    since: "the beginning of the span (wall clock, UTC)",
    until: "its end, the moment of the answer",
    totals: "runs of the span by how they went, over all jobs",
    "totals.runs": "all of them",
    "totals.good": "the outcome is `ok`, and more than one step alone was asked for",
    "totals.bad": "any other outcome",
    "totals.stopped": "ended on request",
    "totals.skipped": "refused because another run held the lease, or by the job itself",
    "totals.partial": "of a job of many steps one step alone was asked for (--only), and went well",
    "totals.running": "they go on",
    jobs: "every job that has run in the span; those that need a person come first",
    "jobs[].job": "its name",
    "jobs[].runs": "its runs in the span, counted as in `totals`",
    "jobs[].good": "of these",
    "jobs[].bad": "of these",
    "jobs[].stopped": "of these",
    "jobs[].skipped": "of these",
    "jobs[].partial": "of these",
    "jobs[].running": "of these",
    "jobs[].last":
      "its last run that was neither a skip nor partial, with the fields of `runs`; null: " +
      "there is none",
    "jobs[].is_last_within": "whether that one belongs to the span",
    "jobs[].usual_ms": "median of up to 20 earlier good runs; null: fewer than 3",
    "jobs[].failures_in_row": "how many runs in a row have gone badly, up to the last one",
    "jobs[].skipped_because": "why the last skip was one, for people; null: there was none",
    "jobs[].leftovers": "how often a run has left processes",
    "jobs[].retries": "calls within `watchdog retry` that took more than one attempt",
    "jobs[].needs": "what of it needs a person, with the fields of `needs`",
    needs: "all that needs a person",
    "needs[].job": "null: it belongs to no job",
    "needs[].because":
      "`failed`, `unfinished`, `not-ended`, `suspicious`, `always-skipped`, `overdue` or `other`",
    "needs[].text": "the same for people",
    runs: "the runs of the span, newest first, 2,000 at most",
    "runs[].run_id": "its id",
    "runs[].job": "the name of its job",
    "runs[].fate": FATES,
    "runs[].outcome": "as in the record",
    "runs[].because": "as in the record",
    "runs[].exit_status": "as in the record",
    "runs[].started_at": "as in the record",
    "runs[].ended_at": "as in the record",
    "runs[].duration_ms": "as in the record",
    omitted_runs: "runs of the span that are counted and not listed",
    omitted_jobs: "jobs of the span that are not listed",
  };
}

export function whyFields(): Meanings {
  return {
    target: "what was asked for",
    run: "the newest run, a record; null: none is known",
    "run.abandoned_by": "as in `history`",
    "run.fate": FATES,
    "run.sentence": "why it did not run, or how it ended, for people; null: no record was read",
    "run.evidence": "what bears that out",
    "run.evidence[].label": "what it is about",
    "run.evidence[].text": "a clause for people",
    "run.events": "what has happened in it, oldest first",
    "run.events[].at": "when (wall clock, UTC)",
    "run.events[].name": "its name",
    "run.events[].key": "the lease that it is about; null: none",
    "run.events[].because": "the reason; null: none",
    "run.events[].data": "its particulars, which differ with its name and with the version",
    before:
      "the last run that was neither a skip nor partial, as `run`, where the newest is one; " +
      "else null",
    skips_in_row: "how many skips in a row the newest run ends",
    usual_ms: "median of up to 20 earlier good runs; null: fewer than 3",
    tail: "the last 20 lines at most of the output that was kept; null: nothing was",
  };
}
