/**
 * Cuts the lines of whoever looks after watchdog: `repair`, `doctor`, `config show`,
 * `config check`.
 *
 * Prints nothing and looks at no file.
 */

import { orderKeys } from "../core/lease-key.ts";
import type { LeaseKey } from "../core/lease-key.ts";
import * as table from "./care-table.ts";
import type { CareParts } from "./care-table.ts";
import { cutWordsAndOptions } from "./cut-asked.ts";
import type { WordsReading } from "./cut-asked.ts";
import { readKey } from "./cut-lease.ts";
import { isOptionLike, problem, replacedAt } from "./cut-options.ts";
import type { HelpAsked, Problem, Variables } from "./cut-options.ts";
import type { Cut } from "./cut.ts";
import { nearestOf } from "./nearest.ts";
import type { CommandRow } from "./option-row.ts";
import { showWord } from "./shown-words.ts";

export function cutRepair(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutWordsAndOptions(words, 1, table.REPAIR_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "repair" };
  if (reading.kind === "problem") return reading;
  const keys: LeaseKey[] = [];
  for (const operand of reading.operands) {
    const key = readKey(words, "repair", operand);
    if ("message" in key) return key;
    keys.push(key);
  }
  const asked: CareParts = Object.assign({}, table.CARE_DEFAULTS, ...reading.parts);
  const refusal = refuseCombination(asked, orderKeys(keys));
  const { stateGroup: _, ...options } = asked;
  return refusal ?? { kind: "repair", keys: orderKeys(keys), ...options };
}

/** What is approved is one plan; what is set is the number of one key. */
function refuseCombination(asked: CareParts, keys: readonly LeaseKey[]): Problem | undefined {
  if (asked.isApplying && asked.approve !== undefined) {
    return problem("repair --approve carries out one plan and stands without --apply");
  }
  if (asked.setGeneration === undefined) return undefined;
  if (keys.length !== 1) {
    const found = keys.length === 0 ? "none" : String(keys.length);
    return problem(`repair --set-generation is about one key, found ${found}, expected KEY`);
  }
  if (asked.isApplying || asked.approve !== undefined) {
    const other = asked.isApplying ? "--apply" : "--approve";
    return problem(`repair --set-generation stands without ${other}`);
  }
  return undefined;
}

export function cutDoctor(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutAlone(words, 1, table.DOCTOR_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "doctor" };
  if (reading.kind === "problem") return reading;
  const { stateGroup }: CareParts = Object.assign({}, table.CARE_DEFAULTS, ...reading.parts);
  return { kind: "doctor", stateGroup, ...looking(reading.parts) };
}

const CONFIG_WORDS: readonly string[] = ["show", "check"];

export function cutConfig(words: readonly string[], variables: Variables): Cut | Problem {
  const [, second] = words;
  if (second === "show" || second === "check") {
    const isCheck = second === "check";
    const command = isCheck ? table.CONFIG_CHECK_COMMAND : table.CONFIG_SHOW_COMMAND;
    const reading = cutAlone(words, 2, command, variables);
    if (reading.kind === "help") return { kind: "help", topic: "config" };
    if (reading.kind === "problem") return reading;
    return { kind: isCheck ? "config-check" : "config-show", ...looking(reading.parts) };
  }
  if (second === "--help" || second === "-h") return { kind: "help", topic: "config" };
  const expected = "expected config show or config check";
  if (second === undefined) {
    return problem(`config alone asks nothing, ${expected}`, [{ words: ["config", "show"] }]);
  }
  const laterAt = words.findIndex((word, at) => at > 1 && CONFIG_WORDS.includes(word));
  const message = `found ${showWord(second)} behind config, ${expected}`;
  if (isOptionLike(second) && laterAt > 0) {
    const moved = ["config", words[laterAt] ?? "", ...words.slice(1, laterAt)];
    return problem(message, [{ words: [...moved, ...words.slice(laterAt + 1)] }]);
  }
  const near = nearestOf(second, CONFIG_WORDS);
  return problem(message, near === undefined ? [] : [replacedAt(words, 1, 1, near)]);
}

/** The options of a command that takes no word beside them. */
function cutAlone(
  words: readonly string[],
  start: number,
  command: CommandRow<Partial<CareParts>>,
  variables: Variables,
): WordsReading<Partial<CareParts>> | HelpAsked | Problem {
  const reading = cutWordsAndOptions(words, start, command, variables);
  const [first] = reading.kind === "words" ? reading.operands : [];
  if (first === undefined) return reading;
  const found = `found ${showWord(first.text)}`;
  const message = `${command.name} takes no word beside its options, ${found}`;
  return problem(message, [replacedAt(words, first.at, 1)]);
}

function looking(
  parts: readonly Partial<CareParts>[],
): Pick<CareParts, "isJson" | "stateDir" | "configFile"> {
  const asked: CareParts = Object.assign({}, table.CARE_DEFAULTS, ...parts);
  return { isJson: asked.isJson, stateDir: asked.stateDir, configFile: asked.configFile };
}
