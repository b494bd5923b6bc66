/**
 * Whether an answer is the one that was wanted. Pure, but an expression may run for minutes on a
 * text of a megabyte (`a*b` on as many `a`: measured): whoever waits for the verdict does so in
 * another thread.
 */
import { findInJson, fitsJson, parseJsonPath } from "../core/json-path.ts";
import { escapeUnprintable, withoutLastWord } from "../core/printable.ts";
import type { ProbeVerdict } from "../core/probe-result.ts";
import { compileBodyPattern, expectsStatus } from "../core/probe-settings.ts";
import type { HttpDetails, JsonExpectation, StatusRange } from "../core/probe-settings.ts";
import type { Answer, AnswerHead } from "./answer-reader.ts";
import { decodeBody } from "./decode-body.ts";

/** Of what another machine said, in a message. */
const LONGEST_QUOTE = 120;

/** @returns undefined: the status is an expected one, and the body is worth reading */
export function judgeHead(head: AnswerHead, http: HttpDetails): ProbeVerdict | undefined {
  const { status, headers } = head;
  if (expectsStatus(http.expectStatus, status)) return undefined;
  const expected = `expected ${sayRanges(http.expectStatus)}`;
  const location = headers.get("location");
  if (status < 300 || status > 399 || location === undefined) {
    return { because: "status", detail: `status ${status}, ${expected}` };
  }
  const target = quote(withoutSecrets(location));
  return { because: "redirect", detail: `status ${status}, redirect to ${target}, ${expected}` };
}

/**
 * @param onExpression  called right before an expression is tried, which may not come to an end
 */
export function judgeAnswer(
  answer: Answer,
  http: HttpDetails,
  onExpression: (source: string) => void = () => undefined,
): ProbeVerdict {
  const early = judgeHead(answer, http);
  if (early !== undefined) return early;
  const good = { because: "good", detail: `status ${answer.status}` } as const;
  if (http.expectBody === undefined && http.expectJson.length === 0) return good;
  const body = decodeBody(answer, http.maxBytes);
  if (body.kind === "failed") return { because: body.because, detail: body.detail };
  return (
    judgeText(body.text, http.expectBody, onExpression) ??
    judgeJson(body.text, http.expectJson) ??
    good
  );
}

function judgeText(
  text: string,
  source: string | undefined,
  onExpression: (source: string) => void,
): ProbeVerdict | undefined {
  if (source === undefined) return undefined;
  const pattern = compileBodyPattern(source);
  if (pattern === undefined) {
    return { because: "unusable-settings", detail: `/${source}/ is no regular expression` };
  }
  onExpression(source);
  if (pattern.test(text)) return undefined;
  const detail = `the body ${quote(text)} does not match /${escapeUnprintable(source)}/`;
  return { because: "body-mismatch", detail };
}

function judgeJson(
  text: string,
  expectations: readonly JsonExpectation[],
): ProbeVerdict | undefined {
  if (expectations.length === 0) return undefined;
  const document = parseJson(text);
  if (document === undefined) {
    return { because: "json-mismatch", detail: `the body ${quote(text)} is no JSON` };
  }
  for (const { path, value } of expectations) {
    const steps = parseJsonPath(path);
    if (steps === undefined) {
      return { because: "unusable-settings", detail: `${quote(path)} is no JSON path` };
    }
    const found = findInJson(document.value, steps);
    if (fitsJson(found, value)) continue;
    const shown = found === undefined ? "nothing" : cut(JSON.stringify(found));
    const detail = `${escapeUnprintable(path)} is ${shown}, expected ${cut(value)}`;
    return { because: "json-mismatch", detail };
  }
  return undefined;
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined; // SyntaxError, RangeError (too deep): no document, which is what is told
  }
}

function sayRanges(ranges: readonly StatusRange[]): string {
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/** A query may hold a token, and what stands before an `@` a password. */
function withoutSecrets(location: string): string {
  return location.replace(/[?#].*$/s, "").replace(/^([a-z0-9+.-]*:)?\/\/[^/]*@/i, "$1//");
}

function quote(text: string): string {
  return `"${cut(text)}"`;
}

function cut(text: string): string {
  const letters = Array.from(text.slice(0, 2 * LONGEST_QUOTE + 2));
  const isLong = letters.length > LONGEST_QUOTE;
  const kept = letters.slice(0, LONGEST_QUOTE).join("");
  return isLong ? `${escapeUnprintable(withoutLastWord(kept))}…` : escapeUnprintable(kept);
}
