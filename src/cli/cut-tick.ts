/**
 * Cuts the line of `watchdog tick`. Prints nothing and looks at no file, not at the configuration
 * either: a job calls it for each of its items.
 */

import { cutWordsAndOptions } from "./cut-asked.ts";
import { problem, replacedAt } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import type { Cut } from "./cut.ts";
import { showWord } from "./shown-words.ts";
import { TICK_COMMAND, type TickPart } from "./tick-table.ts";

export function cutTick(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutWordsAndOptions(words, 1, TICK_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "tick" };
  if (reading.kind === "problem") return reading;
  const [first] = reading.operands;
  if (first !== undefined) {
    const message = `tick takes no word beside its options, found ${showWord(first.text)}`;
    return problem(message, [
      replacedAt(words, first.at, 1, "--message", first.text),
      replacedAt(words, first.at, 1),
    ]);
  }
  const { ok, failed, total, checkpoint, message }: TickPart = Object.assign({}, ...reading.parts);
  return { kind: "tick", report: { ok, failed, total, checkpoint, message } };
}
