/**
 * Runs that have ended, or go on, as the journal has them, for people: the lines of `history` and
 * the last line of `status`. Pure text; decides nothing.
 */

import { escapeUnprintable } from "../core/printable.ts";
import { describeHolder } from "../core/in-the-way.ts";
import { ONE_STEP } from "../core/one-step.ts";
import type { RecordedDependency } from "../core/run-record.ts";
import type { HistoryRun, HistoryView } from "../inspect/history.ts";
import type { JournalRun } from "../journal/queries.ts";
import {
  renderColumns,
  renderInstant,
  renderLines,
  renderSpanText,
  UNKNOWN,
} from "./render-words.ts";

/** The first says nothing that the outcome and the status do not say. */
const REASON_WORDS: Readonly<Record<string, string>> = {
  exited: "",
  [ONE_STEP]: "one step alone (--only), which says nothing about the job",
};

/** Newest first; a line names its job where that is not what was asked for. */
export function renderHistory(view: HistoryView): string {
  if (view.runs.length === 0) {
    const whose = view.target === undefined ? "" : ` of ${escapeUnprintable(view.target)}`;
    return view.isReadable ? `no run${whose} is known\n` : "";
  }
  const isOfJob = view.runs.every(({ run }) => run.job === view.target);
  return renderLines(renderColumns(view.runs.map((one) => historyCells(one, !isOfJob))));
}

function historyCells({ run, isGoingOn }: HistoryRun, namesJob: boolean): string[] {
  return [
    renderInstant(run.startedAt),
    describeOutcome(run, isGoingOn),
    run.exitStatus === null ? UNKNOWN : String(run.exitStatus),
    renderSpanText(run.durationMs),
    run.runId,
    ...(namesJob ? [run.job] : []),
    describeWhy(run, isGoingOn),
  ];
}

function describeOutcome(run: JournalRun, isGoingOn: boolean): string {
  if (run.state === "ended") return run.outcome ?? UNKNOWN;
  return isGoingOn ? "running" : "unfinished";
}

/** Why it ended so; empty where the outcome says it all. */
export function describeWhy(run: JournalRun, isGoingOn: boolean): string {
  const { outcome, because, abandonedBy, record } = run;
  if (run.state !== "ended") {
    return isGoingOn ? `pid ${run.pid}` : "its watchdog is not seen here, and its end is not known";
  }
  if (outcome === "locked") return describeHolder(record?.held_by ?? null);
  if (outcome === "abandoned") return describeAbandoned(abandonedBy, because);
  if (outcome === "dependency_down") return describeDown(because, record?.dependencies ?? []);
  if (outcome === "signaled") return `died of ${record?.signal ?? "a signal"}`;
  return because === null ? "" : (REASON_WORDS[because] ?? because);
}

function describeAbandoned(by: string | null, because: string | null): string {
  if (by === "guard") return "watchdog was killed; its guard has written this";
  const why = because === null ? "" : ` (${because})`;
  const who = by === null ? undefined : WRITERS[by];
  return `watchdog was killed${who === undefined ? "" : `; ${who} has written this`}${why}`;
}

const WRITERS: Readonly<Record<string, string>> = {
  "next-run": "the next run",
  repair: "watchdog repair",
};

/** `circuit-opened: db, status 500, expected 200-299`; of several the first, and how many more. */
function describeDown(because: string | null, all: readonly RecordedDependency[]): string {
  const down = all.filter((one) => isDown(one, because));
  const [first] = down;
  if (because === null || first === undefined) return because ?? "";
  const more = down.length > 1 ? ` and ${down.length - 1} more` : "";
  // A circuit without a name of its own is called by its target and a hash.
  const name = first.name.startsWith(`${first.target}#`) ? first.target : first.name;
  const found = first.last_because === "good" ? null : first.last_detail;
  return `${because}: ${name}${found === null ? "" : `, ${found}`}${more}`;
}

/** Before a start no circuit opens: there the last answer tells. */
function isDown(one: RecordedDependency, because: string | null): boolean {
  if (one.role !== "liveness") return false;
  if (because === "circuit-opened") return one.policy === "stop" && !isGood(one.state);
  return !isGood(one.state) || (one.last_because !== null && one.last_because !== "good");
}

function isGood(state: RecordedDependency["state"]): boolean {
  return state === "closed" || state === "unknown";
}

/** `ok, status 0, 2026-01-31 02:00:07, took 5 min 3 s`. */
export function describeLastRun(run: JournalRun): string {
  if (run.state !== "ended") {
    return `unfinished, started ${renderInstant(run.startedAt)}; ${describeWhy(run, false)}`;
  }
  const why = describeWhy(run, false);
  const parts = [
    run.outcome ?? UNKNOWN,
    ...(run.exitStatus === null ? [] : [`status ${run.exitStatus}`]),
    `ended ${renderInstant(run.endedAt)}`,
    ...(run.durationMs === null ? [] : [`took ${renderSpanText(run.durationMs)}`]),
  ];
  return `${parts.join(", ")}${why === "" ? "" : `; ${why}`}`;
}
