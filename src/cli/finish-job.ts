/**
 * What a job is as a run, and whether what is asked of it can be: known as soon as its file was
 * read.
 *
 * Reads no file but the configuration, by `readSettings`.
 */

import { quoteKey } from "../core/config-values.ts";
import { WatchdogError } from "../core/errors.ts";
import { checkAsked } from "../core/job-asked.ts";
import type { AskedOfJob } from "../core/job-asked.ts";
import type { JobSpec } from "../core/job-spec.ts";
import { quoteForShell } from "../core/own-command.ts";
import type { RunOptions } from "../core/run-options.ts";
import type { Settings } from "../core/settings.ts";
import { placeIn } from "../os/own-line.ts";
import { addSettings } from "./add-settings.ts";
import { describeAsked } from "./cut-job.ts";
import type { Problem } from "./cut-options.ts";
import type { JobRunCut } from "./cut.ts";
import { finishRunOptions } from "./finish-run-options.ts";
import { finishSinks } from "./finish-sinks.ts";
import { WHOLE_JOB_ROWS } from "./job-table.ts";
import { nearestOf } from "./nearest.ts";
import { configNameOf } from "./option-row.ts";
import type { RunPart } from "./probe-options.ts";
import { hintToShow } from "./settings.ts";
import type { ReadSettings } from "./settings.ts";

/** One step has them, and not a job as a whole. */
const OF_STEPS = "it in a step of the job file";

/**
 * The options of the run around all steps: what the line, the environment and the configuration say
 * of the job.
 *
 * @throws WatchdogError "usage" where two of them contradict each other; "config.refused" where the
 *   files do, or ask for what a job as a whole cannot have
 */
export function finishJobRun(cut: JobRunCut, name: string, readSettings: ReadSettings): RunOptions {
  const { configFile } = cut;
  const { words, ...reading } = cut.line;
  const settings = readSettings(configFile);
  refuseOfSteps(name, settings, configFile);
  const job = { name, rows: WHOLE_JOB_ROWS };
  const { given, parts } = addSettings(reading, settings, WHOLE_JOB_ROWS, job);
  const all: readonly RunPart[] = [...parts, ...reading.parts];
  const finished = finishRunOptions({ words, given }, all);
  if (finished.kind === "problem") throw refuse(finished, configFile);
  const told = finishSinks({ words, given }, all, settings.sinks);
  return { ...finished.options, ...told, name };
}

/** A protection that was asked for and is not there is worse than none. */
function refuseOfSteps(name: string, settings: Settings, configFile: string | undefined): void {
  const known = new Set(WHOLE_JOB_ROWS.map(({ flag }) => configNameOf(flag)));
  for (const [key, { file }] of settings.jobs.get(name) ?? []) {
    if (known.has(key)) continue;
    const path = `jobs.${quoteKey(name)}.${key}`;
    const found = "found an option that a job of many steps has not as a whole";
    const message = `${file}: ${path}: ${found}, expected ${OF_STEPS}`;
    throw new WatchdogError("config.refused", message, { hint: hintToShow(configFile) });
  }
}

function refuse({ message, isOfFile }: Problem, configFile: string | undefined): WatchdogError {
  return isOfFile === true
    ? new WatchdogError("config.refused", message, { hint: hintToShow(configFile) })
    : new WatchdogError("usage", message, { hint: "watchdog help job" });
}

/**
 * Whether each step that is named on the line is one of the job.
 *
 * @throws WatchdogError "usage"
 */
export function checkAskedOf(spec: JobSpec, asked: AskedOfJob): void {
  const [found] = checkAsked(spec.steps, asked);
  if (found === undefined) return;
  const names = spec.steps.map(({ name }) => name);
  const near = found.because === "unknown-step" ? nearestOf(found.subject, names) : undefined;
  const guess = near === undefined ? "" : `; the nearest is ${near}`;
  // One that the file no longer has may be known all the same.
  const isDecision = found.flag === "--accept-unknown" && found.because === "unknown-step";
  const back = isDecision ? "; one that was taken out of the file must be put back first" : "";
  const line = isDecision ? quoteForShell(["watchdog", "job", "status", spec.file]) : undefined;
  const hint = line === undefined ? "watchdog help job" : placeIn(line);
  throw new WatchdogError("usage", describeAsked(found) + guess + back, { hint });
}
