/**
 * Notices for people and as fields: the list of the outbox, what a test and a flush have done. Pure
 * text; decides nothing.
 */

import type { Sent } from "../core/delivery.ts";
import type { OutboxRow } from "../core/outbox.ts";
import type { SinkSpec } from "../core/sink.ts";
import { renderIso } from "../core/time.ts";
import type { Flushed } from "../run/flush-notices.ts";
import {
  renderAge,
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
} from "./render-words.ts";

/** One line a notice: number, state, when, event, to whom, what, and why it is still here. */
export function renderNoticeList(rows: readonly OutboxRow[], now: number): string {
  if (rows.length === 0) return "no notice waits\n";
  return renderLines(renderColumns(rows.map((row) => listCells(row, now))));
}

function listCells(row: OutboxRow, now: number): string[] {
  const { id, sink, notice, createdAt } = row;
  return [
    String(id),
    describeState(row, now),
    `of ${renderInstant(createdAt)}`,
    notice.summary,
    sink.shown,
    row.lastBecause ?? "",
  ];
}

function describeState({ state, nextAt, attempts, deliveredAt }: OutboxRow, now: number): string {
  const tries = renderCount(attempts, "attempt", "attempts");
  if (state === "delivered" && deliveredAt !== null)
    return `delivered ${renderAge(now - deliveredAt)}`;
  if (state !== "waiting") return `${state}, ${tries}`;
  if (attempts === 0) return "waiting";
  const next = nextAt <= now ? "next one due" : `next one in ${renderSpanText(nextAt - now)}`;
  return `waiting, ${tries}, ${next}`;
}

export interface ShownNotice {
  readonly id: number;
  readonly state: string;
  readonly attempts: number;
  readonly created_at: string | null;
  readonly next_at: string | null;
  readonly delivered_at: string | null;
  readonly last_because: string | null;
  readonly sink: string;
  readonly key: string;
  readonly event: string;
  readonly job: string | null;
  readonly run_id: string | null;
  readonly summary: string;
  readonly is_reminder: boolean;
}

export function showNotice(row: OutboxRow): ShownNotice {
  const { id, state, attempts, createdAt, nextAt, deliveredAt, lastBecause, sink, notice } = row;
  return {
    id,
    state,
    attempts,
    created_at: renderIso(createdAt),
    next_at: state === "waiting" ? renderIso(nextAt) : null,
    delivered_at: deliveredAt === null ? null : renderIso(deliveredAt),
    last_because: lastBecause,
    sink: sink.shown,
    key: notice.id,
    event: notice.event,
    job: notice.job,
    run_id: notice.run_id,
    summary: notice.summary,
    is_reminder: notice.is_reminder,
  };
}

export function renderTested(
  tested: readonly { readonly sink: SinkSpec; readonly sent: Sent }[],
): string {
  const rows = tested.map(({ sink, sent }) =>
    sent.kind === "delivered"
      ? [sink.shown, "delivered"]
      : [sink.shown, `${sent.kind}: ${sent.because}: ${sent.detail}`],
  );
  return renderLines(renderColumns(rows));
}

export function renderFlushed(flushed: Flushed): string {
  const { delivered, buried, waiting, left, triedIds } = flushed;
  const unknown = left.filter(({ id, sink }) => sink.source.kind === "hidden" && !triedIds.has(id));
  const lines = [`delivered ${renderCount(delivered, "notice", "notices")}`];
  if (buried > 0) lines.push(`gave up ${renderCount(buried, "notice", "notices")}`);
  if (waiting > 0) {
    const because = left[0]?.lastBecause ?? null;
    const why = because === null ? "" : `; the last one: ${because}`;
    lines.push(`${renderCount(waiting, "notice waits", "notices wait")}${why}`);
  }
  if (unknown.length > 0) {
    const count = renderCount(unknown.length, "of them is", "of them are");
    lines.push(`${count} for a secret address that is not known here`);
  }
  return renderLines(lines);
}

/** @param asked  undefined: all that were dead */
export function renderDropped(dropped: number, asked: number | undefined): string {
  const line = `dropped ${renderCount(dropped, "notice", "notices")}`;
  if (asked === undefined || asked === dropped) return `${line}\n`;
  return `${line}; ${asked - dropped} of the numbers given belong to none that could be dropped\n`;
}
