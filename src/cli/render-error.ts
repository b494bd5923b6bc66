/**
 * Turns a failure into the lines that a person reads on stderr.
 *
 * Prints nothing itself and does not choose the exit status. Always: one line for the error, at
 * most one for the hint, both free of control characters, each with a line end.
 */

import type { WatchdogError } from "../core/errors.ts";
import { escapeUnprintable } from "../core/printable.ts";

export function renderError(error: Pick<WatchdogError, "message" | "hint">): string {
  const lines = [`watchdog: error: ${escapeUnprintable(error.message)}\n`];
  if (error.hint !== undefined) lines.push(`watchdog: hint: ${escapeUnprintable(error.hint)}\n`);
  return lines.join("");
}
