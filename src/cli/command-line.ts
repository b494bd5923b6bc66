/**
 * Cuts the words of the command line: which command of watchdog, with which options, and where the
 * wrapped command begins.
 *
 * Reads no environment and prints nothing. On the path of every `watchdog run`, so it loads neither
 * citty nor zod. Always: no word from `commandAt` on was looked at, and every line gives either a
 * cut or a WatchdogError "usage" whose hint was cut with success before it is shown.
 */

import { WatchdogError } from "../core/errors.ts";
import type { RunOptions } from "../core/run-options.ts";
import {
  cutOptions,
  isOptionLike,
  problem,
  refuseLaterVariables,
  replacedAt,
} from "./cut-options.ts";
import type { Problem, Repair, Variables } from "./cut-options.ts";
import { listLaterCommands, reasonOfLaterFlag } from "./later-names.ts";
import { nearestOf } from "./nearest.ts";
import { KEEP_COMMAND, RUN_COMMAND, TOP_ROWS } from "./options-table.ts";
import type { KeepOptions } from "./options-table.ts";
import { quoteForShell, showWord } from "./shown-words.ts";

export type { KeepOptions } from "./options-table.ts";

export type HelpTopic = "watchdog" | "run" | "keep";

export type Cut =
  | { readonly kind: "run"; readonly options: RunOptions; readonly commandAt: number }
  | { readonly kind: "keep"; readonly options: KeepOptions; readonly commandAt: number }
  | { readonly kind: "help"; readonly topic: HelpTopic }
  | { readonly kind: "version" };

/** A hint is one line that a person can look over before pasting it. */
export const MAX_HINT_LENGTH = 400;

/** What holds where neither a flag nor a variable says otherwise. */
export const DEFAULT_RUN_OPTIONS: RunOptions = {
  name: undefined,
  stateDir: undefined,
  timeoutMs: undefined,
  idleTimeoutMs: undefined,
  idleCpuPercent: 1,
  idleIoBytes: 64 * 1024,
  notAfter: undefined,
  signal: 15,
  killAfterMs: undefined,
  leftovers: "kill",
  log: "auto",
  logMaxBytes: 10 * 1024 ** 2,
  logKeepBytes: 1024 ** 3,
  isQuiet: false,
  isVerbose: false,
  resultFile: undefined,
  successExitCodes: [0],
};

const COMMANDS: readonly string[] = ["run", "keep", "help"];

/**
 * @param words  the arguments after the name of the program
 * @param variables  the environment
 * @throws WatchdogError "usage" when the line cannot be what the user meant
 */
export function cutCommandLine(words: readonly string[], variables: Variables): Cut {
  const cut = cutWords(words, variables);
  if (cut.kind !== "problem") return cut;
  throw new WatchdogError("usage", cut.message, {
    hint: chooseHint(words, cut.repairs, variables),
  });
}

function cutWords(words: readonly string[], variables: Variables): Cut | Problem {
  const [first] = words;
  if (first === "run") return cutRun(words, variables);
  if (first === "keep") return cutKeep(words, variables);
  if (first === "help" || first === "--help" || first === "-h") return cutHelp(words);
  if (first === "--version") return cutVersion(words);
  return refuseFirstWord(words);
}

function cutRun(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutOptions(words, 1, RUN_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "run" };
  if (reading.kind === "problem") return reading;
  const refusal =
    refuseLaterVariables(variables) ?? refuseMissingCommand(words, reading.next, "run");
  if (refusal !== undefined) return refusal;
  const options: RunOptions = Object.assign({}, DEFAULT_RUN_OPTIONS, ...reading.parts);
  return { kind: "run", options, commandAt: reading.next };
}

function cutKeep(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutOptions(words, 1, KEEP_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "keep" };
  if (reading.kind === "problem") return reading;
  const refusal = refuseMissingCommand(words, reading.next, "keep");
  if (refusal !== undefined) return refusal;
  const defaults: KeepOptions = { outputPath: undefined, stateDir: undefined };
  const options: KeepOptions = Object.assign({}, defaults, ...reading.parts);
  return { kind: "keep", options, commandAt: reading.next };
}

function cutHelp(words: readonly string[]): Cut | Problem {
  const [asked, topicWord, ...more] = words;
  if (topicWord === undefined) return { kind: "help", topic: "watchdog" };
  if (more.length > 0) {
    const message = `help tells of one command, found ${showWord(more[0] ?? "")} after it`;
    return problem(message, [{ words: [asked ?? "help", topicWord] }]);
  }
  if (topicWord === "run" || topicWord === "keep") return { kind: "help", topic: topicWord };
  if (["help", "--help", "-h"].includes(topicWord)) return { kind: "help", topic: "watchdog" };
  if (listLaterCommands().includes(topicWord)) return refuseLaterCommand(topicWord);
  const near = nearestOf(topicWord, COMMANDS);
  return problem(
    `help knows no command ${showWord(topicWord)}, expected one of ${COMMANDS.join(", ")}`,
    near === undefined ? [] : [{ words: ["help", near] }],
  );
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

/**
 * The first word is no command of watchdog: a slip, an option that came too early, or a program.
 */
function refuseFirstWord(words: readonly string[]): Problem {
  const [first] = words;
  const expected = `expected a command of watchdog: ${COMMANDS.join(", ")}`;
  if (first === undefined) return problem(`no command was given, ${expected}`);
  if (["-v", "-V", "version"].includes(first)) {
    return problem(`found ${showWord(first)}, ${expected}`, [{ words: ["--version"] }]);
  }
  if (first === "--") return problem(`found "--", ${expected}`, [{ words: ["run", ...words] }]);
  if (isOptionLike(first)) return refuseEarlyOption(words, first, expected);
  if (listLaterCommands().includes(first)) return refuseLaterCommand(first);
  const near = nearestOf(first, COMMANDS);
  const wrapped: Repair = { words: ["run", "--", ...words] };
  if (near === undefined)
    return problem(`unknown command ${showWord(first)}, ${expected}`, [wrapped]);
  return problem(`unknown command ${showWord(first)}, ${expected}; the nearest is ${near}`, [
    replacedAt(words, 0, 1, near),
    wrapped,
  ]);
}

/** `watchdog --timeout 5 run ls` and `watchdog --timeout 5 ls`. */
function refuseEarlyOption(words: readonly string[], first: string, expected: string): Problem {
  const name = first.split("=", 1)[0] ?? first;
  const later = reasonOfLaterFlag(name);
  if (later !== undefined) return problem(`${name} is not available in this version: ${later}`);
  const repairs: Repair[] = [];
  const commandAt = words.findIndex((word) => word === "run" || word === "keep");
  const dashesAt = words.indexOf("--");
  if (commandAt > 0 && (dashesAt < 0 || commandAt < dashesAt)) {
    repairs.push({ words: [words[commandAt] ?? "", ...words.toSpliced(commandAt, 1)] });
  }
  if (RUN_COMMAND.rows.some((row) => row.flag === name || row.short === name)) {
    repairs.push({ words: ["run", ...words] });
    return problem(`${showWord(name)} is an option of a command, ${expected}`, repairs);
  }
  const topFlags = TOP_ROWS.map((row): string => row.flag);
  const near = nearestOf(name, [...topFlags, ...RUN_COMMAND.rows.map((row): string => row.flag)]);
  if (near === undefined) return problem(`unknown option ${showWord(first)}, ${expected}`, repairs);
  const isTop = topFlags.includes(near);
  repairs.push({
    words: isTop ? [near] : ["run", near + first.slice(name.length), ...words.slice(1)],
  });
  return problem(
    `unknown option ${showWord(name)}, ${expected}; the nearest option is ${near}`,
    repairs,
  );
}

function refuseLaterCommand(name: string): Problem {
  return problem(`${name} is not available in this version: it has ${COMMANDS.join(", ")}`);
}

/**
 * The first repair that cuts without a problem and can be pasted; otherwise the help that fits.
 */
function chooseHint(
  words: readonly string[],
  repairs: readonly Repair[],
  variables: Variables,
): string {
  for (const repair of repairs) {
    const settings = Object.entries(repair.variables ?? {});
    if (cutWords(repair.words, { ...variables, ...repair.variables }).kind === "problem") continue;
    const line = quoteForShell(["watchdog", ...repair.words]);
    if (line === undefined || line.length > MAX_HINT_LENGTH) continue;
    return [...settings.map(([name, value]) => `${name}=${value}`), line].join(" ");
  }
  const topic = words[0] === "run" || words[0] === "keep" ? words[0] : undefined;
  return topic === undefined ? "watchdog --help" : `watchdog help ${topic}`;
}
