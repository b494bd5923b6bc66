/**
 * Whether a run that its command calls good has brought about what was expected of it: one result
 * for each check, decided from facts. Pure.
 *
 * Always: what could not be looked at is no success. A check is decided only where the command
 * itself said that all is well; its own status goes before all of them.
 */
import type { Expectations } from "./expectations.ts";
import { decideFile, type FileFacts } from "./file-changes.ts";

export const CHECK_REASONS = [
  "file-missing",
  "file-empty",
  "file-unchanged",
  "file-too-small",
  "file-shrunk",
  "file-unread",
  "no-output",
  "match-missing",
  "match-forbidden",
  "match-abandoned",
  "too-short",
  "suspicious",
  "unchecked",
] as const;

export type CheckReason = (typeof CHECK_REASONS)[number];

export type CheckName =
  "expect-file" | "expect-output" | "expect-match" | "fail-match" | "min-duration" | "strict";

/** As the record tells it. */
export interface CheckResult {
  readonly check: CheckName;
  /** The path, the expression, or what was measured; null: there is only one such check. */
  readonly target: string | null;
  readonly passed: boolean;
  /** Null where it has passed. */
  readonly because: CheckReason | null;
  readonly found: string;
  readonly expected: string;
}

/** What became of one expression. */
export interface PatternFacts {
  readonly source: string;
  readonly status: "open" | "found" | "abandoned";
  readonly line: string | undefined;
  readonly reason: string | undefined;
}

export interface OutputFactsOfRun {
  readonly bytes: number;
  /** False: a stream was not read to its end, and "not found" says nothing. */
  readonly isComplete: boolean;
  /** Those of `expectMatches`, then those of `failMatches`. */
  readonly patterns: readonly PatternFacts[];
}

export interface CheckFacts {
  readonly asked: Expectations;
  readonly files: readonly FileFacts[];
  /** Undefined: nobody looked, because nothing was asked of it. */
  readonly output: OutputFactsOfRun | undefined;
  /** Of the run, without the time in which it was paused. */
  readonly durationMs: number;
}

export function decideChecks(facts: CheckFacts): readonly CheckResult[] {
  const { asked } = facts;
  return [
    ...facts.files.map(decideFile),
    ...(asked.expectsOutput ? [decideOutput(facts.output)] : []),
    ...decideMatches(facts),
    ...(asked.minDurationMs === undefined
      ? []
      : [decideDuration(facts.durationMs, asked.minDurationMs)]),
  ];
}

/** Trouble of watchdog's own kept all of them from being made: none has passed. */
export function decideUnchecked(asked: Expectations, reason: string): readonly CheckResult[] {
  const names: readonly (readonly [CheckName, string | null])[] = [
    ...asked.expectFiles.map(({ target }) => ["expect-file", target] as const),
    ...(asked.expectsOutput ? [["expect-output", null] as const] : []),
    ...asked.expectMatches.map((source) => ["expect-match", source] as const),
    ...asked.failMatches.map((source) => ["fail-match", source] as const),
    ...(asked.minDurationMs === undefined ? [] : [["min-duration", null] as const]),
  ];
  const failed = { passed: false, because: "unchecked", found: reason } as const;
  return names.map(([check, target]) => ({ check, target, ...failed, expected: "a check" }));
}

/** The reasons of those that have failed, in their order. */
export function listFailures(results: readonly CheckResult[]): readonly CheckReason[] {
  return results.flatMap(({ because }) => because ?? []);
}

function decideOutput(output: OutputFactsOfRun | undefined): CheckResult {
  const bytes = output?.bytes ?? 0;
  return {
    check: "expect-output",
    target: null,
    passed: bytes > 0,
    because: bytes > 0 ? null : "no-output",
    found: bytes > 0 ? `${bytes} bytes` : "nothing",
    expected: "at least one byte on stdout or stderr",
  };
}

function decideMatches({ asked, output }: CheckFacts): readonly CheckResult[] {
  const wanted = asked.expectMatches.length;
  const sources = [...asked.expectMatches, ...asked.failMatches];
  return sources.map((source, index) => {
    const facts = output?.patterns[index] ?? nobodyLooked(source);
    const isComplete = output?.isComplete ?? false;
    return index < wanted ? decideWanted(facts, isComplete) : decideForbidden(facts, isComplete);
  });
}

function nobodyLooked(source: string): PatternFacts {
  return { source, status: "abandoned", line: undefined, reason: "the output was not copied" };
}

function decideWanted(facts: PatternFacts, isComplete: boolean): CheckResult {
  const judge = { check: "expect-match", target: facts.source } as const;
  const expected = "a line that matches";
  if (facts.status === "found") {
    return { ...judge, passed: true, because: null, found: showLine(facts), expected };
  }
  const unknown = whyUnknown(facts, isComplete);
  if (unknown !== undefined) return abandoned(judge, unknown, expected);
  return { ...judge, passed: false, because: "match-missing", found: "no such line", expected };
}

function decideForbidden(facts: PatternFacts, isComplete: boolean): CheckResult {
  const judge = { check: "fail-match", target: facts.source } as const;
  const expected = "no line that matches";
  if (facts.status === "found") {
    return {
      ...judge,
      passed: false,
      because: "match-forbidden",
      found: showLine(facts),
      expected,
    };
  }
  const unknown = whyUnknown(facts, isComplete);
  if (unknown !== undefined) return abandoned(judge, unknown, expected);
  return { ...judge, passed: true, because: null, found: "no such line", expected };
}

function abandoned(
  judge: Pick<CheckResult, "check" | "target">,
  found: string,
  expected: string,
): CheckResult {
  return { ...judge, passed: false, because: "match-abandoned", found, expected };
}

function whyUnknown(facts: PatternFacts, isComplete: boolean): string | undefined {
  if (facts.status === "abandoned") return `given up: ${facts.reason ?? "it was too slow"}`;
  return isComplete ? undefined : "the output was not read to its end";
}

/** Of a line in a message. */
const LONGEST_QUOTE = 160;

function showLine({ line = "" }: PatternFacts): string {
  const letters = Array.from(line.slice(0, 2 * LONGEST_QUOTE + 2));
  const isLong = letters.length > LONGEST_QUOTE;
  return `"${letters.slice(0, LONGEST_QUOTE).join("")}${isLong ? "…" : ""}"`;
}

function decideDuration(foundMs: number, leastMs: number): CheckResult {
  const passed = foundMs >= leastMs;
  return {
    check: "min-duration",
    target: null,
    passed,
    because: passed ? null : "too-short",
    found: `${Math.round(foundMs)} ms`,
    expected: `at least ${leastMs} ms`,
  };
}
