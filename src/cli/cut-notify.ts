/**
 * Cuts the lines of `watchdog notify`: `list`, `test`, `flush`, `drop`.
 *
 * Prints nothing; the configuration is asked for once the line is read.
 */

import { addSettings } from "./add-settings.ts";
import { cutWordsAndOptions } from "./cut-asked.ts";
import type { WordsReading } from "./cut-asked.ts";
import { isOptionLike, problem, replacedAt } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import { DEFAULT_HISTORY_LIMIT } from "./cut.ts";
import type { Cut, NotifyCut } from "./cut.ts";
import { finishSinks } from "./finish-sinks.ts";
import { nearestOf } from "./nearest.ts";
import * as table from "./notify-table.ts";
import type { NotifyPart } from "./notify-table.ts";
import type { ReadSettings } from "./settings.ts";
import { showWord } from "./shown-words.ts";
import { SINK_ROWS } from "./sink-options.ts";

const ACTIONS = ["list", "test", "flush", "drop"] as const;
type Action = (typeof ACTIONS)[number];

const COMMANDS = {
  list: table.NOTIFY_LIST_COMMAND,
  test: table.NOTIFY_TEST_COMMAND,
  flush: table.NOTIFY_FLUSH_COMMAND,
  drop: table.NOTIFY_DROP_COMMAND,
} as const;

export function cutNotify(
  words: readonly string[],
  variables: Variables,
  readSettings: ReadSettings,
): Cut | Problem {
  const [, second] = words;
  if (second === "--help" || second === "-h") return { kind: "help", topic: "notify" };
  const action = ACTIONS.find((one) => one === second);
  if (action === undefined) return refuseSecondWord(words, second);
  const reading = cutWordsAndOptions(words, 2, COMMANDS[action], variables);
  if (reading.kind === "help") return { kind: "help", topic: "notify" };
  if (reading.kind === "problem") return reading;
  const cut = finish(action, words, { reading, readSettings });
  return refuseWords(words, cut, reading) ?? cut;
}

function finish(
  action: Action,
  words: readonly string[],
  {
    reading,
    readSettings,
  }: { readonly reading: WordsReading<NotifyPart>; readonly readSettings: ReadSettings },
): NotifyCut {
  const part: NotifyPart = Object.assign({}, ...reading.parts);
  const { configFile, stateDir } = part;
  const tells = action === "test" || action === "flush";
  const settings = tells ? readSettings(configFile) : undefined;
  const { given, parts } =
    settings === undefined
      ? { given: reading.given, parts: [] }
      : addSettings(reading, settings, SINK_ROWS);
  const line = { words, given };
  return {
    kind: "notify",
    action,
    ids: action === "drop" ? reading.operands.map(({ text }) => Number(text)) : [],
    ...finishSinks(line, [...parts, ...reading.parts], settings?.sinks ?? new Map()),
    timeoutMs: part.notifyTimeoutMs,
    isJson: part.isJson ?? false,
    isAll: part.isAll ?? false,
    isAllDead: part.isAllDead ?? false,
    isWithDead: part.isWithDead ?? false,
    limit: part.limit ?? DEFAULT_HISTORY_LIMIT,
    stateDir,
    configFile,
  };
}

function refuseSecondWord(words: readonly string[], second: string | undefined): Problem {
  const expected = "expected notify list, notify test, notify flush or notify drop";
  if (second === undefined) {
    return problem(`notify alone asks nothing, ${expected}`, [{ words: ["notify", "list"] }]);
  }
  const message = `found ${showWord(second)} behind notify, ${expected}`;
  const laterAt = words.findIndex((word, at) => at > 1 && ACTIONS.some((one) => one === word));
  if (isOptionLike(second) && laterAt > 0) {
    const moved = ["notify", words[laterAt] ?? "", ...words.slice(1, laterAt)];
    return problem(message, [{ words: [...moved, ...words.slice(laterAt + 1)] }]);
  }
  const near = nearestOf(second, ACTIONS);
  return problem(message, near === undefined ? [] : [replacedAt(words, 1, 1, near)]);
}

function refuseWords(
  words: readonly string[],
  cut: NotifyCut,
  { operands }: WordsReading<NotifyPart>,
): Problem | undefined {
  const { action, isAllDead } = cut;
  const [first] = operands;
  if (action !== "drop") {
    if (first === undefined) return undefined;
    const message = `notify ${action} takes no word beside its options`;
    return problem(`${message}, found ${showWord(first.text)}`, [replacedAt(words, first.at, 1)]);
  }
  const strange = operands.find(({ text }) => !/^[1-9][0-9]{0,14}$/.test(text));
  if (strange !== undefined) {
    const expected = "expected the number of a notice, as notify list shows it";
    return problem(`notify drop: found ${showWord(strange.text)}, ${expected}`);
  }
  if (isAllDead && first !== undefined) {
    return problem("notify drop --all-dead takes no ID beside it", [
      { words: ["notify", "drop", "--all-dead"] },
    ]);
  }
  if (isAllDead || first !== undefined) return undefined;
  return problem(
    `notify drop was told nothing to drop, expected ${table.NOTIFY_DROP_COMMAND.usage}`,
    [{ words: ["notify", "list"] }],
  );
}
