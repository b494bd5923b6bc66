/**
 * Cuts the lines of `watchdog circuit`: `list`, `show`, `reset`.
 *
 * Prints nothing and looks at no file.
 */

import * as table from "./answers-table.ts";
import { cutAsked } from "./cut-asked.ts";
import { isOptionLike, problem, replacedAt } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import type { Cut } from "./cut.ts";
import { nearestOf } from "./nearest.ts";
import { showWord } from "./shown-words.ts";

const WORDS: readonly string[] = ["list", "show", "reset"];

export function cutCircuit(words: readonly string[], variables: Variables): Cut | Problem {
  const [, second] = words;
  if (second === "list") return cutList(words, variables);
  if (second === "show") return cutShow(words, variables);
  if (second === "reset") return cutReset(words, variables);
  if (second === "--help" || second === "-h") return { kind: "help", topic: "circuit" };
  return refuseSecondWord(words, second);
}

function refuseSecondWord(words: readonly string[], second: string | undefined): Problem {
  const expected = "expected circuit list, circuit show or circuit reset";
  if (second === undefined) {
    return problem(`circuit alone asks nothing, ${expected}`, [{ words: ["circuit", "list"] }]);
  }
  const message = `found ${showWord(second)} behind circuit, ${expected}`;
  const laterAt = words.findIndex((word, at) => at > 1 && WORDS.includes(word));
  if (isOptionLike(second) && laterAt > 0) {
    const moved = ["circuit", words[laterAt] ?? "", ...words.slice(1, laterAt)];
    return problem(message, [{ words: [...moved, ...words.slice(laterAt + 1)] }]);
  }
  const near = nearestOf(second, WORDS);
  const repairs = near === undefined ? [] : [replacedAt(words, 1, 1, near)];
  return problem(message, [...repairs, { words: ["circuit", "show", ...words.slice(1)] }]);
}

function cutList(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 2, table.CIRCUIT_LIST_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "circuit" };
  if (asked.kind === "problem") return asked;
  const { isJson, stateDir, configFile } = asked.options;
  return { kind: "circuit-list", isJson, stateDir, configFile };
}

function cutShow(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 2, table.CIRCUIT_SHOW_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "circuit" };
  if (asked.kind === "problem") return asked;
  const { isJson, stateDir, configFile } = asked.options;
  return { kind: "circuit-show", name: asked.operand?.text ?? "", isJson, stateDir, configFile };
}

function cutReset(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 2, table.CIRCUIT_RESET_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "circuit" };
  if (asked.kind === "problem") return asked;
  const { stateDir, configFile } = asked.options;
  return { kind: "circuit-reset", name: asked.operand?.text ?? "", stateDir, configFile };
}
