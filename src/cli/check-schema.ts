/**
 * The part of the record that tells what a run has brought about, field by field, and the reasons
 * for which a check fails. Never loaded by a run.
 */

import { z } from "zod";
import { CHECK_REASONS } from "../core/checks.ts";
import type { CheckReason } from "../core/checks.ts";

/** Keyed by the reasons of core, so that one too many or too few does not compile. */
export const CHECK_MEANINGS: Readonly<Record<CheckReason, string>> = {
  "file-missing": "an expected file is not there",
  "file-empty": "an expected file is empty",
  "file-unchanged": "an expected file is the same as before the start",
  "file-too-small": "an expected file is smaller than its :min",
  "file-shrunk": "an expected file is smaller than its :min-ratio of the last good run allows",
  "file-unread": "an expected file could not be looked at",
  "no-output": "the command printed nothing",
  "match-missing": "no line of the output matched --expect-match",
  "match-forbidden": "a line of the output matched --fail-match",
  "match-abandoned": "an expression was too slow, or not all of the output could be looked at",
  "too-short": "the run was shorter than --min-duration",
  unchecked: "trouble of watchdog's own kept the results from being looked at",
  suspicious: "the run was far from usual, and --strict was given",
};

const count = z.int().nonnegative();

export const checkFields = z.looseObject({
  check: z.string().describe("the option, without its dashes"),
  target: z.string().nullable().describe("its path, expression or measure, null: it has none"),
  passed: z.boolean().describe("whether what was found is what was expected"),
  because: z.enum(CHECK_REASONS).nullable().describe("why it has failed, null: it has passed"),
  found: z.string().describe("what was found, for people"),
  expected: z.string().describe("what was expected, for people"),
});

export const artifactFields = z.looseObject({
  path: z.string().describe("the file, directory or pattern, absolute"),
  target: z.string().describe("the same as it was written"),
  files: count.describe("how many files count: of a pattern those that have changed"),
  bytes: count.describe("their bytes together"),
  changed_at: z.iso
    .datetime()
    .nullable()
    .describe("when the newest of them was modified (wall clock, UTC)"),
});

export const suspicionFields = z.looseObject({
  measure: z.string().describe("`duration_ms`, `output_bytes` or `artifact_bytes:` and the target"),
  value: z.number().describe("what this run had"),
  usual: z.number().describe("the median of the good runs before"),
  spread: z.number().describe("the factor within which half of them lie around it"),
  runs: count.describe("how many they were"),
});
