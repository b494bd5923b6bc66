/**
 * A job file: from its path to the JobSpec, or to all that is wrong in it.
 *
 * Loaded only for the commands of jobs. Always: a file with anything wrong in it gives no job, and
 * nothing in it is passed over.
 */

import { dirname, extname } from "node:path";
import { WatchdogError } from "../core/errors.ts";
import { checkJob } from "../core/job-check.ts";
import type { JobSpec } from "../core/job-spec.ts";
import { NO_SETTINGS } from "../core/settings.ts";
import type { Settings } from "../core/settings.ts";
import { parseToml } from "../os/config-file.ts";
import { readJobFile } from "../os/job-file.ts";
import { renderFinding } from "./job-findings.ts";
import type { Finding, PlacedFinding } from "./job-findings.ts";
import type { JobShape, StepShape } from "./job-schema.ts";
import { readShape } from "./job-shape.ts";
import { readEnv, readStep } from "./job-step.ts";
import { readJson } from "./json-text.ts";
import { placeOf, placesIn, plainOf } from "./located.ts";
import type { Located } from "./located.ts";
import { quoteForShell, showWord } from "./shown-words.ts";
import { parseName } from "./values.ts";
import { readYaml } from "./yaml-text.ts";

export type JobReading =
  | { readonly kind: "job"; readonly spec: JobSpec }
  | { readonly kind: "refused"; readonly findings: readonly PlacedFinding[] };

/** More of them than this nobody reads. */
const MOST_FINDINGS = 100;

/** More about a path where no file can be read, and the line for it. */
export type ExplainMissing = (path: string) => { readonly more: string; readonly hint: string };

/**
 * Reads and checks a job file.
 *
 * @param path  as it was given
 * @param settings  the configuration, whose tables of probes a step may name
 * @throws WatchdogError "config.refused" (78) with the first of what is wrong
 */
export function loadJob(
  path: string,
  settings: Settings = NO_SETTINGS,
  explain?: ExplainMissing,
): JobSpec {
  const reading = readJob(path, settings);
  if (reading.kind === "job") return reading.spec;
  throw refuseJob(path, reading.findings, explain);
}

type Refused = Extract<JobReading, { kind: "refused" }>;

/** Nothing lies there that could be read. */
export function isNoFile({ findings }: Refused): boolean {
  return findings.some(({ because }) => because === "unreadable");
}

export function refuseJob(
  path: string,
  findings: readonly PlacedFinding[],
  explain?: ExplainMissing,
): WatchdogError {
  const [first, ...others] = findings;
  const sentence = first === undefined ? `${path}: no job` : renderFinding(path, first);
  const rest = others.length === 0 ? "" : ` (and ${others.length} more)`;
  if (first?.because === "unreadable" && explain !== undefined) {
    const { more, hint } = explain(path);
    return new WatchdogError("config.refused", sentence + more, { hint });
  }
  const hint = quoteForShell(["watchdog", "job", "verify", path]) ?? "watchdog help job";
  return new WatchdogError("config.refused", sentence + rest, { hint });
}

/** The same with all findings, in the order in which they were found. */
export function readJob(path: string, settings: Settings = NO_SETTINGS): JobReading {
  const file = readJobFile(path);
  if (file.kind === "refused") {
    const { found, expected } = file;
    const finding = { because: "unreadable", path: [], found, expected } as const;
    return {
      kind: "refused",
      findings: [{ ...finding, place: undefined, beforePlace: undefined }],
    };
  }
  return readJobText(file.text, file.path, settings);
}

/** @param file  absolute, as realpath(3) gives it; the end of its name says the language */
export function readJobText(
  text: string,
  file: string,
  settings: Settings = NO_SETTINGS,
): JobReading {
  const parsed = parseText(text, extname(file));
  const findings = [...parsed.findings];
  const around = { file, settings, order: namesInOrder(parsed.root) };
  const spec = findings.length > 0 ? undefined : readSpec(parsed.value, around, findings);
  if (spec !== undefined && findings.length === 0) return { kind: "job", spec };
  const at = placesIn(text);
  const placed = findings.slice(0, MOST_FINDINGS).map((finding): PlacedFinding => {
    const { root } = parsed;
    const { path, isAboutKey = false, before } = finding;
    const byPath =
      root === undefined ? undefined : placeOf(root, path, isAboutKey ? "key" : "value");
    const offset = finding.at ?? (path.length === 0 ? undefined : byPath);
    return {
      ...finding,
      place: offset === undefined ? undefined : at(offset),
      beforePlace: before === undefined ? undefined : at(before),
    };
  });
  return { kind: "refused", findings: placed };
}

interface ParsedText {
  readonly value: unknown;
  /** Undefined: the language tells no places. */
  readonly root: Located | undefined;
  readonly findings: readonly Finding[];
}

function parseText(text: string, ending: string): ParsedText {
  if (ending === ".toml") return parseTomlText(text);
  if (ending === ".json") return parseJsonText(text);
  return parseYamlText(text);
}

/** Equal keys are an error of its own reader, and it tells only the line of an error. */
function parseTomlText(text: string): ParsedText {
  const toml = parseToml(text);
  if (toml.kind === "table") return { value: toml.table, root: undefined, findings: [] };
  return refuseText([{ because: "not-toml", path: [], found: toml.found, expected: "TOML" }]);
}

function parseJsonText(text: string): ParsedText {
  const json = readJson(text);
  if (json.kind === "value") return plain(json.root);
  const found = json.at >= text.length ? "the end of the file" : showWord(text[json.at] ?? "");
  const { at, expected } = json;
  return refuseText([{ because: "not-json", path: [], at, found, expected }]);
}

function parseYamlText(text: string): ParsedText {
  const yaml = readYaml(text);
  if (yaml.kind === "value") return plain(yaml.root);
  return refuseText(
    yaml.findings.map((finding) => ({ because: "not-yaml", path: [], ...finding })),
  );
}

function plain(root: Located): ParsedText {
  return { ...plainOf(root), root };
}

function refuseText(findings: readonly Finding[]): ParsedText {
  return { value: undefined, root: undefined, findings };
}

interface SpecAround {
  readonly file: string;
  readonly settings: Settings;
  /** Of the names of the steps in the file; undefined: not known. */
  readonly order: readonly string[] | undefined;
}

/** A table of JavaScript has keys such as 10 in front of all others; the file need not. */
function namesInOrder(root: Located | undefined): readonly string[] | undefined {
  const steps =
    root?.kind === "map" ? root.entries.find(({ key }) => key === "steps")?.value : undefined;
  return steps?.kind === "map" ? steps.entries.map(({ key }) => key) : undefined;
}

/** Undefined: there is a finding. */
function readSpec(value: unknown, around: SpecAround, findings: Finding[]): JobSpec | undefined {
  const reading = readShape(value);
  if (reading.kind === "refused") {
    findings.push(...reading.findings);
    return undefined;
  }
  const { shape } = reading;
  const spec = specOf(shape, around, findings);
  if (findings.length > 0) return undefined;
  for (const { place, subject, found, expected } of checkJob(spec)) {
    const candidates = place.at(-2) === "needs" ? spec.steps.map(({ name }) => name) : [];
    const about = { path: place, found, expected, candidates, word: subject };
    findings.push({ because: "wrong-job", ...about });
  }
  return spec;
}

function specOf(shape: JobShape, of: SpecAround, findings: Finding[]): JobSpec {
  const { file, settings, order = Object.keys(shape.steps) } = of;
  const name = parseName(shape.name);
  if (name.kind === "refused") {
    const { expected } = name;
    findings.push({ because: "wrong-value", path: ["name"], found: "another text", expected });
  }
  const env = readEnv(shape.env, ["env"], findings);
  const around = { env, probes: settings.probes };
  const steps = order.flatMap((step) => {
    const each = shape.steps[step];
    return each === undefined ? [] : [readStep(step, each as StepShape, around, findings)];
  });
  const directory = dirname(file);
  return { name: shape.name, file, directory, maxParallel: shape.max_parallel ?? 1, steps };
}
