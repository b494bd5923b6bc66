/**
 * One picture of `status --watch`: what runs now, each with a bar where its job has said how much
 * there is to do. Pure text; decides nothing.
 *
 * Always: no line is longer than the window is wide, and there are no more lines than it is high;
 * what had no room is counted. A foreign word cannot move the cursor.
 */

import { describeProgress, type DescribedProgress } from "../core/described-progress.ts";
import { renderKey } from "../core/lease-key.ts";
import { escapeUnprintable } from "../core/printable.ts";
import { isTaken } from "../inspect/lease-facts.ts";
import type { LeaseView } from "../inspect/leases.ts";
import type { StatusView } from "../inspect/status.ts";
import type { ScreenSize } from "../os/screen.ts";
import { describeItems, describeWork } from "./render-progress.ts";
import { renderAge, renderCount } from "./render-words.ts";

const WIDEST_BAR = 30;
const NARROWEST_BAR = 10;
const INDENT = "  ";
const HEAD_LINES = 2;

export interface WatchPicture {
  readonly view: StatusView;
  readonly size: ScreenSize;
  /** Local time of the look, `02:00:07`. */
  readonly clock: string;
}

export function renderWatch({ view, size, clock }: WatchPicture): string[] {
  const shown = view.leases.filter((one) => one.verdict.name !== "free");
  const blocks = [
    ...shown.map((one) => renderLease(one, size.columns)),
    ...view.runs.map((run) => [`${run.job}  running without a lease`]),
  ];
  const nothing = blocks.length === 0 ? ["no lease is held"] : [];
  const body = [...nothing, ...blocks.flatMap((lines) => [...lines, ""]), ...view.troubles];
  const head = [`watchdog status of ${view.stateDirectory}  ${clock}  (q ends)`, ""];
  return [...head, ...fit(body, size.rows - HEAD_LINES)]
    .slice(0, size.rows)
    .map((line) => cutLine(escapeUnprintable(line), size.columns - 1));
}

/** What has no room is counted in the last line. */
function fit(lines: readonly string[], room: number): readonly string[] {
  const needed = lines.at(-1) === "" ? lines.slice(0, -1) : lines;
  if (needed.length <= room) return needed;
  const kept = needed.slice(0, Math.max(0, room - 1));
  const more = renderCount(needed.length - kept.length, "line", "lines");
  return [...kept, `${more} more: make the window higher, or name a job`];
}

/** That it lives stands in the first line, whether it works in the others. */
function renderLease(view: LeaseView, columns: number): string[] {
  const { evidence, verdict } = view;
  const progress = isTaken(view) ? describeProgress(evidence.slot) : undefined;
  const head = [renderKey(view.key), verdict.name, ...describeLife(view)].join("  ");
  if (progress === undefined) return [head];
  const { lastMessage } = progress;
  const work = describeWork(view);
  return [
    head,
    ...renderItems(progress, columns),
    ...(lastMessage === null ? [] : [`${INDENT}${lastMessage}`]),
    ...(work === undefined ? [] : [`${INDENT}${work}`]),
  ];
}

function describeLife({ evidence, verdict }: LeaseView): string[] {
  const { slot, beatAgeMs } = evidence;
  if (slot === undefined || verdict.rule === "R3") return [];
  const count = slot.body?.memberCount;
  const tree = count === undefined ? [] : [renderCount(count, "process", "processes")];
  const beat = beatAgeMs === undefined ? [] : [`beat ${renderAge(beatAgeMs)}`];
  return [slot.head.runState, ...tree, ...beat];
}

function renderItems(progress: DescribedProgress, columns: number): string[] {
  const text = describeItems(progress);
  if (text === undefined) return [];
  const { done, total } = progress;
  const room = columns - INDENT.length * 2 - text.length - 1;
  const width = Math.min(WIDEST_BAR, room);
  if (done === null || total === null || width < NARROWEST_BAR) return [`${INDENT}${text}`];
  return [`${INDENT}${renderBar({ done, total, width })}${INDENT}${text}`];
}

/** `[#####-----]`; whole only where all is done. */
export function renderBar(bar: { done: number; total: number; width: number }): string {
  const inner = bar.width - 2;
  const share = bar.total === 0 ? 1 : Math.min(1, bar.done / bar.total);
  const filled = Math.floor(share * inner);
  return `[${"#".repeat(filled)}${"-".repeat(inner - filled)}]`;
}

/** By what a terminal shows: a letter may be two columns wide, or none. */
export function cutLine(line: string, columns: number): string {
  if (Bun.stringWidth(line) <= columns) return line;
  let width = 0;
  let cut = "";
  for (const letter of line) {
    width += Bun.stringWidth(letter);
    if (width > columns) break;
    cut += letter;
  }
  return cut;
}
