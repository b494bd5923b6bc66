/**
 * `watchdog status` for people: what runs now, a block each, which circuits are not closed, and how
 * each job last ended. Pure text; decides nothing.
 */

import { escapeUnprintable } from "../core/printable.ts";
import { isFenced } from "../core/repair-plan.ts";
import { isTaken, mayBeTaken } from "../inspect/lease-facts.ts";
import type { StatusView } from "../inspect/status.ts";
import type { JournalRun } from "../journal/queries.ts";
import { renderBrokenCircuits } from "./render-circuit.ts";
import { renderLeaseBlock } from "./render-lease.ts";
import { describeLastRun } from "./render-run.ts";
import { renderColumns, renderCount, renderInstant, renderLines } from "./render-words.ts";
import { showWord } from "./shown-words.ts";

export function renderStatus(view: StatusView): string {
  return view.name === undefined ? renderAll(view) : renderNamed(view, view.name);
}

/** Free leases are left out, unless they are not to be had: there is one of every job that ran. */
function renderAll(view: StatusView): string {
  const shown = view.leases.filter((one) => one.verdict.name !== "free" || isFenced(one));
  const now = shown.some(isTaken) ? [] : [[renderNone(shown.filter(mayBeTaken).length)]];
  const blocks = [...shown.map(renderLeaseBlock), ...view.runs.map(renderRunBlock)];
  return join([...now, ...blocks, ...renderCircuits(view), ...renderLast(view.lastRuns)]);
}

/** That nobody holds one is said only where the kernel was asked about each, and could answer. */
function renderNone(unknown: number): string {
  if (unknown === 0) return "no lease is held";
  const those = renderCount(unknown, "lease", "leases");
  return `no lease is known to be held; of ${those} it cannot be told`;
}

function renderNamed(view: StatusView, name: string): string {
  const blocks = [...view.leases.map(renderLeaseBlock), ...view.runs.map(renderRunBlock)];
  const all = [...blocks, ...renderCircuits(view), ...renderLast(view.lastRuns)];
  return all.length === 0 ? `nothing is known of ${showWord(name)}\n` : join(all);
}

function renderRunBlock(run: JournalRun): string[] {
  const command = run.record?.command.join(" ");
  return [
    `${escapeUnprintable(run.job)}  running without a lease since ${renderInstant(run.startedAt)}`,
    `  run       ${escapeUnprintable(run.runId)}`,
    `  owner     pid ${run.pid}`,
    ...(command === undefined ? [] : [`  command   ${escapeUnprintable(command)}`]),
  ];
}

function renderCircuits({ circuits }: StatusView): string[][] {
  return circuits.length === 0 ? [] : [["circuits", ...renderBrokenCircuits(circuits)]];
}

function renderLast(runs: readonly JournalRun[]): string[][] {
  if (runs.length === 0) return [];
  const rows = runs.map((run) => [`  ${run.job}`, describeLastRun(run)]);
  return [[runs.length === 1 ? "last run" : "last runs", ...renderColumns(rows)]];
}

function join(blocks: readonly (readonly string[])[]): string {
  return blocks.map(renderLines).join("\n");
}
