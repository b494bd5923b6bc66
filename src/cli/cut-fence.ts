/**
 * Cuts the lines of `watchdog fence`, of what it does for git, and of `__git-hook`, which only an
 * installed hook starts.
 *
 * Prints nothing and looks at no file. Always: an operation stands behind `--`, so that a slip in
 * the name of a command of ours is never run as a program.
 */

import { orderKeys } from "../core/lease-key.ts";
import type { Cut } from "./cut.ts";
import { cutWordsAndOptions } from "./cut-asked.ts";
import { cutOptions, problem, replacedAt } from "./cut-options.ts";
import type { Problem, Repair, Variables } from "./cut-options.ts";
import * as table from "./fence-table.ts";
import type { FenceParts } from "./fence-table.ts";
import { nearestOf } from "./nearest.ts";
import { showWord } from "./shown-words.ts";

const PARTS: readonly string[] = ["git-push", "install-git-hooks"];

export function cutFence(words: readonly string[], variables: Variables): Cut | Problem {
  const [, second = ""] = words;
  if (second === "git-push") return cutGitPush(words, variables);
  if (second === "install-git-hooks") return cutInstall(words, variables);
  return cutOperation(words, variables);
}

function cutOperation(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutOptions(words, 1, table.FENCE_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "fence" };
  if (reading.kind === "problem") return reading;
  const { next } = reading;
  const isClosed = next > 1 && words[next - 1] === "--" && isEndOfOptions(words, next);
  const word = words[next];
  if (word !== undefined && !isClosed) return refuseOpenWord(words, next, word);
  if (isClosed && word === undefined) {
    const message = `no operation stands behind --, expected ${table.FENCE_COMMAND.usage}`;
    return problem(message, [replacedAt(words, next - 1, 1)]);
  }
  if (word === "") {
    const message = `the operation is empty, found "", expected the name or path of a program`;
    return problem(message, [{ words: ["help", "fence"] }]);
  }
  const { stateDir, configFile, keys, timeoutMs, waitMs, isVerbose } = collect(reading.parts);
  const options = { keys, timeoutMs, waitMs, isVerbose, stateDir, configFile };
  return { kind: "fence", options, commandAt: word === undefined ? undefined : next };
}

/** No value of an option starts with `--` unless it is attached, so this `--` is none. */
function isEndOfOptions(words: readonly string[], next: number): boolean {
  return words.indexOf("--") === next - 1;
}

function refuseOpenWord(words: readonly string[], at: number, word: string): Problem {
  const moved = ["fence", word, ...words.toSpliced(at, 1).slice(1)];
  if (PARTS.includes(word)) {
    const message = `found ${showWord(word)} behind the options, expected it right after fence`;
    return problem(message, [{ words: moved }]);
  }
  const repairs: Repair[] = [];
  // `fence git push` is a program without its --, and no slip in the name of one of ours.
  const near = word === "git" ? undefined : nearestOf(word, PARTS);
  if (near !== undefined) repairs.push({ words: ["fence", near, ...moved.slice(2)] });
  repairs.push(replacedAt(words, at, 0, "--"));
  return problem(`fence: found ${showWord(word)}, expected -- before the operation`, repairs);
}

function cutGitPush(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutWordsAndOptions(words, 2, table.FENCE_GIT_PUSH_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "fence" };
  if (reading.kind === "problem") return reading;
  const bad = reading.operands.find(({ text }) => text === "" || text.includes("\uFFFD"));
  if (bad !== undefined) {
    return problem(`fence git-push: found ${showWord(bad.text)}, expected a remote or a branch`);
  }
  const [remote, ...refspecs] = reading.operands.map(({ text }) => text);
  const { stateDir, configFile, keys, timeoutMs, waitMs } = collect(reading.parts);
  return {
    kind: "fence-git-push",
    keys,
    remote,
    refspecs,
    timeoutMs,
    waitMs,
    stateDir,
    configFile,
  };
}

function cutInstall(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutWordsAndOptions(words, 2, table.FENCE_INSTALL_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "fence" };
  if (reading.kind === "problem") return reading;
  const [directory, more] = reading.operands;
  if (more !== undefined) {
    const message = `takes one word beside its options, found ${showWord(more.text)} too`;
    return problem(`fence install-git-hooks ${message}`, [replacedAt(words, more.at, 1)]);
  }
  if (directory?.text === "" || directory?.text.includes("\uFFFD") === true) {
    return problem(
      `fence install-git-hooks: found ${showWord(directory.text)}, expected a directory`,
    );
  }
  const { stateDir, configFile, keys, isUninstalling } = collect(reading.parts);
  return {
    kind: "fence-install-git-hooks",
    directory: directory?.text,
    keys,
    isUninstalling,
    stateDir,
    configFile,
  };
}

/**
 * Everything behind the name of the hook is git's: options end there, as they do before the command
 * of a run.
 */
export function cutGitHook(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutOptions(words, 1, table.GIT_HOOK_COMMAND, variables);
  const { name, usage } = table.GIT_HOOK_COMMAND;
  if (reading.kind === "problem") return reading;
  const hook = reading.kind === "help" ? undefined : words[reading.next];
  if (reading.kind === "help" || hook === undefined || hook === "") {
    return problem(`${name} is for the hooks of git, expected ${usage}`);
  }
  const { stateDir, configFile, keys } = collect(reading.parts);
  const given = words.slice(reading.next + 1);
  return { kind: "git-hook", hook, words: given, keys, stateDir, configFile };
}

/** `--key` adds, where any other option replaces. */
function collect(parts: readonly Partial<FenceParts>[]): FenceParts {
  const whole: FenceParts = Object.assign({}, table.FENCE_DEFAULTS, ...parts);
  return { ...whole, keys: orderKeys(parts.flatMap((part) => part.keys ?? [])) };
}
