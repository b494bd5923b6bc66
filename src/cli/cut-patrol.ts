/**
 * Cuts the line of `watchdog patrol`.
 *
 * Prints nothing; the configuration is asked for once the line is read. Always: what is not a
 * patrol (`--forget`, `--retire`) stands without the options of one.
 */

import type { Settings } from "../core/settings.ts";
import type { SinkSpec } from "../core/sink.ts";
import { addSettings } from "./add-settings.ts";
import { listConfiguredJobs } from "./configured-jobs.ts";
import { cutWordsAndOptions } from "./cut-asked.ts";
import { addVariables, problem, replacedAt } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import type { Cut } from "./cut.ts";
import { finishSinks } from "./finish-sinks.ts";
import { PATROL_COMMAND, PATROL_DEFAULTS } from "./patrol-table.ts";
import type { PatrolParts } from "./patrol-table.ts";
import { setTo } from "./read-line.ts";
import type { ReadSettings } from "./settings.ts";
import { showWord } from "./shown-words.ts";
import { SINK_ROWS } from "./sink-options.ts";

export function cutPatrol(
  words: readonly string[],
  variables: Variables,
  readSettings: ReadSettings,
): Cut | Problem {
  const reading = cutWordsAndOptions(words, 1, PATROL_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "patrol" };
  if (reading.kind === "problem") return reading;
  const [first] = reading.operands;
  if (first !== undefined) {
    const message = `patrol takes no word beside its options, found ${showWord(first.text)}`;
    return problem(message, [replacedAt(words, first.at, 1)]);
  }
  const { given } = reading;
  const asked: PatrolParts = Object.assign({}, PATROL_DEFAULTS, ...reading.parts);
  const alone = ["--forget", "--retire"].find((flag) => given.has(flag));
  const others = ["--loop", "--every", "--quiet", "--retire"];
  const other = others.find((flag) => flag !== alone && given.has(flag));
  if (alone !== undefined && other !== undefined) {
    const message = `patrol ${alone} is no patrol and stands without ${other}`;
    return problem(message, [setTo({ words, given }, other, undefined)]);
  }
  const settings = readSettings(asked.configFile);
  const sinks = listKnownSinks(words, variables, settings);
  if ("message" in sinks) return sinks;
  return { kind: "patrol", ...asked, sinks, configured: listConfiguredJobs(settings) };
}

/** What waits for a sink whose target is not stored is delivered by whoever has it here. */
function listKnownSinks(
  words: readonly string[],
  variables: Variables,
  settings: Settings,
): readonly SinkSpec[] | Problem {
  const nothing = { parts: [], given: new Map() };
  const reading = addVariables(words, { ...PATROL_COMMAND, rows: SINK_ROWS }, variables, nothing);
  if (reading.kind === "problem") return reading;
  const { given, parts } = addSettings(reading, settings, SINK_ROWS);
  return finishSinks({ words, given }, [...parts, ...reading.parts], settings.sinks).sinks;
}
