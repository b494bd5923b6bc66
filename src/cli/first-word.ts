/**
 * What is said to a line whose first word is no command of watchdog, and to one that asks for the
 * help of something else.
 *
 * Cuts nothing itself. Always: the repairs that it offers are guesses; whoever shows one has cut it
 * before.
 */

import { ANSWER_COMMANDS } from "./answers-table.ts";
import { CARE_COMMANDS } from "./care-table.ts";
import { isOptionLike, problem, replacedAt } from "./cut-options.ts";
import type { Problem, Repair } from "./cut-options.ts";
import type { HelpTopic } from "./cut.ts";
import { FENCE_COMMANDS } from "./fence-table.ts";
import { JOB_COMMANDS } from "./job-table.ts";
import { isLaterCommand, listLaterCommands, reasonOfLaterFlag } from "./later-names.ts";
import { nearestOf } from "./nearest.ts";
import type { CommandRow } from "./option-row.ts";
import { NOTIFY_COMMANDS } from "./notify-table.ts";
import { KEEP_COMMAND, RUN_COMMAND, TOP_ROWS } from "./options-table.ts";
import { PATROL_COMMAND } from "./patrol-table.ts";
import { PROBE_COMMAND } from "./probe-table.ts";
import { RETRY_COMMAND } from "./retry-table.ts";
import { showWord } from "./shown-words.ts";
import { TICK_COMMAND } from "./tick-table.ts";

const ALL_TOPICS: readonly Exclude<HelpTopic, "watchdog">[] = [
  "run",
  "keep",
  "fence",
  "retry",
  "tick",
  "job",
  "status",
  "history",
  "report",
  "why",
  "logs",
  "lease",
  "circuit",
  "probe",
  "repair",
  "patrol",
  "stop",
  "notify",
  "doctor",
  "config",
];

/** The commands that have a help of their own, in its order. */
export const TOPICS = ALL_TOPICS.filter((topic) => !isLaterCommand(topic));

const COMMANDS: readonly string[] = [...TOPICS, "help"];

/** Of more than one command that has an option, the first is what a person most likely meant. */
const TABLES: readonly CommandRow<unknown>[] = [
  RUN_COMMAND,
  KEEP_COMMAND,
  ...ANSWER_COMMANDS,
  RETRY_COMMAND,
  TICK_COMMAND,
  PROBE_COMMAND,
  PATROL_COMMAND,
  ...NOTIFY_COMMANDS,
  ...[...JOB_COMMANDS, ...FENCE_COMMANDS, ...CARE_COMMANDS].filter(({ name }) => !isLater(name)),
];

/** A part of a command that is not there is not there either. */
function isLater(name: string): boolean {
  return isLaterCommand(name) || isLaterCommand(name.split(" ")[0] ?? "");
}

interface HelpCut {
  readonly kind: "help";
  readonly topic: HelpTopic;
}

/** A slip, an option that came too early, or a program. */
export function refuseFirstWord(words: readonly string[]): Problem {
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
  const commandAt = words.findIndex((word) => (TOPICS as readonly string[]).includes(word));
  const dashesAt = words.indexOf("--");
  if (commandAt > 0 && (dashesAt < 0 || commandAt < dashesAt)) {
    const count = isOfTwoWords(words[commandAt] ?? "", words[commandAt + 1]) ? 2 : 1;
    const command = words.slice(commandAt, commandAt + count);
    repairs.push({ words: [...command, ...words.toSpliced(commandAt, count)] });
  }
  const owner = TABLES.find((table) =>
    table.rows.some((row) => row.flag === name || row.short === name),
  );
  if (owner !== undefined) {
    repairs.push({ words: [...owner.name.split(" "), ...words] });
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

function isOfTwoWords(first: string, second: string | undefined): boolean {
  return TABLES.some((row) => row.name === `${first} ${second ?? ""}`);
}

function refuseLaterCommand(name: string): Problem {
  return problem(`${name} is not available in this version: it has ${COMMANDS.join(", ")}`);
}

/** `help`, `help run`, `--help run`: the topic, or why there is none. */
export function cutHelp(words: readonly string[]): HelpCut | Problem {
  const [asked, topicWord, ...more] = words;
  if (topicWord === undefined) return { kind: "help", topic: "watchdog" };
  if (more.length > 0) {
    const message = `help tells of one command, found ${showWord(more[0] ?? "")} after it`;
    return problem(message, [{ words: [asked ?? "help", topicWord] }]);
  }
  const topic = TOPICS.find((each) => each === topicWord);
  if (topic !== undefined) return { kind: "help", topic };
  if (["help", "--help", "-h"].includes(topicWord)) return { kind: "help", topic: "watchdog" };
  if (listLaterCommands().includes(topicWord)) return refuseLaterCommand(topicWord);
  const near = nearestOf(topicWord, COMMANDS);
  return problem(
    `help knows no command ${showWord(topicWord)}, expected one of ${COMMANDS.join(", ")}`,
    near === undefined ? [] : [{ words: ["help", near] }],
  );
}
