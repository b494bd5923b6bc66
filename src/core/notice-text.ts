/**
 * A notice as others read it: JSON with its format, variables of a hook, a title and lines for
 * people. Pure; what is secret was masked before (masking.ts).
 *
 * Always: a variable and a title are one line without characters that move a cursor; readers of the
 * JSON ignore fields that they do not know.
 */
import type { Notice, NoticeEvent } from "./notice.ts";
import { BAD_ENDINGS } from "./notice.ts";
import { escapeUnprintable, unprintable } from "./printable.ts";

export const NOTICE_FORMAT = 1;

/** With a line end, as a program reads lines. */
export function renderNotice(notice: Notice): string {
  return `${JSON.stringify({ format: NOTICE_FORMAT, ...notice })}\n`;
}

/** Of a variable: what is longer stands on standard input alone. */
const LONGEST_VARIABLE = 4096;
/** Not one line, or not for a shell. */
const NOT_VARIABLES: readonly string[] = ["log_tail", "command", "details"];

/** `WATCHDOG_EVENT` and `WATCHDOG_EVENT_<FIELD>`; an empty one where the notice has nothing. */
export function listVariables(notice: Notice): Readonly<Record<string, string>> {
  const variables: Record<string, string> = { WATCHDOG_EVENT: notice.event };
  for (const [field, value] of Object.entries(notice)) {
    if (field === "event" || NOT_VARIABLES.includes(field)) continue;
    variables[`WATCHDOG_EVENT_${field.toUpperCase()}`] = showValue(value);
  }
  return variables;
}

function showValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return escapeUnprintable(text).slice(0, LONGEST_VARIABLE);
}

/** How urgent it is, in words that each service has its own for. */
export type Urgency = "good" | "news" | "trouble" | "bad";

const GOOD: readonly NoticeEvent[] = ["success", "recovered", "circuit_closed"];
const TROUBLE: readonly NoticeEvent[] = ["circuit_open", "stalled", "overdue", "lock_restored"];

export function urgencyOf({ event }: Pick<Notice, "event">): Urgency {
  if (BAD_ENDINGS.includes(event)) return "bad";
  if (TROUBLE.includes(event)) return "trouble";
  return GOOD.includes(event) ? "good" : "news";
}

/** `nightly-backup: failure on host1`, in one line. */
export function titleOf(notice: Notice): string {
  const event = notice.event.replaceAll("_", " ");
  const again = notice.is_reminder ? " (still)" : "";
  return oneLine(`${notice.job ?? "watchdog"}: ${event}${again} on ${notice.host}`);
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").replace(unprintable(), "").trim();
}

/** What a person reads below the title, one fact a line; without the output. */
export function factsOf(notice: Notice): readonly string[] {
  const { summary, exit_status: status, status_of: statusOf, duration_ms: durationMs } = notice;
  const facts = [oneLine(summary)];
  const outcome = [notice.outcome, notice.because].filter((word) => word !== null).join(", ");
  if (outcome !== "") facts.push(`outcome: ${outcome}`);
  if (status !== null)
    facts.push(`exit status: ${status}${statusOf === null ? "" : ` (${statusOf})`}`);
  if (durationMs !== null) facts.push(`took: ${showSpan(durationMs)}`);
  if (notice.since !== null && notice.failures_in_row > 1) {
    facts.push(`since: ${notice.since}, ${notice.failures_in_row} in a row`);
  }
  if (notice.run_id !== null) facts.push(`run: ${notice.run_id}`);
  return facts;
}

function showSpan(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const LINE_END = 0x0a;

/**
 * The end of the output, cut at a line where there is one, in at most so many bytes of UTF-8; never
 * in the middle of a letter.
 */
export function tailOf(text: string, mostBytes: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= mostBytes) return text;
  let begin = bytes.length - Math.max(0, mostBytes);
  // A byte that only goes on with a letter: 10xxxxxx.
  while (((bytes[begin] ?? 0) & 0xc0) === 0x80) begin += 1;
  const tail = new TextDecoder().decode(bytes.subarray(begin));
  const isWholeLine = bytes[begin - 1] === LINE_END;
  const line = tail.indexOf("\n");
  return !isWholeLine && line >= 0 && line < tail.length - 1 ? tail.slice(line + 1) : tail;
}
