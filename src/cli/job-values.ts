/**
 * Reads the values of a step: spans, commands, artifacts, variables, waits.
 *
 * Knows no key and no file. Always: every refusal names what is expected, and no reader throws.
 */

import { checkBackoff, LONGEST_SPAN_MS } from "../core/backoff.ts";
import type { Backoff } from "../core/backoff.ts";
import { cutFileWord, DEFAULT_MIN_BYTES } from "../core/expectations.ts";
import type { ArtifactSpec, StepCommand } from "../core/job-spec.ts";
import { DEFAULT_RETRY_BACKOFF } from "../core/retry-options.ts";
import { parseBackoffSpans } from "./probe-values.ts";
import { showWord } from "./shown-words.ts";
import { accepted, mapped, parsePath, parsePositiveSpan, refused } from "./values.ts";
import { parseSize, parseSpan } from "./values.ts";
import type { Parsed } from "./values.ts";

const EXPECTED_STEP = {
  command: "the name or path of a program, and no NUL in any word",
  shell: "a command of a shell",
  artifact:
    "a path below the directory of the job file, then any of :min=SIZE and :any-age, each once",
  below: "a path below the directory of the job file, without ..",
  backoff: "a span such as 10s, the first wait and the longest one such as 1s..30s",
  variable: "the name of a variable: letters, digits and _, no digit in front",
  own: "a name that does not begin with WATCHDOG_: those are set by watchdog",
  value: "a text without NUL",
} as const;

/** `90`, `"1h30m"`. */
export function readSpan(value: string | number): Parsed<number> {
  return parseSpan(String(value));
}

export function readCommand(value: string | readonly string[]): Parsed<StepCommand> {
  if (typeof value === "string") {
    const isGood = value.trim() !== "" && !value.includes("\0");
    return isGood ? accepted({ kind: "shell", text: value }) : refused(EXPECTED_STEP.shell);
  }
  const isGood = value[0] !== "" && !value.some((word) => word.includes("\0"));
  return isGood ? accepted({ kind: "arguments", words: value }) : refused(EXPECTED_STEP.command);
}

/** `out/app.db:min=1KiB`: the suffixes of `--expect-file`, but no ratio. */
export function readArtifact(word: string): Parsed<ArtifactSpec> {
  const { path, suffixes } = cutFileWord(word);
  const target = readPathBelow(path);
  if (target.kind === "refused") return target;
  let artifact: ArtifactSpec = {
    path: target.value,
    minBytes: DEFAULT_MIN_BYTES,
    isAnyAge: false,
  };
  const isTwice = new Set(suffixes.map(({ key }) => key)).size < suffixes.length;
  for (const suffix of suffixes) {
    if (isTwice || suffix.key === "min-ratio") return refused(EXPECTED_STEP.artifact);
    if (suffix.key === "any-age") artifact = { ...artifact, isAnyAge: true };
    else {
      const size = parseSize(suffix.value);
      if (size.kind === "refused") return refused(EXPECTED_STEP.artifact);
      artifact = { ...artifact, minBytes: size.value };
    }
  }
  return accepted(artifact);
}

/**
 * `./out//app.db` is `out/app.db`. What leads out by `..` is refused as it is written: with links
 * on the way nobody can say where it ends.
 */
export function readPathBelow(text: string): Parsed<string> {
  const path = parsePath(text);
  if (path.kind === "refused") return path;
  const parts = text.split("/").filter((part) => part !== "" && part !== ".");
  const isBelow = !text.startsWith("/") && !parts.includes("..") && parts.length > 0;
  return isBelow ? accepted(parts.join("/")) : refused(EXPECTED_STEP.below);
}

export interface WrittenBackoff {
  readonly initial?: string | number | undefined;
  readonly cap?: string | number | undefined;
  readonly factor?: number | undefined;
}

type Spans = Pick<Backoff, "initialMs" | "capMs">;

/**
 * `10s`, `1s..30s`, or a table. There is no bound in time: `retries` is the bound.
 *
 * @param retries  attempts beside the first
 */
export function readBackoff(
  value: string | number | WrittenBackoff | undefined,
  retries: number,
): Parsed<Backoff> {
  const table = typeof value === "object" ? value : undefined;
  const spans = table === undefined ? readSpans(value) : spansOf(table);
  if (spans.kind === "refused") return spans;
  const backoff: Backoff = {
    ...spans.value,
    factor: table?.factor ?? DEFAULT_RETRY_BACKOFF.factor,
    maxAttempts: retries + 1,
    maxElapsedMs: LONGEST_SPAN_MS,
  };
  const [broken] = checkBackoff(backoff);
  return broken === undefined ? accepted(backoff) : refused(broken.expected, broken.found);
}

function readSpans(value: unknown): Parsed<Spans> {
  if (value === undefined) return accepted(DEFAULT_RETRY_BACKOFF);
  const text = String(value);
  return text.includes("..") ? parseBackoffSpans(text) : mapped(readFirst(text), withCap);
}

function spansOf({ initial, cap }: WrittenBackoff): Parsed<Spans> {
  const first = readFirst(String(initial ?? `${DEFAULT_RETRY_BACKOFF.initialMs}ms`));
  if (first.kind === "refused" || cap === undefined) return mapped(first, withCap);
  return mapped(readFirst(String(cap)), (capMs) => ({ initialMs: first.value, capMs }));
}

function readFirst(text: string): Parsed<number> {
  const parsed = parsePositiveSpan(text);
  if (parsed.kind === "value") return parsed;
  return refused(`${EXPECTED_STEP.backoff}, each above 0`, showWord(text));
}

function withCap(initialMs: number): Spans {
  return { initialMs, capMs: Math.max(initialMs, DEFAULT_RETRY_BACKOFF.capMs) };
}

/** `NAME=value` or `NAME`, as the list of `env` has them. */
export function cutVariable(word: string): readonly [name: string, value: string | null] {
  const at = word.indexOf("=");
  return at < 0 ? [word, null] : [word.slice(0, at), word.slice(at + 1)];
}

/** The values are no part of a refusal: they may be secrets. */
export function refusalOfVariable(name: string, value: string | null): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return EXPECTED_STEP.variable;
  // A step with another run path would not be found as a member of the tree.
  if (name.startsWith("WATCHDOG_")) return EXPECTED_STEP.own;
  return value?.includes("\0") === true ? EXPECTED_STEP.value : undefined;
}
