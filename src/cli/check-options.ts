/**
 * The options of `watchdog run` about what the command must bring about, where it says itself that
 * all is well.
 *
 * A part of the one table in options-table.ts. Always: an expression is compiled here, so that a
 * run never meets one that is none; options that may be given more than once add.
 */

import {
  cutFileWord,
  DEFAULT_MIN_BYTES,
  type Expectations,
  type FileExpectation,
  type FileSuffix,
  MOST_EXPECTED_FILES,
} from "../core/expectations.ts";
import {
  compileLinePattern,
  findForeignWord,
  isFoundEverywhere,
  LONGEST_PATTERN,
  wantsLineFeed,
} from "../core/line-pattern.ts";
import type { RunOptions } from "../core/run-options.ts";
import { problem, type Problem } from "./cut-options.ts";
import { option, toggle } from "./option-row.ts";
import type { OptionRow } from "./option-row.ts";
import { showWord } from "./shown-words.ts";
import * as values from "./values.ts";
import type { Parsed, Refused } from "./values.ts";

/** Each is tried on every line of the output. */
const MOST_PATTERNS = 64;

const EXPECTED = {
  file:
    "a path, then any of :min=SIZE, :any-age and :min-ratio=R (above 0, at most 1), each once, " +
    "such as out/app.db:min=1KiB",
  pattern: `a regular expression of JavaScript of 1 to ${LONGEST_PATTERN} letters, such as ^ERROR`,
} as const;

const FILE_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--expect-file",
    "texts",
    {
      valueName: "PATH[:SUFFIX...]",
      example: "out/app.db:min=1KiB",
      defaultText: "none",
      help:
        "The command must leave this file, not empty, and changed since before the start. " +
        "Suffixes: :min=SIZE at least so large (:min=0 allows an empty one), :any-age it need " +
        "not have changed, :min-ratio=R at least this part of its size after the last good run. " +
        "A directory counts as all files in it; * ? [] ** match names, and then each file that " +
        "has changed counts. May be given more than once.",
    },
    (text) => values.mapped(parseFile(text), (file) => ({ expectFiles: [file] })),
  ),
];

const OUTPUT_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  toggle(
    "--expect-output",
    { help: "The command must print something, to stdout or stderr." },
    (expectsOutput) => ({ expectsOutput }),
  ),
  option(
    "--expect-match",
    "texts",
    {
      valueName: "REGEX",
      example: "^backup complete",
      defaultText: "none",
      help:
        "A line of the output must match REGEX (of JavaScript; in capitals or not: (?i:REGEX)). " +
        "May be given more than once.",
    },
    (text) => values.mapped(parsePattern(text), (pattern) => ({ expectMatches: [pattern] })),
  ),
  option(
    "--fail-match",
    "texts",
    {
      valueName: "REGEX",
      example: "^(ERROR|FATAL)",
      defaultText: "none",
      help: "No line of the output may match REGEX. May be given more than once.",
    },
    (text) => values.mapped(parsePattern(text), (pattern) => ({ failMatches: [pattern] })),
  ),
];

const USUAL_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  option(
    "--min-duration",
    "span",
    {
      valueName: "SPAN",
      example: "1m",
      defaultText: "no limit",
      help: "The run must last at least this long. 0: no limit.",
    },
    (text) =>
      values.mapped(values.parseSpan(text), (ms) => ({
        minDurationMs: ms === 0 ? undefined : ms,
      })),
  ),
  toggle(
    "--strict",
    {
      help:
        "A run that is far from usual fails: its duration, its output or its files, measured " +
        "by at least 5 good runs before. Without it that is only told, on a terminal or with -v.",
    },
    (isStrict) => ({ isStrict }),
  ),
];

export const CHECK_ROWS: readonly OptionRow<Partial<RunOptions>>[] = [
  ...FILE_ROWS,
  ...OUTPUT_ROWS,
  ...USUAL_ROWS,
];

type Lists = Pick<Expectations, "expectFiles" | "expectMatches" | "failMatches">;
type Collected = { readonly kind: "piece"; readonly options: Lists } | Problem;

/** What may be given more than once adds, where any other option replaces. */
export function collectExpectations(parts: readonly Partial<RunOptions>[]): Collected {
  const options = {
    expectFiles: parts.flatMap((part) => part.expectFiles ?? []),
    expectMatches: parts.flatMap((part) => part.expectMatches ?? []),
    failMatches: parts.flatMap((part) => part.failMatches ?? []),
  };
  const { expectFiles, expectMatches, failMatches } = options;
  if (expectFiles.length > MOST_EXPECTED_FILES) {
    return problem(
      `--expect-file: found ${expectFiles.length} of them, expected at most ${MOST_EXPECTED_FILES}`,
    );
  }
  const patterns = expectMatches.length + failMatches.length;
  if (patterns > MOST_PATTERNS) {
    return problem(
      `--expect-match, --fail-match: found ${patterns} of them, expected at most ${MOST_PATTERNS}`,
    );
  }
  return { kind: "piece", options };
}

function parsePattern(text: string): Parsed<string> {
  if (!values.isFaithful(text) || compileLinePattern(text) === undefined) {
    return values.refused(EXPECTED.pattern);
  }
  const foreign = findForeignWord(text);
  if (foreign !== undefined) {
    return values.refused(EXPECTED.pattern, `${showWord(foreign)}, which JavaScript does not know`);
  }
  if (wantsLineFeed(text)) {
    return values.refused(EXPECTED.pattern, `${showWord(text)}, where no line holds a line feed`);
  }
  return isFoundEverywhere(text)
    ? values.refused(EXPECTED.pattern, `${showWord(text)}, which is found in every line`)
    : values.accepted(text);
}

function parseFile(text: string): Parsed<FileExpectation> {
  const { path, suffixes } = cutFileWord(text);
  const target = values.parsePath(path);
  const isTwice = new Set(suffixes.map(({ key }) => key)).size < suffixes.length;
  if (target.kind === "refused" || isTwice) return values.refused(EXPECTED.file);
  let file: FileExpectation = {
    target: target.value,
    minBytes: DEFAULT_MIN_BYTES,
    isAnyAge: false,
    minRatio: undefined,
  };
  for (const suffix of suffixes) {
    const part = readSuffix(suffix);
    if (part.kind === "refused") return part;
    file = { ...file, ...part.value };
  }
  return values.accepted(file);
}

function readSuffix(suffix: FileSuffix): Parsed<Partial<FileExpectation>> | Refused {
  if (suffix.key === "any-age") return values.accepted({ isAnyAge: true });
  if (suffix.key === "min") {
    const size = values.parseSize(suffix.value);
    if (size.kind === "refused") return values.refused(EXPECTED.file);
    return values.accepted({ minBytes: size.value });
  }
  const isNumber = /^(?:0?\.[0-9]{1,9}|0|1|1\.0)$/.test(suffix.value);
  const minRatio = Number(suffix.value);
  if (!isNumber || minRatio <= 0) return values.refused(EXPECTED.file);
  return values.accepted({ minRatio });
}
