/** Texts of job files in tests: what they give, and what is said of them. */

import { renderFinding } from "../../src/cli/job-findings.ts";
import { readJobText } from "../../src/cli/load-job.ts";
import type { JobSpec, StepSpec } from "../../src/core/job-spec.ts";

export function specOf(text: string, file = "/srv/app/nightly.yaml"): JobSpec {
  const reading = readJobText(text, file);
  if (reading.kind === "job") return reading.spec;
  throw new Error(reading.findings.map((finding) => renderFinding(file, finding)).join("\n"));
}

/** All that is said, with `f.yaml` for the name of the file. */
export function sentencesOf(text: string, file = "f.yaml"): string[] {
  const reading = readJobText(text, file);
  return reading.kind === "job" ? [] : reading.findings.map((each) => renderFinding(file, each));
}

/** Of one step, with `keys` beside its command. */
export function stepOf(keys: string): StepSpec | undefined {
  return specOf(`name: j\nsteps:\n  a: { command: x, side_effects: none, ${keys} }\n`).steps[0];
}

/** What is said of one step; the name of the file and the place are left out. */
export function refusalOf(keys: string, head = "command: x, side_effects: none, "): string[] {
  const text = `name: j\nsteps:\n  a: { ${head}${keys} }\n`;
  return sentencesOf(text).map((sentence) => sentence.replace(/^f\.yaml:\d+:\d+: /, ""));
}
