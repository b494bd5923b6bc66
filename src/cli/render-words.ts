/**
 * The small words of an answer: instants, spans, counts and columns, for people. Pure text;
 * machines get `--json`.
 *
 * Always: a foreign word that leaves here cannot move a cursor or begin a second line.
 */

import { escapeUnprintable } from "../core/printable.ts";

const SECOND_MS = 1_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;
/** What stands where nothing is known. */
export const UNKNOWN = "-";

/** Local time, as clocks on the wall show it: `2026-01-31 02:00:07`. */
export function renderInstant(at: string | number | null | undefined): string {
  if (at === null || at === undefined) return UNKNOWN;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return UNKNOWN;
  const two = (part: number): string => String(part).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
}

/** `300 ms`, `2.5 s`, `32 s`, `5 min 3 s`, `2 h 5 min`, `3 d 4 h`: two units at most. */
export function renderSpanText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return UNKNOWN;
  if (ms < 0) return `-${renderSpanText(-ms)}`;
  if (ms < SECOND_MS) return `${Math.floor(ms)} ms`;
  if (ms < 10 * SECOND_MS) return `${Math.floor(ms / 100) / 10} s`;
  const seconds = Math.floor(ms / SECOND_MS);
  if (seconds < MINUTE_S) return `${seconds} s`;
  if (seconds < HOUR_S) return twoUnits(seconds, [MINUTE_S, "min"], [1, "s"]);
  if (seconds < DAY_S) return twoUnits(seconds, [HOUR_S, "h"], [MINUTE_S, "min"]);
  return twoUnits(seconds, [DAY_S, "d"], [HOUR_S, "h"]);
}

type Unit = readonly [seconds: number, name: string];

function twoUnits(seconds: number, [large, name]: Unit, [small, smallName]: Unit): string {
  const rest = Math.floor((seconds % large) / small);
  const first = `${Math.floor(seconds / large)} ${name}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}

/** Of an age: `2 s ago`; of one that cannot be, `2 s in the future`. */
export function renderAge(ms: number): string {
  return ms < 0 ? `${renderSpanText(-ms)} in the future` : `${renderSpanText(ms)} ago`;
}

/** `1 process`, `3 processes`. */
export function renderCount(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Columns as wide as their widest cell, two blanks apart, none behind the last one. */
export function renderColumns(rows: readonly (readonly string[])[]): string[] {
  const shown = rows.map((row) => row.map(escapeUnprintable));
  const widths: number[] = [];
  for (const row of shown) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, lengthOf(cell));
    }
  }
  return shown.map((row) =>
    row
      .map((cell, index) => cell + " ".repeat((widths[index] ?? 0) - lengthOf(cell)))
      .join("  ")
      .trimEnd(),
  );
}

/** Letters, not units of UTF-16. */
function lengthOf(text: string): number {
  return [...text].length;
}

/** The lines of an answer, each ended. */
export function renderLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

export function renderJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
