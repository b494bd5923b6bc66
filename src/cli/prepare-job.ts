/**
 * From the line of `watchdog job run` to what is run: the job as its file says, the options of the
 * run around it, and the order to its runner.
 *
 * Loaded only for the commands of jobs: it brings zod and the parser of YAML.
 */
import type { JobOrder } from "../core/job-order.ts";
import type { RunOptions } from "../core/run-options.ts";
import { ownPlace } from "../os/own-line.ts";
import type { JobRunCut } from "./cut.ts";
import { checkAskedOf, finishJobRun } from "./finish-job.ts";
import { loadJob } from "./load-job.ts";
import { explainMissing } from "./named-job.ts";
import type { ReadSettings } from "./settings.ts";
import { placeRows } from "./shared-rows.ts";
import { wordsOfStep } from "./step-options.ts";

export interface PreparedJob {
  readonly options: RunOptions;
  readonly order: JobOrder;
  /** As a person reads it. */
  readonly words: readonly string[];
}

/** @throws WatchdogError "config.refused" (78), "usage" (64) */
export function prepareJob(
  cut: JobRunCut,
  readSettings: ReadSettings,
  hasTerminal: boolean,
): PreparedJob {
  const settings = readSettings(cut.configFile);
  const stateDir = cut.stateDir ?? settings.stateDir?.texts[0];
  const spec = loadJob(cut.file, settings, explainMissing(stateDir, verbOfHint(cut)));
  checkAskedOf(spec, cut.asked);
  const options = forAsked(cut, finishJobRun(cut, spec.name, readSettings));
  const withOptions = spec.steps.filter(({ runOptions }) => runOptions.size > 0);
  const isTold = options.isVerbose || (hasTerminal && !options.isQuiet);
  const order: JobOrder = {
    spec,
    asked: cut.asked,
    maxParallel: cut.maxParallel ?? spec.maxParallel,
    runWords: new Map(withOptions.map((step) => [step.name, wordsOfStep(step.runOptions)])),
    nestedWords: wordsOfJob(options),
    masks: options.masks,
    tells: isTold ? "all" : "news",
    place: ownPlace(),
  };
  return { options, order, words: ["watchdog", "job", cut.asked.verb, cut.file] };
}

/** A line that is shown instead must not run what the one before would not have run. */
function verbOfHint({ asked, line }: JobRunCut): string {
  const isPlain = [...line.given].every(
    ([flag, { at }]) => at === undefined || PLACE_FLAGS.includes(flag),
  );
  return isPlain ? asked.verb : "status";
}

const PLACE_FLAGS = placeRows.map(({ flag }): string => flag);

/**
 * A ping counts the runs of its job: of one that says nothing about it, it must hear neither that
 * it has begun nor that it is over.
 */
function forAsked({ asked }: JobRunCut, options: RunOptions): RunOptions {
  if (asked.only === undefined) return options;
  return { ...options, sinks: options.sinks.filter(({ kind }) => kind !== "ping") };
}

/** Where the job looks and what it hides holds for the runs around its steps, too. */
function wordsOfJob(options: RunOptions): readonly string[] {
  const { configFile, stateGroup, assumesLocalState, masks } = options;
  return [
    ...(configFile === undefined ? [] : [`--config=${configFile}`]),
    ...(stateGroup === undefined ? [] : [`--state-group=${stateGroup}`]),
    ...(assumesLocalState ? ["--assume-local-state"] : []),
    ...masks.map((pattern) => `--mask=${pattern}`),
  ];
}
