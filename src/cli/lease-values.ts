/**
 * Reads the values that belong to leases and to the commands that answer questions: keys, names of
 * keys, bounded spans, one exit code, a count.
 *
 * Knows nothing of flags, variables or commands. Always: every refusal names what is expected, with
 * an example, and no reader throws.
 */

import { LONGEST_KEY_NAME, parseKey } from "../core/lease-key.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import { LONGEST_STALE_AFTER_MS, SHORTEST_HEARTBEAT_INTERVAL_MS } from "../core/run-options.ts";
import { accepted, isFaithful, MAX_NUMBER_LENGTH, parseSpan, refused } from "./values.ts";
import type { Parsed } from "./values.ts";

/** Of beats and of the silence after which an owner counts as stalled, so that one follows. */
const LONGEST_INTERVAL_MS = LONGEST_STALE_AFTER_MS / 2;
const SHORTEST_STALE_AFTER_MS = SHORTEST_HEARTBEAT_INTERVAL_MS * 2;
/** As many runs as the journal keeps. */
export const MAX_HISTORY_LIMIT = 100_000;

export const EXPECTED_LEASE = {
  key: "a key such as lane:gpu: a kind of small letters, digits and dashes, a colon, a name",
  keyName: `a name of 1 to ${LONGEST_KEY_NAME} letters`,
  interval: "a span from 100ms to 12h, such as 10s",
  staleAfter: "a span from 200ms to 1d, such as 40s",
  exitCode: "an exit code from 0 to 255, such as 75",
  limit: `a number from 1 to ${MAX_HISTORY_LIMIT}, such as 20`,
} as const;

/** `lane:gpu`; the name may hold anything but NUL, colons too. */
export function parseLeaseKey(text: string): Parsed<LeaseKey> {
  const key = isFaithful(text) ? parseKey(text) : undefined;
  return key === undefined ? refused(EXPECTED_LEASE.key) : accepted(key);
}

/** What stands behind the colon, where the flag says the kind. */
export function parseKeyName(kind: string, text: string): Parsed<LeaseKey> {
  const parsed = parseLeaseKey(`${kind}:${text}`);
  return parsed.kind === "value" ? parsed : refused(EXPECTED_LEASE.keyName);
}

export function parseInterval(text: string): Parsed<number> {
  const within = { from: SHORTEST_HEARTBEAT_INTERVAL_MS, to: LONGEST_INTERVAL_MS };
  return parseSpanWithin(text, within, EXPECTED_LEASE.interval);
}

export function parseStaleAfter(text: string): Parsed<number> {
  const within = { from: SHORTEST_STALE_AFTER_MS, to: LONGEST_STALE_AFTER_MS };
  return parseSpanWithin(text, within, EXPECTED_LEASE.staleAfter);
}

function parseSpanWithin(
  text: string,
  within: { readonly from: number; readonly to: number },
  expected: string,
): Parsed<number> {
  const parsed = parseSpan(text);
  if (parsed.kind === "refused") return refused(expected);
  const isWithin = parsed.value >= within.from && parsed.value <= within.to;
  return isWithin ? parsed : refused(expected);
}

export function parseExitCode(text: string): Parsed<number> {
  const isCode = /^[0-9]{1,3}$/.test(text) && Number(text) <= 255;
  return isCode ? accepted(Number(text)) : refused(EXPECTED_LEASE.exitCode);
}

export function parseLimit(text: string): Parsed<number> {
  const isNumber = text.length <= MAX_NUMBER_LENGTH && /^[0-9]+$/.test(text);
  const limit = isNumber ? Number(text) : 0;
  return limit >= 1 && limit <= MAX_HISTORY_LIMIT ? accepted(limit) : refused(EXPECTED_LEASE.limit);
}

/** As short as `parseSpan` reads it back exactly: `40s`, `200ms`. */
export function renderSpan(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`;
}

/** As `renderSpan`, for spans of minutes and hours: `10m`, `1h`. */
export function renderLongSpan(ms: number): string {
  if (ms > 0 && ms % 3_600_000 === 0) return `${ms / 3_600_000}h`;
  return ms > 0 && ms % 60_000 === 0 ? `${ms / 60_000}m` : renderSpan(ms);
}
