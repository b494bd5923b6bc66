/**
 * Reads one value of an option: spans, sizes, percents, times of the day, signals, exit codes,
 * names, paths.
 *
 * Knows nothing of flags, variables or commands: the caller says where the text came from. Always:
 * digits are ASCII digits; a positive amount never becomes 0, because 0 means "no limit" to some
 * options; every refusal names what is expected, with an example, and no reader throws.
 */

import type { TimeOfDay } from "../core/run-options.ts";
import { numberOfSignal } from "../core/signals.ts";

export interface Refused {
  readonly kind: "refused";
  readonly expected: string;
  /** A clause that says more than the text: what its parts are to each other. */
  readonly found?: string;
}

/** A value, or what was expected in its place. */
export type Parsed<T> = { readonly kind: "value"; readonly value: T } | Refused;

/** Longer words are refused before anything is computed from them. */
export const MAX_NUMBER_LENGTH = 64;
export const MAX_SPAN_MS = 3_650 * 86_400_000;
export const MAX_SIZE_BYTES = 2 ** 50;
/** One hundred percent on each of 1,024 cores. */
export const MAX_PERCENT = 102_400;
/** Room for a percent-encoded suffix within the 255 bytes of a file name (limits.h, NAME_MAX). */
export const MAX_NAME_BYTES = 200;
/** PATH_MAX of Linux counts the closing NUL. */
export const MAX_PATH_BYTES = 4_095;

const SPAN_UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

const SIZE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  kB: 1e3,
  KB: 1e3,
  KiB: 2 ** 10,
  MB: 1e6,
  MiB: 2 ** 20,
  GB: 1e9,
  GiB: 2 ** 30,
  TB: 1e12,
  TiB: 2 ** 40,
};

export const EXPECTED = {
  span: "a span such as 500ms, 5s, 2m, 1h30m or 1d, of at most 3650d",
  size: "a size such as 4096, 64KiB, 10MiB or 1GB, of at most 1024TiB",
  percent: "a percentage of one core above 0, such as 1, 0.5 or 1%",
  timeOfDay: "a time of the day from 00:00 to 23:59:59, such as 06:00",
  signal: "a signal such as TERM, SIGINT, 15 or RTMIN+1 (numbers 1 to 31 and 34 to 64)",
  exitCodes: "exit codes from 0 to 255 with commas between them, such as 0,24 or 0-3",
  failureCodes: "exit codes from 1 to 255 with commas between them, such as 7,28 or 1-3",
  isSwitch: "one of 1, true, yes, on, 0, false, no, off",
  name: `a name of 1 to ${MAX_NAME_BYTES} bytes of UTF-8 without control characters`,
  path: `a path of 1 to ${MAX_PATH_BYTES} bytes of UTF-8`,
} as const;

export function accepted<T>(value: T): Parsed<T> {
  return { kind: "value", value };
}

/** @param found  a clause that takes the place of the text in a sentence; holds no secret */
export function refused(expected: string, found?: string): Refused {
  return found === undefined ? { kind: "refused", expected } : { kind: "refused", expected, found };
}

/** `90s`, `1h30m`, `0.5` (seconds, as in timeout(1)): whole milliseconds, rounded up. */
export function parseSpan(text: string): Parsed<number> {
  if (text.length > MAX_NUMBER_LENGTH) return refused(EXPECTED.span);
  if (isAmount(text)) return withinSpan(multiply(text, 1_000));
  let rest = text;
  let sum = 0;
  // Each unit may come once and the larger one first, so the walk over the units is the limit of
  // the loop.
  for (const [unit, unitMs] of SPAN_UNITS) {
    const end = lengthOfAmount(rest);
    if (end === 0) break;
    if (unitAt(rest, end) !== unit) continue;
    sum += multiply(rest.slice(0, end), unitMs);
    rest = rest.slice(end + unit.length);
  }
  return rest === "" && text !== "" ? withinSpan(sum) : refused(EXPECTED.span);
}

/**
 * `4096`, `64KiB`, `1GB`: whole bytes, rounded up. A lone K, M or G is refused: it means two
 * things.
 */
export function parseSize(text: string): Parsed<number> {
  if (text.length > MAX_NUMBER_LENGTH) return refused(EXPECTED.size);
  const end = lengthOfAmount(text);
  const amount = text.slice(0, end);
  const unitText = text.slice(end);
  const unit = Object.hasOwn(SIZE_UNITS, unitText) ? SIZE_UNITS[unitText] : undefined;
  if (amount === "" || unit === undefined) return refused(EXPECTED.size);
  const bytes = multiply(amount, unit);
  return bytes <= MAX_SIZE_BYTES ? accepted(bytes) : refused(EXPECTED.size);
}

/** A span where 0 would mean nothing or everything, and nobody could say which. */
export function parsePositiveSpan(text: string): Parsed<number> {
  const parsed = parseSpan(text);
  const isZero = parsed.kind === "value" && parsed.value === 0;
  return isZero ? refused(`${EXPECTED.span}, and above 0`) : parsed;
}

/** A size where 0 would mean nothing or everything, and nobody could say which. */
export function parsePositiveSize(text: string): Parsed<number> {
  const parsed = parseSize(text);
  const isZero = parsed.kind === "value" && parsed.value === 0;
  return isZero ? refused(`${EXPECTED.size}, and above 0`) : parsed;
}

/** `1`, `0.5`, `1%`: percent of one core. 0 is refused, because nothing is below it. */
export function parsePercent(text: string): Parsed<number> {
  if (text.length > MAX_NUMBER_LENGTH) return refused(EXPECTED.percent);
  const digits = text.endsWith("%") ? text.slice(0, -1) : text;
  const amount = isAmount(digits) ? Number(digits) : 0;
  if (amount === 0 || amount > MAX_PERCENT) return refused(EXPECTED.percent);
  return accepted(amount);
}

/** `06:00`, `6:00`, `23:59:30`. */
export function parseTimeOfDay(text: string): Parsed<TimeOfDay> {
  const match = /^([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?$/.exec(text);
  if (match === null) return refused(EXPECTED.timeOfDay);
  const [hour, minute, second] = [Number(match[1]), Number(match[2]), Number(match[3] ?? "0")];
  if (hour > 23 || minute > 59 || second > 59) return refused(EXPECTED.timeOfDay);
  return accepted({ hour, minute, second });
}

/**
 * `TERM`, `SIGTERM`, `15`, `RTMIN+1`. 32 and 33 are refused: the C library keeps them (nptl(7)).
 */
export function parseSignal(text: string): Parsed<number> {
  // Letters outside ASCII such as U+017F become ASCII ones in upper case, so they are kept out
  // first.
  const number = /^[A-Za-z0-9+-]{1,12}$/.test(text) ? numberOfSignal(text) : undefined;
  if (number === undefined || number === 32 || number === 33) return refused(EXPECTED.signal);
  return accepted(number);
}

/** `0,24`, `0-3,24`: ascending, each once, 0 always among them. */
export function parseExitCodes(text: string): Parsed<readonly number[]> {
  const codes = listCodes(text);
  if (codes === undefined) return refused(EXPECTED.exitCodes);
  return accepted(inOrder(codes.add(0)));
}

/** `7,28`, `1-3`: ascending, each once; 0 is no failure. */
export function parseFailureCodes(text: string): Parsed<readonly number[]> {
  const codes = listCodes(text);
  const isRight = codes !== undefined && !codes.has(0);
  return isRight ? accepted(inOrder(codes)) : refused(EXPECTED.failureCodes);
}

function listCodes(text: string): Set<number> | undefined {
  if (text.length > MAX_PATH_BYTES) return undefined;
  const codes = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^([0-9]{1,3})(?:-([0-9]{1,3}))?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = Number(match[2] ?? match[1]);
    if (last > 255 || first > last) return undefined;
    for (let code = first; code <= last; code += 1) codes.add(code);
  }
  return codes;
}

function inOrder(codes: ReadonlySet<number>): readonly number[] {
  return [...codes].toSorted((left, right) => left - right);
}

/** The words of a switch in a variable; on the command line a switch has no value. */
export function parseSwitch(text: string): Parsed<boolean> {
  if (["1", "true", "yes", "on"].includes(text)) return accepted(true);
  if (["", "0", "false", "no", "off"].includes(text)) return accepted(false);
  return refused(EXPECTED.isSwitch);
}

export function parseChoice<T extends string>(text: string, choices: readonly T[]): Parsed<T> {
  const chosen = choices.find((choice) => choice === text);
  return chosen === undefined ? refused(`one of ${choices.join(", ")}`) : accepted(chosen);
}

/**
 * Slashes, dots, spaces and any script are fine in a name; how it looks on disk is not decided
 * here.
 */
export function parseName(text: string): Parsed<string> {
  const isBad = /[\p{Cc}\u2028\u2029]/u.test(text) || !isFaithful(text);
  if (text === "" || isBad || Buffer.byteLength(text) > MAX_NAME_BYTES)
    return refused(EXPECTED.name);
  return accepted(text);
}

export function parsePath(text: string): Parsed<string> {
  const isBad = text.includes("\0") || !isFaithful(text);
  if (text === "" || isBad || Buffer.byteLength(text) > MAX_PATH_BYTES)
    return refused(EXPECTED.path);
  return accepted(text);
}

/** The value with another shape; a refusal stays what it is. */
export function mapped<T, U>(parsed: Parsed<T>, change: (value: T) => U): Parsed<U> {
  return parsed.kind === "value" ? accepted(change(parsed.value)) : parsed;
}

/**
 * Bytes that were no UTF-8 arrive as U+FFFD, two different words as the same one: a name or a path
 * that carries it may not be the one that was meant.
 */
export function isFaithful(text: string): boolean {
  return !text.includes("\uFFFD");
}

function withinSpan(ms: number): Parsed<number> {
  return ms <= MAX_SPAN_MS ? accepted(ms) : refused(EXPECTED.span);
}

/**
 * The amount times a whole unit, rounded up. In integers, because 1.1 * 1000 is 1100.0000000000002
 * in binary, and rounding that up would make it 1101.
 */
function multiply(amount: string, unit: number): number {
  const [whole = "", fraction = ""] = amount.split(".");
  const divisor = 10n ** BigInt(fraction.length);
  const product = BigInt(whole + fraction) * BigInt(unit);
  return Number((product + divisor - 1n) / divisor);
}

function isAmount(text: string): boolean {
  return text !== "" && lengthOfAmount(text) === text.length;
}

/** How many characters of `text` are a decimal number: `12`, `1.5`, `.5`; no sign, no exponent. */
function lengthOfAmount(text: string): number {
  return /^(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)/.exec(text)?.[0].length ?? 0;
}

function unitAt(text: string, from: number): string {
  return /^[a-z]*/.exec(text.slice(from))?.[0] ?? "";
}
