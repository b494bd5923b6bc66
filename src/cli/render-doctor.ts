/**
 * `watchdog doctor` for people and for machines: each check with what was seen, what to do about
 * it, and which promises hold. Pure text from a report; decides nothing.
 */
import { escapeUnprintable } from "../core/printable.ts";
import type { PromiseName, PromiseState } from "../core/promises.ts";
import type { Check, CheckupReport } from "../doctor/request.ts";
import { placeIn } from "../os/own-line.ts";
import { renderColumns, renderCount, renderJson, renderLines } from "./render-words.ts";

const PROMISES: Readonly<Record<PromiseName, string>> = {
  exclusion: "no two commands run under one key",
  generation: "each grant gets a larger number than every one before",
  fence: "what is fenced overlaps no later grant",
  recovery: "the key of a dead run is had at once, and not before its processes are gone",
  "no-harm": "nobody else is signalled, and no job fails for a trouble of watchdog's own",
};

const STATES: Readonly<Record<PromiseState, string>> = {
  holds: "holds",
  "holds-in-part": "holds in part",
  unproven: "not proven",
  "does-not-hold": "DOES NOT HOLD",
};

export function renderDoctor(
  report: CheckupReport,
  { isJson }: { readonly isJson: boolean },
): string {
  return isJson ? renderJson(showReport(report)) : renderText(report);
}

function renderText(report: CheckupReport): string {
  const rows = renderColumns(report.checks.map(({ state, check, seen }) => [state, check, seen]));
  const lines = report.checks.flatMap((check, index) => [rows[index] ?? "", ...adviceOf(check)]);
  const promises = report.promises.map(({ promise, state, because }) => [
    promise,
    STATES[state],
    because.length === 0 ? PROMISES[promise] : `because of ${because.join(", ")}`,
  ]);
  const count = report.checks.filter(({ state }) => state === "finding").length;
  const sum = count === 0 ? "nothing was found" : renderCount(count, "finding", "findings");
  return [lines, renderColumns(promises), [sum]].map(renderLines).join("\n");
}

function adviceOf({ advice }: Check): string[] {
  return advice === null ? [] : [escapeUnprintable(`         -> ${placeIn(advice)}`)];
}

/** A contract; ignore unknown fields. */
function showReport({ stateDirectory, checks, promises }: CheckupReport): object {
  return {
    format: 1,
    state_directory: stateDirectory,
    checks: checks.map(({ check, state, seen, advice }) => ({
      check,
      state,
      seen,
      advice: advice === null ? null : placeIn(advice),
    })),
    promises: promises.map(({ promise, state, because }) => ({ promise, state, because })),
  };
}
