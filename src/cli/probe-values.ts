/**
 * Reads the values that say what is probed, how often, and which answer is a good one; and those of
 * a backoff, which `retry` has too.
 *
 * Knows nothing of flags, variables or commands, and opens no file. Always: every refusal names
 * what is expected, with an example, and no reader throws; what `hide…` gives holds no secret.
 */

import type { Backoff } from "../core/backoff.ts";
import { LARGEST_FACTOR, MOST_ATTEMPTS } from "../core/backoff.ts";
import type { FailureWindow } from "../core/circuit.ts";
import { parseJsonExpectation } from "../core/json-path.ts";
import {
  checkProbeSettings,
  LARGEST_BODY_BYTES,
  LARGEST_THRESHOLD,
  type ProbeRelation,
} from "../core/probe-check.ts";
import {
  compileBodyPattern,
  DEFAULT_HTTP,
  defaultProbeSettings,
  parseStatusRanges,
} from "../core/probe-settings.ts";
import type {
  HttpDetails,
  JsonExpectation,
  ProbeHeader,
  StatusRange,
} from "../core/probe-settings.ts";
import { isProbeName, parseProbeArgument, TARGET_FORMS } from "../core/probe-target.ts";
import type { ProbeTarget } from "../core/probe-target.ts";
import { renderLongSpan } from "./lease-values.ts";
import {
  accepted,
  EXPECTED,
  isFaithful,
  MAX_NUMBER_LENGTH,
  parsePath,
  parsePositiveSize,
  parseSpan,
  refused,
} from "./values.ts";
import type { Parsed } from "./values.ts";

/** `[NAME=]URL`, or the name alone of a table of the configuration. */
export interface ProbeWord {
  /** As it was given. */
  readonly text: string;
  readonly name: string | undefined;
  readonly target: ProbeTarget | undefined;
}

const SUCH_SPANS = "such as 1s..30s";

export const EXPECTED_PROBE = {
  word: `${TARGET_FORMS}, or the name of a table [probes.NAME] of the configuration`,
  threshold: `a number from 1 to ${LARGEST_THRESHOLD}, such as 3`,
  window: `two numbers from 1 to ${LARGEST_THRESHOLD}, the second one not smaller, such as 5/20`,
  spans: `the first wait and the longest one, both above 0, ${SUCH_SPANS}`,
  factor: `a number from 1 to ${LARGEST_FACTOR}, such as 2 or 1.5`,
  attempts: `a number from 1 to ${MOST_ATTEMPTS}, such as 20`,
  status: "statuses of HTTP from 200 to 599, such as 200-299,302",
  pattern: "a regular expression of JavaScript",
  json: "a path and a value, such as checks[0].state=ready",
  method: "a method of HTTP in capitals, such as POST",
  header:
    "one line as NAME: VALUE or NAME: file:PATH, and no header that belongs to the connection",
  file: "file: and a path, such as file:/etc/watchdog/probe-login",
  body: "a text, or file: and a path, such as file:/etc/watchdog/canary.json",
  maxBytes: `${EXPECTED.size}, above 0 and at most ${LARGEST_BODY_BYTES / 2 ** 20}MiB`,
} as const;

export function parseProbeWord(text: string): Parsed<ProbeWord> {
  if (!isFaithful(text)) return refused(EXPECTED_PROBE.word);
  if (isProbeName(text)) return accepted({ text, name: text, target: undefined });
  const parsing = parseProbeArgument(text);
  if (parsing.kind === "probe") {
    return accepted({ text, name: parsing.name, target: parsing.target });
  }
  return refused(parsing.because === "no-scheme" ? EXPECTED_PROBE.word : parsing.expected);
}

export function parseThreshold(text: string): Parsed<number> {
  return parseCount(text, LARGEST_THRESHOLD, EXPECTED_PROBE.threshold);
}

export function parseAttempts(text: string): Parsed<number> {
  return parseCount(text, MOST_ATTEMPTS, EXPECTED_PROBE.attempts);
}

function parseCount(text: string, most: number, expected: string): Parsed<number> {
  const isNumber = text.length <= MAX_NUMBER_LENGTH && /^[0-9]+$/.test(text);
  const count = isNumber ? Number(text) : 0;
  return count >= 1 && count <= most ? accepted(count) : refused(expected);
}

/** `5/20`: five failures of the last twenty answers. */
export function parseWindow(text: string): Parsed<FailureWindow> {
  const [left = "", right = "", ...more] = text.split("/");
  const [failures, size] = [parseThreshold(left), parseThreshold(right)];
  const isRight = failures.kind === "value" && size.kind === "value" && more.length === 0;
  if (!isRight || failures.value > size.value) return refused(EXPECTED_PROBE.window);
  return accepted({ failures: failures.value, size: size.value });
}

/** `1s..30s`. */
export function parseBackoffSpans(text: string): Parsed<Pick<Backoff, "initialMs" | "capMs">> {
  const [left = "", right = "", ...more] = text.split("..");
  const [initial, cap] = [parseSpan(left), parseSpan(right)];
  const areSpans = initial.kind === "value" && cap.kind === "value" && more.length === 0;
  if (!areSpans) return refused(EXPECTED_PROBE.spans);
  const [initialMs, capMs] = [initial.value, cap.value];
  const first = `a first delay of ${renderLongSpan(initialMs)}`;
  if (initialMs === 0) return refused(`more than 0, ${SUCH_SPANS}`, first);
  if (initialMs > capMs) {
    const found = `a cap of ${renderLongSpan(capMs)} below ${first}`;
    return refused(`a cap of at least the first delay, ${SUCH_SPANS}`, found);
  }
  return accepted({ initialMs, capMs });
}

export function parseFactor(text: string): Parsed<number> {
  const factor = /^[0-9]{1,4}(?:\.[0-9]{1,6})?$/.test(text) ? Number(text) : 0;
  const isRight = factor >= 1 && factor <= LARGEST_FACTOR;
  return isRight ? accepted(factor) : refused(EXPECTED_PROBE.factor);
}

export function parseStatuses(text: string): Parsed<readonly StatusRange[]> {
  const ranges = text.length > MAX_NUMBER_LENGTH * 8 ? undefined : parseStatusRanges(text);
  const isRight = ranges !== undefined && !isBroken({ expectStatus: ranges }, "no-such-status");
  return isRight ? accepted(ranges) : refused(EXPECTED_PROBE.status);
}

export function parsePattern(text: string): Parsed<string> {
  const isRight = text !== "" && isFaithful(text) && compileBodyPattern(text) !== undefined;
  return isRight ? accepted(text) : refused(EXPECTED_PROBE.pattern);
}

export function parseJsonWanted(text: string): Parsed<JsonExpectation> {
  const expectation = isFaithful(text) ? parseJsonExpectation(text) : undefined;
  return expectation === undefined ? refused(EXPECTED_PROBE.json) : accepted(expectation);
}

export function parseMethod(text: string): Parsed<string> {
  const isWord = /^[A-Z][A-Z-]{0,31}$/.test(text);
  const isRight = isWord && !isBroken({ method: text }, "not-a-method");
  return isRight ? accepted(text) : refused(EXPECTED_PROBE.method);
}

/** `NAME: VALUE`, `NAME: file:PATH`. */
export function parseHeader(text: string): Parsed<ProbeHeader> {
  const colon = text.indexOf(":");
  if (colon < 1 || !isFaithful(text)) return refused(EXPECTED_PROBE.header);
  const name = text.slice(0, colon);
  const value = text.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "");
  const path = readFileWord(value);
  if (path?.kind === "refused") return refused(EXPECTED_PROBE.header);
  const header = path === undefined ? { name, value } : { name, value: "", file: path.value };
  const isWrong = isBroken({ headers: [header] }, "not-a-header");
  return isWrong ? refused(EXPECTED_PROBE.header) : accepted(header);
}

/** Without a secret: what stands in a file is none here. */
export function hideHeader(text: string): string {
  const match = /^([^:]+:)[ \t]*(.*)$/s.exec(text);
  if (match === null) return HIDDEN;
  const [, name = "", value = ""] = match;
  return value.startsWith(FILE) ? text : `${name} ${HIDDEN}`;
}

export function parseBody(text: string): Parsed<Pick<HttpDetails, "body" | "bodyFile">> {
  const path = readFileWord(text);
  if (path === undefined) {
    const isRight = text !== "" && isFaithful(text);
    return isRight ? accepted({ body: text, bodyFile: undefined }) : refused(EXPECTED_PROBE.body);
  }
  if (path.kind === "refused") return refused(EXPECTED_PROBE.body);
  return accepted({ body: undefined, bodyFile: path.value });
}

/** `file:PATH` and nothing else: what the file holds has no place on a command line. */
export function parseFileWord(text: string): Parsed<string> {
  const path = readFileWord(text);
  return path === undefined || path.kind === "refused" ? refused(EXPECTED_PROBE.file) : path;
}

/** For what has a secret unless it names a file. */
export function hideUnlessFile(text: string): string {
  return text.startsWith(FILE) ? text : HIDDEN;
}

export function parseMaxBytes(text: string): Parsed<number> {
  const parsed = parsePositiveSize(text);
  const isRight = parsed.kind === "value" && parsed.value <= LARGEST_BODY_BYTES;
  return isRight ? parsed : refused(EXPECTED_PROBE.maxBytes);
}

const FILE = "file:";
const HIDDEN = "***";

/** Undefined: it names no file. */
function readFileWord(text: string): Parsed<string> | undefined {
  if (!text.startsWith(FILE)) return undefined;
  return parsePath(text.slice(FILE.length));
}

const ANY_TARGET: ProbeTarget = {
  kind: "https",
  url: "https://localhost/",
  host: "localhost",
  port: 443,
  path: "/",
  userInfo: undefined,
};

/** Whether the check of whole settings would say this of the value alone. */
function isBroken(http: Partial<HttpDetails>, because: ProbeRelation): boolean {
  const settings = defaultProbeSettings("liveness", ANY_TARGET);
  const findings = checkProbeSettings({ ...settings, http: { ...DEFAULT_HTTP, ...http } });
  return findings.some((finding) => finding.because === because);
}
