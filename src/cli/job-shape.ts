/**
 * Checks the plain value of a job file against its shape (job-schema.ts): each complaint of zod as
 * a finding of ours.
 *
 * Always: no value of `env` is shown.
 */

import type { z } from "zod";
import { describeValue } from "../core/config-values.ts";
import type { Finding, FindingPath } from "./job-findings.ts";
import { BACKOFF_KEYS, JOB_KEYS, jobSchema, STEP_KEYS } from "./job-schema.ts";
import type { JobShape } from "./job-schema.ts";
import { isOfWholeJob } from "./step-options.ts";

export type ShapeReading =
  | { readonly kind: "shape"; readonly shape: JobShape }
  | { readonly kind: "refused"; readonly findings: readonly Finding[] };

type Issue = z.core.$ZodIssue;

export function readShape(value: unknown): ShapeReading {
  const parsed = jobSchema.safeParse(value);
  if (parsed.success) return { kind: "shape", shape: parsed.data };
  const findings = parsed.error.issues.flatMap((issue) => findingsOf(issue, [], value));
  return { kind: "refused", findings };
}

function findingsOf(issue: Issue, above: FindingPath, value: unknown): readonly Finding[] {
  const path = [...above, ...issue.path.map((part) => (isPart(part) ? part : String(part)))];
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(path, key));
  const inner = issue.code === "invalid_union" ? deeperOf(issue.errors) : undefined;
  if (inner !== undefined) return inner.flatMap((each) => findingsOf(each, path, value));
  const found = valueAt(value, path);
  if (found === undefined) {
    const because = "missing-key";
    return [{ because, path, found: `no ${String(path.at(-1))}`, expected: issue.message }];
  }
  const because = issue.code === "invalid_value" ? "wrong-value" : "wrong-kind";
  return [{ because, path, found: describeFound(found, path), expected: issue.message }];
}

/** Of a table where a text or a table may stand: what is wrong in the table. */
function deeperOf(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  return branches.find((issues) =>
    issues.every(({ path, code }) => path.length > 0 || code === "unrecognized_keys"),
  );
}

function isPart(part: PropertyKey): part is string | number {
  return typeof part !== "symbol";
}

function valueAt(value: unknown, path: FindingPath): unknown {
  let found = value;
  for (const part of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Record<string | number, unknown>)[part];
  }
  return found;
}

function describeFound(found: unknown, path: FindingPath): string {
  if (found === null) return "nothing";
  // PIN: 1234
  const isSecret = path.includes("env") && typeof found !== "object";
  return isSecret ? `a ${typeof found}` : describeValue(found);
}

function unknownKey(above: FindingPath, key: string): Finding {
  const path = [...above, key];
  const about = { path, isAboutKey: true } as const;
  const isOfStep = above[0] === "steps" && above.length === 2;
  if (isOfStep && isOfWholeJob(key)) {
    const found = "an option that belongs to the whole job";
    const expected = `it behind watchdog job run, or in a table [jobs.NAME] of the configuration`;
    return { because: "unknown-key", ...about, found, expected };
  }
  const candidates = above.length === 0 ? JOB_KEYS : isOfStep ? STEP_KEYS : BACKOFF_KEYS;
  const expected = isOfStep ? "a key of a step" : `one of ${listShown(candidates)}`;
  return { because: "unknown-key", ...about, found: "an unknown key", expected, candidates };
}

function listShown(keys: readonly string[]): string {
  return keys.filter((key) => !key.startsWith("$")).join(", ");
}
