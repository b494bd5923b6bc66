/**
 * Cuts the words of the command line: which command of watchdog, with which options, and where the
 * wrapped command begins.
 *
 * Reads no environment and no file, and prints nothing. On the path of every `watchdog run`, so it
 * loads neither citty nor zod. Always: no word from `commandAt` on was looked at, and every line
 * gives either a cut or a WatchdogError: "config.refused" where a file is wrong, else "usage" with
 * a hint that was cut with success before it is shown.
 */

import { WatchdogError } from "../core/errors.ts";
import { HOOK_COMMAND } from "../core/hook-order.ts";
import { JOB_COMMAND, STEP_COMMAND } from "../core/job-order.ts";
import { NO_SETTINGS } from "../core/settings.ts";
import { addSettings, placeCut } from "./add-settings.ts";
import { CONFIGURABLE_ROWS } from "./config-schema.ts";
import { PROBE_COMMAND as PROBE_COMMAND_WORD } from "../core/command-probe.ts";
import { cutAnswer } from "./cut-answers.ts";
import { cutConfig, cutDoctor, cutRepair } from "./cut-care.ts";
import { cutCircuit } from "./cut-circuit.ts";
import { cutFence, cutGitHook } from "./cut-fence.ts";
import { cutJob } from "./cut-job.ts";
import { cutLease } from "./cut-lease.ts";
import { cutOptions, problem, refuseLaterVariables } from "./cut-options.ts";
import type { Problem, Repair, Variables } from "./cut-options.ts";
import { cutNotify } from "./cut-notify.ts";
import { cutPatrol } from "./cut-patrol.ts";
import { cutProbe, listProbing } from "./cut-probe.ts";
import { cutRetry } from "./cut-retry.ts";
import { cutTick } from "./cut-tick.ts";
import type { Cut, KeepOptions } from "./cut.ts";
import { finishRunProbes } from "./finish-probes.ts";
import { finishRunOptions } from "./finish-run-options.ts";
import { finishSinks } from "./finish-sinks.ts";
import { cutHelp, refuseFirstWord, TOPICS } from "./first-word.ts";
import { GIT_HOOK_COMMAND } from "./fence-table.ts";
import { isLaterCommand } from "./later-names.ts";
import { holdsSecret } from "./line-secrets.ts";
import { KEEP_COMMAND, RUN_COMMAND } from "./options-table.ts";
import type { RunPart } from "./probe-options.ts";
import { hintToShow } from "./settings.ts";
import type { ReadSettings } from "./settings.ts";
import { quoteForShell, showWord } from "./shown-words.ts";

export type { Cut, HelpTopic, KeepOptions } from "./cut.ts";
export { DEFAULT_RUN_OPTIONS } from "./finish-run-options.ts";

/** What a run is called where nobody gives it a name; undefined: that is not known here. */
export type NameJob = (commandAt: number) => string | undefined;

/** A hint is one line that a person can look over before pasting it. */
export const MAX_HINT_LENGTH = 400;

/**
 * @param words  the arguments after the name of the program
 * @param variables  the environment
 * @param readSettings  asked for the configuration once the line is read; the default has none
 * @param nameJob  the name of a run that is given none, by the place of its command
 * @throws WatchdogError "usage" when the line cannot be what the user meant; "config.refused" as
 *   `readSettings`, or where two settings contradict each other
 */
export function cutCommandLine(
  words: readonly string[],
  variables: Variables,
  readSettings: ReadSettings = () => NO_SETTINGS,
  nameJob: NameJob = () => undefined,
): Cut {
  const cut = cutWords(words, { variables, readSettings, nameJob });
  if (cut.kind !== "problem") return placeCut(cut, readSettings, variables);
  if (cut.isOfFile === true) {
    throw new WatchdogError("config.refused", cut.message, { hint: hintToShow(cut.configFile) });
  }
  throw new WatchdogError("usage", cut.message, {
    hint: chooseHint(words, cut.repairs, { variables, readSettings, nameJob }),
  });
}

function cutWords(words: readonly string[], around: Surroundings): Cut | Problem {
  const { variables, readSettings } = around;
  const [first] = words;
  if (first === "run") return cutRun(words, around);
  if (first === STEP_COMMAND) {
    const cut = cutRun(words, forStep(around));
    return cut.kind === "run" ? { ...cut, options: { ...cut.options, isStep: true } } : cut;
  }
  if (first === "keep") return cutKeep(words, variables);
  if (first === "probe") return cutProbe(words, variables, readSettings);
  if (first === "notify") return cutNotify(words, variables, readSettings);
  if (first === "patrol") return cutPatrol(words, variables, readSettings);
  const answer = cutAnswer(words, variables) ?? cutFamilies(words, variables);
  if (answer !== undefined) return answer;
  if (first === "help" || first === "--help" || first === "-h") return cutHelp(words);
  if (first === "--version") return cutVersion(words);
  return refuseFirstWord(words);
}

type CutWords = (words: readonly string[], variables: Variables) => Cut | Problem | undefined;

/** Commands that read no configuration to be cut, by their first word. */
const FAMILIES: ReadonlyMap<string, CutWords> = new Map<string, CutWords>([
  ["lease", cutLease],
  ["circuit", cutCircuit],
  ["retry", cutRetry],
  ["tick", cutTick],
  ["job", cutJob],
  [PROBE_COMMAND_WORD, (words) => (words.length === 1 ? { kind: "probe-command" } : undefined)],
  [JOB_COMMAND, (words) => (words.length === 1 ? { kind: "runner" } : undefined)],
  [HOOK_COMMAND, (words) => (words.length === 1 ? { kind: "hook" } : undefined)],
  ["fence", cutFence],
  [GIT_HOOK_COMMAND.name, cutGitHook],
  ["repair", cutRepair],
  ["doctor", cutDoctor],
  ["config", cutConfig],
]);

/** Undefined: the first word is no command of theirs, or this version does not have it. */
function cutFamilies(words: readonly string[], variables: Variables): Cut | Problem | undefined {
  const [first = ""] = words;
  return isLaterCommand(first) ? undefined : FAMILIES.get(first)?.(words, variables);
}

/** What the configuration says of all runs, or of one job, is of the job around the step. */
function forStep(around: Surroundings): Surroundings {
  const readSettings: ReadSettings = (file) => {
    const { files, policies, probes } = around.readSettings(file);
    return { ...NO_SETTINGS, files, policies, probes };
  };
  return { ...around, readSettings };
}

function cutRun(words: readonly string[], around: Surroundings): Cut | Problem {
  const { variables, readSettings, nameJob } = around;
  const reading = cutOptions(words, 1, RUN_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "run" };
  if (reading.kind === "problem") return reading;
  const refusal =
    refuseLaterVariables(variables) ?? refuseMissingCommand(words, reading.next, "run");
  if (refusal !== undefined) return refusal;
  const asked: RunPart = Object.assign({}, ...reading.parts);
  const settings = readSettings(asked.configFile);
  // Its name is only made where a file says something of jobs.
  const job = asked.name ?? (settings.jobs.size === 0 ? undefined : nameJob(reading.next));
  const ofJob = job === undefined ? undefined : { name: job };
  const { given, parts } = addSettings(reading, settings, CONFIGURABLE_ROWS, ofJob);
  // Whoever comes later wins.
  const finished = finishRunOptions({ words, given }, [...parts, ...reading.parts]);
  const { configFile } = asked;
  if (finished.kind === "problem") return { ...finished, configFile };
  const depends = finishRunProbes(
    { words, given },
    {
      ofLine: listProbing(reading.parts),
      ofFiles: listProbing(parts),
      tables: settings.probes,
    },
  );
  if (depends.kind === "problem") return { ...depends, configFile };
  const { probes, readyProbes } = depends;
  const told = finishSinks({ words, given }, [...parts, ...reading.parts], settings.sinks);
  return {
    kind: "run",
    options: { ...finished.options, probes, readyProbes, ...told },
    commandAt: reading.next,
  };
}

function cutKeep(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutOptions(words, 1, KEEP_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "keep" };
  if (reading.kind === "problem") return reading;
  const refusal = refuseMissingCommand(words, reading.next, "keep");
  if (refusal !== undefined) return refusal;
  const defaults: KeepOptions = {
    outputPath: undefined,
    stateDir: undefined,
    configFile: undefined,
  };
  const options: KeepOptions = Object.assign({}, defaults, ...reading.parts);
  return { kind: "keep", options, commandAt: reading.next };
}

function cutVersion(words: readonly string[]): Cut | Problem {
  if (words.length === 1) return { kind: "version" };
  const message = `--version stands alone, found ${showWord(words[1] ?? "")} after it`;
  return problem(message, [{ words: ["--version"] }]);
}

function refuseMissingCommand(
  words: readonly string[],
  commandAt: number,
  name: "run" | "keep",
): Problem | undefined {
  if (words[commandAt] === undefined) {
    const usage = name === "run" ? RUN_COMMAND.usage : KEEP_COMMAND.usage;
    return problem(`no command to ${name} was given, expected ${usage}`, [
      { words: ["help", name] },
    ]);
  }
  if (words[commandAt] !== "") return undefined;
  return problem(`the command is empty, found "", expected the name or path of a program`, [
    { words: ["help", name] },
  ]);
}

/** What the words stand in. */
interface Surroundings {
  readonly variables: Variables;
  readonly readSettings: ReadSettings;
  readonly nameJob: NameJob;
}

/**
 * The first repair that cuts without a problem and can be pasted; otherwise the help that fits.
 */
function chooseHint(
  words: readonly string[],
  repairs: readonly Repair[],
  around: Surroundings,
): string {
  for (const repair of repairs) {
    const settings = Object.entries(repair.variables ?? {});
    if (holdsSecret(repair.words) || !isRight(repair, around)) continue;
    const line = quoteForShell(["watchdog", ...repair.words]);
    if (line === undefined || line.length > MAX_HINT_LENGTH) continue;
    return [...settings.map(([name, value]) => `${name}=${value}`), line].join(" ");
  }
  const topic = TOPICS.find((each) => each === words[0]);
  return topic === undefined ? "watchdog --help" : `watchdog help ${topic}`;
}

function isRight(repair: Repair, around: Surroundings): boolean {
  try {
    const variables = { ...around.variables, ...repair.variables };
    const cut = cutWords(repair.words, { ...around, variables });
    return cut.kind !== "problem";
  } catch (error) {
    if (error instanceof WatchdogError) return false; // the configuration is wrong too
    throw error;
  }
}
