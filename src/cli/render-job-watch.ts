/**
 * One picture of `job status --watch`: the whole job as a bar, and the steps that matter now. Pure
 * text; decides nothing.
 *
 * Always: no line is longer than the window is wide, and there are no more lines than it is high;
 * of the steps those that run or wait for a person stand first, and what had no room is counted.
 */

import type { StepView, StepWord } from "../core/job-view.ts";
import { escapeUnprintable } from "../core/printable.ts";
import type { ScreenSize } from "../os/screen.ts";
import { countSteps, describeRecord } from "./render-job.ts";
import type { JobPicture } from "./render-job.ts";
import { cutLine, renderBar } from "./render-watch.ts";
import { renderColumns, renderCount, renderSpanText } from "./render-words.ts";

const WIDEST_BAR = 60;
const HEAD_LINES = 4;

export interface JobWatchPicture extends Omit<JobPicture, "columns"> {
  readonly size: ScreenSize;
  /** Local time of the look, `02:00:07`. */
  readonly clock: string;
}

/** First what a person looks for. */
const ORDER: readonly StepWord[] = [
  "running",
  "unknown",
  "failed",
  "interrupted",
  "pending",
  "blocked",
  "done",
  "removed",
];

export function renderJobWatch(picture: JobWatchPicture): string[] {
  const { record, view, askedFile, now, size, clock } = picture;
  const done = view.steps.filter(({ word }) => word === "done").length;
  const width = Math.max(10, Math.min(WIDEST_BAR, size.columns - 2));
  const head = [
    `watchdog job ${record.name}  ${view.word}  ${clock}  (q ends)`,
    renderBar({ done, total: view.steps.length, width }),
    countSteps(view),
    askedFile === undefined ? "" : `of another file: ${record.file}`,
  ];
  const sorted = view.steps.toSorted((one, other) => rankOf(one) - rankOf(other));
  const room = Math.max(0, size.rows - HEAD_LINES);
  const isWhole = sorted.length <= room;
  const shown = isWhole ? sorted : sorted.slice(0, Math.max(0, room - 1));
  const left = renderCount(sorted.length - shown.length, "step", "steps");
  const more = isWhole ? [] : [`${left} more: make the window higher`];
  return [...head, ...renderColumns(shown.map((step) => rowOf(step, now))), ...more]
    .slice(0, size.rows)
    .map((line) => cutLine(escapeUnprintable(line), size.columns - 1));
}

function rankOf({ word, waitsForPerson }: StepView): number {
  return waitsForPerson ? ORDER.indexOf("unknown") : ORDER.indexOf(word);
}

function rowOf({ step, word, waitsForPerson, record }: StepView, now: number): string[] {
  const { startedAt, endedAt } = record;
  const until = word === "running" ? now : endedAt;
  const took = startedAt === null || until === null ? "" : renderSpanText(until - startedAt);
  const isPlain = word === "done" || word === "pending" || word === "blocked";
  return [
    step,
    word,
    took,
    waitsForPerson ? "a person must decide" : isPlain ? "" : describeRecord(record),
  ];
}
