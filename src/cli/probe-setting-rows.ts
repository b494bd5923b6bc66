/**
 * The options that say how probes are asked, and what follows: one set that holds for every probe
 * of a line, and the keys of a table `[probes.NAME]`.
 *
 * A part of the one table in options-table.ts. Knows no probe.
 */

import { ANSWER_ROWS, REQUEST_ROWS } from "./probe-http-rows.ts";
import { setting } from "./probe-setting.ts";
import type { ProbeSettingRow } from "./probe-setting.ts";
import * as probe from "./probe-values.ts";
import * as values from "./values.ts";

export const startupWaitRow = setting(
  { flag: "--probe-startup-wait", kind: "span", use: "liveness" },
  {
    valueName: "SPAN",
    example: "5m",
    defaultText: "60s",
    help:
      "Wait this long for every --probe to be good before the command is started; one that has " +
      "begun by then is waited for. At least its timeout.",
  },
  (text) => values.mapped(values.parsePositiveSpan(text), (startupWaitMs) => ({ startupWaitMs })),
);

const POLICY_ROWS: readonly ProbeSettingRow[] = [
  setting(
    { flag: "--on-open", kind: "choice", use: "liveness" },
    {
      valueName: "stop|pause|notify",
      example: "pause",
      defaultText: "stop",
      help:
        "What happens when a --probe has failed so often that its circuit opens: end the tree " +
        "(69), freeze it until the dependency is back, or only tell.",
    },
    (text) =>
      values.mapped(values.parseChoice(text, ["stop", "pause", "notify"] as const), (onOpen) => ({
        onOpen,
      })),
  ),
  setting(
    { flag: "--on-unready", kind: "choice", use: "readiness" },
    {
      valueName: "pause|notify",
      example: "notify",
      defaultText: "pause",
      help: "What happens while a --ready-probe is not good: freeze the tree, or only tell.",
    },
    (text) =>
      values.mapped(values.parseChoice(text, ["pause", "notify"] as const), (onUnready) => ({
        onUnready,
      })),
  ),
];

export const timeoutRow = setting(
  { flag: "--probe-timeout", kind: "span", use: "any" },
  {
    valueName: "SPAN",
    example: "3s",
    defaultText: "1s",
    help: "A probe that takes longer than this has failed. In a run at most the period.",
  },
  (text) => values.mapped(values.parsePositiveSpan(text), (timeoutMs) => ({ timeoutMs })),
);

const COUNTING_ROWS: readonly ProbeSettingRow[] = [
  setting(
    { flag: "--probe-period", kind: "span", use: "any" },
    { valueName: "SPAN", example: "30s", defaultText: "10s", help: "Probe this often." },
    (text) => values.mapped(values.parsePositiveSpan(text), (periodMs) => ({ periodMs })),
  ),
  timeoutRow,
  setting(
    { flag: "--probe-initial-delay", kind: "span", use: "any" },
    {
      valueName: "SPAN",
      example: "1m",
      defaultText: "0",
      help: "Do not probe before the command has run this long.",
    },
    (text) => values.mapped(values.parseSpan(text), (initialDelayMs) => ({ initialDelayMs })),
  ),
  setting(
    { flag: "--probe-failure-threshold", kind: "count", use: "any" },
    {
      valueName: "COUNT",
      example: "5",
      defaultText: "3",
      help: "So many failures in a row open the circuit, or make it not ready.",
    },
    (text) =>
      values.mapped(probe.parseThreshold(text), (failureThreshold) => ({ failureThreshold })),
  ),
  setting(
    { flag: "--probe-failure-window", kind: "text", use: "liveness" },
    {
      valueName: "N/M",
      example: "5/20",
      defaultText: "none",
      help: "N failures among the last M answers open the circuit too.",
    },
    (text) => values.mapped(probe.parseWindow(text), (failureWindow) => ({ failureWindow })),
  ),
  setting(
    { flag: "--probe-success-threshold", kind: "count", use: "any" },
    {
      valueName: "COUNT",
      example: "2",
      defaultText: "1",
      help: "So many successes in a row close the circuit again, or make it ready.",
    },
    (text) =>
      values.mapped(probe.parseThreshold(text), (successThreshold) => ({ successThreshold })),
  ),
];

export const BACKOFF_ROWS: readonly ProbeSettingRow[] = [
  setting(
    { flag: "--probe-backoff", kind: "text", use: "liveness" },
    {
      valueName: "FIRST..CAP",
      example: "2s..1m",
      defaultText: "1s..30s",
      help:
        "While it fails at the start, or its circuit is open, wait up to FIRST before it is " +
        "asked again, then longer each time, up to CAP.",
    },
    probe.parseBackoffSpans,
  ),
  setting(
    { flag: "--probe-backoff-factor", kind: "factor", use: "liveness" },
    {
      valueName: "FACTOR",
      example: "1.5",
      defaultText: "2",
      help: "By how much each of these waits is longer than the one before.",
    },
    (text) => values.mapped(probe.parseFactor(text), (factor) => ({ factor })),
  ),
  setting(
    { flag: "--probe-max-attempts", kind: "count", use: "liveness" },
    {
      valueName: "COUNT",
      example: "10",
      defaultText: "20",
      help: "After so many such attempts a start, or a tree that is paused, waits no longer: 69.",
    },
    (text) => values.mapped(probe.parseAttempts(text), (maxAttempts) => ({ maxAttempts })),
  ),
  setting(
    { flag: "--probe-max-elapsed", kind: "span", use: "liveness" },
    {
      valueName: "SPAN",
      example: "30m",
      defaultText: "5m",
      help: "After this long neither waits any longer, however many attempts were made.",
    },
    (text) => values.mapped(values.parsePositiveSpan(text), (maxElapsedMs) => ({ maxElapsedMs })),
  ),
];

/** What one exchange with a dependency needs: `watchdog probe` takes them too. */
export const EXCHANGE_ROWS: readonly ProbeSettingRow[] = [
  timeoutRow,
  ...ANSWER_ROWS,
  ...REQUEST_ROWS,
];

export const PROBE_SETTING_ROWS: readonly ProbeSettingRow[] = [
  ...POLICY_ROWS,
  startupWaitRow,
  ...COUNTING_ROWS,
  ...BACKOFF_ROWS,
  ...ANSWER_ROWS,
  ...REQUEST_ROWS,
];
