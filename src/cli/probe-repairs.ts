/**
 * Which options a broken relation between the settings of a probe is about, and how a line may be
 * put right.
 *
 * Checks nothing. Always: a repair is a guess; whoever shows one has cut it before.
 */

import type { ProbeFinding, ProbeRelation } from "../core/probe-check.ts";
import { startupOf } from "../core/probe-settings.ts";
import type { HttpDetails, ProbeSettings } from "../core/probe-settings.ts";
import type { Repair } from "./cut-options.ts";
import { renderLongSpan } from "./lease-values.ts";
import { setTo } from "./read-line.ts";
import type { ReadLine } from "./read-line.ts";

/** In place of the option that names the target. */
const TARGET = "target";
const BACKOFF = ["--probe-backoff", "--probe-backoff-factor"];

/** Those whose values make it, the one that is told of first. */
const FLAGS: Readonly<Record<ProbeRelation, readonly string[]>> = {
  "period-not-positive": ["--probe-period"],
  "timeout-not-positive": ["--probe-timeout"],
  "timeout-above-period": ["--probe-timeout", "--probe-period"],
  "timeout-above-startup-wait": ["--probe-timeout", "--probe-startup-wait"],
  "initial-delay-negative": ["--probe-initial-delay"],
  "startup-wait-not-positive": ["--probe-startup-wait"],
  "failure-threshold-below-1": ["--probe-failure-threshold"],
  "success-threshold-below-1": ["--probe-success-threshold"],
  "window-below-failures": ["--probe-failure-window"],
  "not-for-this-target": [TARGET], // of a finding without a detail
  "tls-without-https": ["--probe-ca-file", "--probe-insecure", TARGET],
  "insecure-with-ca": ["--probe-insecure", "--probe-ca-file"],
  "two-credentials": ["--probe-credentials", "--probe-header", TARGET],
  "not-a-method": ["--probe-method"],
  "body-without-method": ["--probe-body", "--probe-method"],
  "no-body-to-look-at": ["--probe-expect-body", "--probe-expect-json", "--probe-method"],
  "not-a-header": ["--probe-header"],
  "two-of-one-header": ["--probe-header"],
  "no-such-status": ["--probe-expect-status"],
  "not-an-expression": ["--probe-expect-body"],
  "not-a-json-path": ["--probe-expect-json"],
  "max-bytes-outside": ["--probe-max-bytes"],
  "initial-not-positive": BACKOFF,
  "cap-below-initial": BACKOFF,
  "factor-below-1": BACKOFF,
  "attempts-below-1": ["--probe-max-attempts"],
  "elapsed-not-positive": ["--probe-max-elapsed"],
  "elapsed-below-initial": ["--probe-max-elapsed", "--probe-backoff"],
  "beyond-limits": [...BACKOFF, "--probe-max-attempts", "--probe-max-elapsed"],
};

/** By which option each of them is told. */
const OF_DETAILS: Readonly<Record<keyof HttpDetails, string>> = {
  method: "--probe-method",
  headers: "--probe-header",
  body: "--probe-body",
  bodyFile: "--probe-body",
  expectStatus: "--probe-expect-status",
  expectBody: "--probe-expect-body",
  expectJson: "--probe-expect-json",
  caFile: "--probe-ca-file",
  isInsecure: "--probe-insecure",
  usesProxy: "--probe-proxy",
  maxBytes: "--probe-max-bytes",
  credentialsFile: "--probe-credentials",
};

/** @param targetFlag  the option that names the target; undefined: none does */
export function flagsOf(
  { because, detail }: ProbeFinding,
  targetFlag: string | undefined,
): readonly string[] {
  if (detail !== undefined) return [OF_DETAILS[detail]];
  return FLAGS[because].flatMap((flag) => (flag === TARGET ? (targetFlag ?? []) : flag));
}

/** Value undefined: without the option. */
type Change = readonly [flag: string, value: string | undefined];

function changesOf(finding: ProbeFinding, settings: ProbeSettings): readonly Change[] {
  const { periodMs, startupWaitMs } = settings;
  const { timeoutMs, backoff } = finding.isOfStart === true ? startupOf(settings) : settings;
  switch (finding.because) {
    case "timeout-above-period":
      return [
        ["--probe-timeout", renderLongSpan(periodMs)],
        ["--probe-period", renderLongSpan(timeoutMs)],
      ];
    case "timeout-above-startup-wait":
      return [
        ["--probe-startup-wait", renderLongSpan(timeoutMs)],
        ["--probe-timeout", renderLongSpan(startupWaitMs)],
      ];
    case "elapsed-below-initial":
      return [["--probe-max-elapsed", renderLongSpan(backoff.capMs)]];
    case "insecure-with-ca":
      return [["--probe-insecure", undefined]];
    case "two-credentials":
      return [
        ["--probe-credentials", undefined],
        ["--probe-header", undefined],
      ];
    case "two-of-one-header":
      return [["--probe-header", undefined]];
    case "body-without-method":
      return [["--probe-method", "POST"]];
    case "no-body-to-look-at":
      return [["--probe-method", "GET"]];
    default:
      return [];
  }
}

/** The lines that may be meant. */
export function repairsOf(
  line: ReadLine,
  finding: ProbeFinding,
  settings: ProbeSettings,
): readonly Repair[] {
  return changesOf(finding, settings).map(([flag, value]) => setTo(line, flag, value));
}
