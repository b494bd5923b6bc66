/**
 * `watchdog why` for people: the answer in one sentence, then what bears it out. Pure text from a
 * view; decides nothing.
 */

import { escapeUnprintable } from "../core/printable.ts";
import type { ExplainedRun, WhyView } from "../inspect/why.ts";
import type { JournalEventRow } from "../journal/queries.ts";
import { ownLine } from "../os/own-line.ts";
import {
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
  UNKNOWN,
} from "./render-words.ts";
import { showWord } from "./shown-words.ts";

/** So many events are shown, the last ones; the journal has all of them. */
const MOST_EVENTS = 12;

export function renderWhy(view: WhyView): string {
  const { newest, before } = view;
  if (newest === undefined) {
    return view.isReadable ? `no run of ${showWord(view.target)} is known\n` : "";
  }
  const blocks = [renderRun(newest, view, before === undefined)];
  if (before !== undefined) blocks.push(renderRun(before, view, true));
  if (view.tail !== undefined) blocks.push(renderTail(view.tail, view.tailOf ?? newest.run.runId));
  return blocks.map(renderLines).join("\n");
}

function renderRun(one: ExplainedRun, view: WhyView, isLast: boolean): string[] {
  const { run, fate, explanation, events } = one;
  const word = fate === "running" || fate === "unfinished" ? fate : (run.outcome ?? UNKNOWN);
  const status = run.exitStatus === null ? "" : `, status ${run.exitStatus}`;
  const sentence = explanation?.sentence ?? run.because ?? "its record cannot be read";
  const skips = fate === "skipped" && view.skipsInRow > 1 ? `; ${view.skipsInRow} in a row` : "";
  const command = run.record?.command.join(" ");
  const rows: (readonly string[])[] = [
    ["  run", run.runId],
    ["  began", describeSpan(one, isLast ? view.usualMs : undefined)],
    ...(command === undefined ? [] : [["  command", command]]),
    ...(explanation?.evidence ?? []).map(([label, text]) => [`  ${label}`, text]),
    ...events.slice(-MOST_EVENTS).map((event) => ["  event", describeEvent(event)]),
  ];
  const head = `${run.job}: ${word}${status}: ${sentence}${skips}`;
  return [escapeUnprintable(head), ...renderColumns(rows)];
}

function describeSpan({ run, fate }: ExplainedRun, usualMs: number | undefined): string {
  const began = renderInstant(run.startedAt);
  if (fate === "skipped") return began;
  const took = run.durationMs === null ? "" : `, took ${renderSpanText(run.durationMs)}`;
  return `${began}${took}${usualMs === undefined ? "" : `, usually ${renderSpanText(usualMs)}`}`;
}

function describeEvent({ at, name, key, because }: JournalEventRow): string {
  const about = [key, because].filter((part) => part !== null).join(", ");
  return `${renderInstant(at)} ${name}${about === "" ? "" : ` (${about})`}`;
}

function renderTail(tail: readonly string[], runId: string): string[] {
  if (tail.length === 0) return ["its output is empty"];
  const line = ownLine(["logs", runId]) ?? "watchdog logs";
  return [
    `the last ${renderCount(tail.length, "line", "lines")} of its output (all of it: ${line})`,
    ...tail.map((text) => `  ${escapeUnprintable(text)}`),
  ];
}
