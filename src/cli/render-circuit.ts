/**
 * Circuits for people: a line for `circuit list` and `status`, a block for `circuit show`, and what
 * a reset has done. Pure text from a view; decides nothing.
 */

import type { CircuitState } from "../core/circuit.ts";
import { escapeUnprintable } from "../core/printable.ts";
import type { ProbeNote } from "../core/shared-circuit.ts";
import { spanMs } from "../core/time.ts";
import { failuresInWindow, retryInMs, sinceWallAt } from "../inspect/circuit-facts.ts";
import type { CircuitView, ResetFinding } from "../inspect/circuits.ts";
import {
  renderAge,
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
  UNKNOWN,
} from "./render-words.ts";
import { showWord } from "./shown-words.ts";

/** One line a circuit: name, state, since, what is waited for, who probes, target, last probe. */
export function renderCircuitList(views: readonly CircuitView[]): string {
  if (views.length === 0) return "no circuit is known\n";
  return renderLines(renderColumns(views.map(listCells)));
}

function listCells(view: CircuitView): string[] {
  const { circuit } = view;
  return [
    circuit.name,
    circuit.state.kind,
    `since ${renderInstant(sinceWallAt(view))}`,
    describeWait(view),
    describeProber(view),
    circuit.target ?? UNKNOWN,
    describeNote(view, circuit.lastProbe),
  ];
}

/** For `status`: of circuits that are not closed. */
export function renderBrokenCircuits(views: readonly CircuitView[]): string[] {
  const rows = views.map((view) => {
    const { name, state, lastProbe } = view.circuit;
    const since = `${state.kind} since ${renderInstant(sinceWallAt(view))}`;
    return [`  ${name}`, since, describeWait(view), describeNote(view, lastProbe)];
  });
  return renderColumns(rows);
}

function describeWait(view: CircuitView): string {
  const { state } = view.circuit;
  switch (state.kind) {
    case "closed":
      return renderCount(state.consecutiveFailures, "failure", "failures");
    case "half-open":
      return state.isTrialOut ? "trial is out" : "next trial now";
    case "open":
    case "permanent":
      return describeNextTrial(view);
  }
}

function describeNextTrial(view: CircuitView): string {
  const restMs = retryInMs(view) ?? 0;
  return restMs === 0 ? "next trial now" : `next trial in ${renderSpanText(restMs)}`;
}

function describeProber({ isProbed }: CircuitView): string {
  if (isProbed === undefined) return "prober unread";
  return isProbed ? "probed" : "not probed";
}

function describeNote({ nowMs }: CircuitView, note: ProbeNote | null): string {
  if (note === null) return "never probed";
  return `${note.because} ${renderAge(spanMs(note.at, nowMs))}: ${note.detail}`;
}

const LABEL_WIDTH = 10;

/** One circuit with all that is known of it, and why it lets through what it does. */
export function renderCircuitShow(view: CircuitView): string {
  const { circuit, nowMs } = view;
  const { lastGoodAt, probes, goodProbes, trialBy, state } = circuit;
  const good = lastGoodAt === null ? "never" : renderAge(spanMs(lastGoodAt, nowMs));
  const lines: readonly (readonly [string, string | undefined])[] = [
    ["why", explain(view)],
    ["trial", trialBy === null ? undefined : `by pid ${trialBy.pid}, ${ago(view, trialBy.at)}`],
    ["attempts", state.kind === "closed" ? undefined : describeAttempts(view, state)],
    ["last", describeNote(view, circuit.lastProbe)],
    ["good", `${good}; ${goodProbes} of ${renderCount(probes, "probe", "probes")}`],
    ["probed", describeWho(view)],
    ["target", circuit.target ?? undefined],
    ["opens", describeThreshold(view)],
    [
      "closes",
      `after ${renderCount(circuit.settings.successThreshold, "good trial", "good trials")}`,
    ],
    ["trials", describeBackoff(view)],
    ["settings", describeSettings(view)],
  ];
  const head = `${circuit.name}  ${state.kind} since ${renderInstant(sinceWallAt(view))}`;
  const body = lines.flatMap(([label, text]) =>
    text === undefined ? [] : [`  ${label.padEnd(LABEL_WIDTH)}${escapeUnprintable(text)}`],
  );
  return renderLines([escapeUnprintable(head), ...body]);
}

function ago({ nowMs }: CircuitView, at: CircuitView["nowMs"]): string {
  return renderAge(spanMs(at, nowMs));
}

/** What goes through now, and what has to happen for something else. */
function explain(view: CircuitView): string {
  const { state, settings } = view.circuit;
  switch (state.kind) {
    case "closed":
      return `everything goes through: ${countFailures(view)}`;
    case "open":
      return `too many failures: nothing starts, ${describeNextTrial(view)}`;
    case "half-open": {
      const good = `${state.successes} of ${settings.successThreshold} good ones that close it`;
      const trial = state.isTrialOut ? "one trial is out" : "one trial may be made";
      return `${trial} and decides, with ${good}; nothing else starts`;
    }
    case "permanent": {
      const bound = state.because === "max-attempts" ? "as many trials" : "all the time";
      return (
        `it did not come back in ${bound} as it was given (${state.because}): who waited has ` +
        `given up; for who comes now, ${describeNextTrial(view)}`
      );
    }
  }
}

function countFailures(view: CircuitView): string {
  const { state, settings } = view.circuit;
  if (state.kind !== "closed") return "";
  const row = `${state.consecutiveFailures} of ${settings.failureThreshold} failures in a row`;
  const inWindow = failuresInWindow(view.circuit);
  const { failureWindow: window } = settings;
  if (window === undefined || inWindow === undefined) return row;
  return `${row}, ${inWindow} of ${window.failures} among the last ${window.size}`;
}

function describeAttempts(
  view: CircuitView,
  { backoff, openedAt }: Exclude<CircuitState, { kind: "closed" }>,
): string {
  const { maxAttempts, maxElapsedMs } = view.circuit.settings.backoff;
  const spentMs = Math.max(0, spanMs(openedAt, view.nowMs));
  const time = `${renderSpanText(spentMs)} of ${renderSpanText(maxElapsedMs)}`;
  return `${backoff.attempts} of ${maxAttempts}, ${time}`;
}

function describeWho({ isProbed }: CircuitView): string {
  if (isProbed === undefined) return "it cannot be told whether somebody does now";
  return isProbed ? "by somebody now" : "by nobody now";
}

function describeThreshold({ circuit: { settings } }: CircuitView): string {
  const { failureThreshold, failureWindow: window } = settings;
  const row = `after ${renderCount(failureThreshold, "failure", "failures")} in a row`;
  return window === undefined ? row : `${row}, or ${window.failures} of the last ${window.size}`;
}

function describeBackoff({ circuit: { settings } }: CircuitView): string {
  const { initialMs, capMs, factor, maxAttempts, maxElapsedMs } = settings.backoff;
  const waits = `${renderSpanText(initialMs)} to ${renderSpanText(capMs)}, times ${factor} each`;
  return `${waits}; ${maxAttempts} at most, for ${renderSpanText(maxElapsedMs)}`;
}

function describeSettings({ circuit: { settingsHash, job } }: CircuitView): string {
  if (settingsHash === null) return "of no probe: those of the next one";
  return job === null ? settingsHash : `${settingsHash}, of job ${job}`;
}

/** What a reset has changed. */
export function renderReset(name: string, reset: Extract<ResetFinding, { kind: "reset" }>): string {
  const { before, after, isProbed, forgetsSettings } = reset;
  const was = `was ${before.state.kind}${describeFailures(before.state)}`;
  const whose = forgetsSettings ? "its settings are forgotten: the next probe brings its own" : "";
  const kept = isProbed ? "somebody probes now, and its settings stay" : whose;
  const line = `${escapeUnprintable(name)}: ${was}, is ${after.state.kind}`;
  return renderLines([kept === "" ? line : `${line}; ${kept}`]);
}

function describeFailures(state: CircuitState): string {
  if (state.kind !== "closed" || state.consecutiveFailures === 0) return "";
  return ` with ${renderCount(state.consecutiveFailures, "failure", "failures")}`;
}

/** As `lease explain` of a key that nobody knows. */
export function sayUnknown(name: string): string[] {
  return [`error: no circuit is known of ${showWord(name)}`, "hint: watchdog circuit list"];
}
