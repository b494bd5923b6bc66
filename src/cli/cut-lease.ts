/**
 * Cuts the lines of `watchdog lease`: `list`, `show`, `explain`.
 *
 * Prints nothing and looks at no file.
 */

import type { LeaseKey } from "../core/lease-key.ts";
import { isRunId } from "../core/run-id.ts";
import * as table from "./answers-table.ts";
import type { AnswerCommand } from "./answers-table.ts";
import type { Cut } from "./cut.ts";
import { cutAsked } from "./cut-asked.ts";
import type { Operand } from "./cut-asked.ts";
import { isOptionLike, problem, replacedAt } from "./cut-options.ts";
import type { HelpAsked, Problem, Variables } from "./cut-options.ts";
import { isLaterCommand } from "./later-names.ts";
import { EXPECTED_LEASE, parseLeaseKey } from "./lease-values.ts";
import { nearestOf } from "./nearest.ts";
import { showWord } from "./shown-words.ts";

const LEASE_WORDS: readonly string[] = ["list", "show", "explain"].filter(
  (word) => !isLaterCommand(`lease ${word}`),
);

export function cutLease(words: readonly string[], variables: Variables): Cut | Problem {
  const [, second] = words;
  const isHere = second !== undefined && LEASE_WORDS.includes(second);
  if (second === "list") return cutLeaseList(words, variables);
  if (second === "show") return cutLeaseShow(words, variables);
  if (second === "explain" && isHere) return cutLeaseExplain(words, variables);
  if (second === "--help" || second === "-h") return { kind: "help", topic: "lease" };
  return refuseSecondWord(words, second);
}

function refuseSecondWord(words: readonly string[], second: string | undefined): Problem {
  const shown = LEASE_WORDS.map((word) => `lease ${word}`);
  const expected = `expected ${shown.slice(0, -1).join(", ")} or ${shown.at(-1) ?? ""}`;
  if (second === undefined) {
    return problem(`lease alone asks nothing, ${expected}`, [{ words: ["lease", "list"] }]);
  }
  if (isLaterCommand(`lease ${second}`)) {
    return problem(`lease ${second} is not available in this version: ${expected}`);
  }
  const laterAt = words.findIndex((word, at) => at > 1 && LEASE_WORDS.includes(word));
  if (isOptionLike(second) && laterAt > 0) {
    const moved = ["lease", words[laterAt] ?? "", ...words.slice(1, laterAt)];
    return problem(`found ${showWord(second)} behind lease, ${expected}`, [
      { words: [...moved, ...words.slice(laterAt + 1)] },
    ]);
  }
  const near = nearestOf(second, LEASE_WORDS);
  const repairs = near === undefined ? [] : [replacedAt(words, 1, 1, near)];
  repairs.push({ words: ["lease", "show", ...words.slice(1)] });
  return problem(`found ${showWord(second)} behind lease, ${expected}`, repairs);
}

function cutLeaseList(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 2, table.LEASE_LIST_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "lease" };
  if (asked.kind === "problem") return asked;
  const { isJson, stateDir, configFile } = asked.options;
  return { kind: "lease-list", isJson, stateDir, configFile };
}

function cutLeaseShow(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAboutKey(words, table.LEASE_SHOW_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "lease" };
  if (asked.kind === "problem") return asked;
  return { ...asked.about, kind: "lease-show" };
}

function cutLeaseExplain(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAboutKey(words, table.LEASE_EXPLAIN_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "lease" };
  if (asked.kind === "problem") return asked;
  return { ...asked.about, kind: "lease-explain" };
}

interface AboutKey {
  readonly kind: "about-key";
  readonly about: {
    readonly key: LeaseKey;
    readonly isJson: boolean;
    readonly stateDir: string | undefined;
    readonly configFile: string | undefined;
  };
}

function cutAboutKey(
  words: readonly string[],
  command: AnswerCommand,
  variables: Variables,
): AboutKey | HelpAsked | Problem {
  const asked = cutAsked(words, 2, command, variables);
  if (asked.kind !== "asked") return asked;
  const key = readKey(words, command.name, asked.operand ?? { text: "", at: 0 });
  if ("message" in key) return key;
  const { isJson, stateDir, configFile } = asked.options;
  return { kind: "about-key", about: { key, isJson, stateDir, configFile } };
}

/** @param name  the command, as a refusal calls it */
export function readKey(
  words: readonly string[],
  name: string,
  { text, at }: Operand,
): LeaseKey | Problem {
  const parsed = parseLeaseKey(text);
  if (parsed.kind === "value") return parsed.value;
  if (isRunId(text)) {
    const message = `${name}: found the id of a run, expected ${EXPECTED_LEASE.key}`;
    const behind = words.slice(words[0] === "lease" ? 2 : 1);
    // It tells of all leases of a run; not every option of ours is one of its.
    return problem(message, [{ words: ["status", ...behind] }, { words: ["status", text] }]);
  }
  const message = `${name}: found ${showWord(text)}, expected ${EXPECTED_LEASE.key}`;
  // A bare word is most likely the name of a job, whose lease every run takes.
  return problem(message, [replacedAt(words, at, 1, `job:${text}`)]);
}
