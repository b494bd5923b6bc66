/**
 * What is wrong in a job file: the closed list of reasons, and the sentence that a person reads.
 *
 * Reads no file. Always: a finding shows no secret, and never more of a value than a sentence
 * bears.
 */

import { quoteKey } from "../core/config-values.ts";
import type { Place } from "./located.ts";
import { nearestOf } from "./nearest.ts";

export type FindingReason =
  | "unreadable"
  | "not-yaml"
  | "not-json"
  | "not-toml"
  | "too-large"
  | "duplicate-key"
  | "unknown-key"
  | "missing-key"
  | "wrong-kind"
  | "wrong-value"
  | "contradiction"
  /** See core/job-check.ts for which one. */
  | "wrong-job";

export type FindingPath = readonly (string | number)[];

export interface Finding {
  readonly because: FindingReason;
  /** `["steps", "pack", "needs", 0]`; empty: the file as a whole. */
  readonly path: FindingPath;
  /** The offset in the text; undefined: it is to be found by the path, or is not known. */
  readonly at?: number | undefined;
  /** The key itself is meant, not what stands behind it. */
  readonly isAboutKey?: boolean;
  /** The offset of what it is twice with. */
  readonly before?: number;
  /** A clause. */
  readonly found: string;
  /** A clause; undefined: what was found says all. */
  readonly expected: string | undefined;
  /** What a word may have been meant to be. */
  readonly candidates?: readonly string[];
  /** The word, where it is not the last part of the path. */
  readonly word?: string;
}

/** A finding with its place. */
export interface PlacedFinding extends Finding {
  /** Undefined: the language of the file does not tell, or it is about the file as a whole. */
  readonly place: Place | undefined;
  readonly beforePlace: Place | undefined;
}

/** `steps.pack.needs[0]`. */
export function renderPath(path: FindingPath): string {
  return path
    .map((part, at) => {
      if (typeof part === "number") return `[${part}]`;
      return at === 0 ? quoteKey(part) : `.${quoteKey(part)}`;
    })
    .join("");
}

/**
 * `nightly.yaml:7:12: steps.pack.needs[0]: found "dmup", expected the name of a step; the nearest
 * is dump`.
 */
export function renderFinding(file: string, finding: PlacedFinding): string {
  const { path, place, beforePlace, found, expected } = finding;
  const where = place === undefined ? file : `${file}:${place.line}:${place.column}`;
  const whose = path.length === 0 ? where : `${where}: ${renderPath(path)}`;
  const line = beforePlace === undefined ? "" : `, on line ${beforePlace.line}`;
  if (expected === undefined) return `${whose}: ${found}${line}`;
  const near = nearestTo(finding);
  const guess = near === undefined ? "" : `; the nearest is ${near}`;
  return `${whose}: found ${found}${line}, expected ${expected}${guess}`;
}

function nearestTo({ path, candidates = [], word }: Finding): string | undefined {
  return nearestOf(word ?? String(path.at(-1) ?? ""), candidates);
}
