/**
 * One report of a job as the lines that stand for it in the progress file. Pure; the other way
 * round is item-counts.ts.
 *
 * Always: a report is one write that no other cuts in two (REPORT_BYTES), and every text of it is
 * one line.
 */

/** PIPE_BUF of Linux: so much is appended in one go, whoever else appends (write(2), O_APPEND). */
export const REPORT_BYTES = 4096;
const MOST_TEXT_BYTES = 1024;

export interface ItemReport {
  readonly ok: number | undefined;
  readonly failed: number | undefined;
  readonly total: number | undefined;
  readonly checkpoint: string | undefined;
  readonly message: string | undefined;
}

/**
 * The failures come last, so that they are in a row with those of the next report: whoever tells
 * both at once does not say in which order they were. Nothing at all is one item that went well.
 */
export function renderReport(report: ItemReport): string {
  const { ok, failed, total } = report;
  const message = oneLine(report.message);
  const checkpoint = oneLine(report.checkpoint);
  const isOfFail = failed !== undefined;
  const isOfOk = !isOfFail && ok !== undefined;
  const lines = [
    total === undefined ? "" : `total ${total}`,
    ok === undefined ? "" : `ok ${ok}${isOfOk ? behind(message) : ""}`,
    failed === undefined ? "" : `fail ${failed}${behind(message)}`,
    checkpoint === "" ? "" : `checkpoint ${checkpoint}`,
    message === "" || isOfFail || isOfOk ? "" : `message ${message}`,
  ].filter((line) => line !== "");
  return `${lines.length === 0 ? "ok" : lines.join("\n")}\n`;
}

function behind(message: string): string {
  return message === "" ? "" : ` ${message}`;
}

function oneLine(text: string | undefined): string {
  // A line end, a NUL or an escape in a message is nothing that a reader wants.
  const flat = (text ?? "").replace(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  const bytes = Buffer.from(flat);
  if (bytes.length <= MOST_TEXT_BYTES) return flat;
  // Before a whole word, so that no half of a secret is told, which no mask would know.
  const kept = bytes.subarray(0, MOST_TEXT_BYTES).toString("utf8");
  return `${kept.slice(0, kept.lastIndexOf(" ") + 1)}…`;
}
