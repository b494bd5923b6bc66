/**
 * What targets have answered to `watchdog probe`, for people and for machines: a block each with
 * the stages, their times, what was expected and found, and the verdict. Pure text; decides
 * nothing.
 *
 * Always: neither credentials nor the query of an address nor the value of a header is shown; no
 * foreign word can move a cursor.
 */

import { escapeUnprintable } from "../core/printable.ts";
import type { ProbeResult, ProbeStageName } from "../core/probe-result.ts";
import { circuitNameOf, isHttp, type ProbeSettings } from "../core/probe-settings.ts";
import { renderTarget } from "../core/probe-target.ts";
import type { AskedProbe } from "../run/dependencies/ask-each.ts";
import { renderColumns, renderLines } from "./render-words.ts";

/** What a stage is about, in words. */
const STAGES: Readonly<Record<ProbeStageName, string>> = {
  name: "name resolution",
  connect: "connect",
  proxy: "proxy tunnel",
  tls: "TLS handshake",
  headers: "request, status",
  body: "body",
  command: "command",
};

/** In the order in which they were asked. */
export function renderProbes(asked: readonly AskedProbe[]): string {
  return asked.map((one) => renderLines(renderBlock(one))).join("\n");
}

function renderBlock({ settings, result }: AskedProbe): string[] {
  const target = renderTarget(settings.target);
  const { name } = settings;
  const rows = [
    ...result.stages.map((stage, index) => [
      `  ${STAGES[stage.stage]}`,
      renderMs(stage.ms),
      describeStage(result, stage.stage, index === result.stages.length - 1),
    ]),
    ["  expected", "", describeExpected(settings)],
    ["  found", "", result.detail],
  ];
  const head = name === undefined ? target : `${name}=${target}`;
  return [
    escapeUnprintable(head),
    ...renderColumns(rows),
    `  ${describeVerdict(result)}, ${renderMs(totalMs(result))} in all`,
  ];
}

function renderMs(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

function totalMs({ stages }: ProbeResult): number {
  return stages.reduce((sum, { ms }) => sum + ms, 0);
}

function describeStage(result: ProbeResult, stage: ProbeStageName, isLast: boolean): string {
  const { address, status } = result;
  const facts = [
    ...(stage === "connect" && address !== undefined ? [address] : []),
    ...(stage === "headers" && status !== undefined ? [`status ${status}`] : []),
    ...(isLast && !result.isGood ? ["<- it ended here"] : []),
  ];
  return facts.join("  ");
}

function describeVerdict({ isGood, because }: ProbeResult): string {
  return isGood ? "good" : `NOT GOOD: ${because}`;
}

/** What a good answer is, as far as the settings say so. */
export function describeExpected(settings: ProbeSettings): string {
  const { target, http, timeoutMs } = settings;
  const within = `within ${timeoutMs} ms`;
  if (target.kind === "tcp") return `a connection ${within}`;
  if (!isHttp(target)) return `status 0 ${within}`;
  const ranges = http.expectStatus.map(({ from, to }) => (from === to ? from : `${from}-${to}`));
  const { expectBody, expectJson } = http;
  return [
    `status ${ranges.join(",")}`,
    ...(expectBody === undefined ? [] : [`a body that matches /${expectBody}/`]),
    ...expectJson.map(({ path, value }) => `${path} to be ${value}`),
    within,
  ].join(", ");
}

/** A contract; ignore unknown fields. */
export function showProbe({ settings, result }: AskedProbe): Record<string, unknown> {
  return {
    target: renderTarget(settings.target),
    kind: settings.target.kind,
    circuit: circuitNameOf(settings),
    is_good: result.isGood,
    because: result.because,
    expected: describeExpected(settings),
    found: result.detail,
    status: result.status ?? null,
    address: result.address ?? null,
    timeout_ms: settings.timeoutMs,
    total_ms: Math.round(totalMs(result) * 10) / 10,
    stages: result.stages.map(({ stage, ms }) => ({ stage, ms })),
  };
}
