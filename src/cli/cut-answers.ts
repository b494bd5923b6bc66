/**
 * Cuts the lines of the commands that look at runs: `status`, `history`, `report`, `why`, `logs`,
 * `stop`, and those of `__bury`, which only the guard of a killed watchdog starts, and
 * `__lock-probe`, which only `doctor` does.
 *
 * Prints nothing and looks at no file.
 */

import { BURY_COMMAND } from "../core/burial.ts";
import { LOCK_PROBE_COMMAND } from "../core/lock-probe.ts";
import { isRunId } from "../core/run-id.ts";
import * as table from "./answers-table.ts";
import type { Cut } from "./cut.ts";
import { cutAsked } from "./cut-asked.ts";
import { problem } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";

/** Undefined: the first word is no command of this file. */
export function cutAnswer(
  words: readonly string[],
  variables: Variables,
): Cut | Problem | undefined {
  const [first] = words;
  if (first === "status") return cutStatus(words, variables);
  if (first === "history") return cutHistory(words, variables);
  if (first === "report") return cutReport(words, variables);
  if (first === "why") return cutWhy(words, variables);
  if (first === "logs") return cutLogs(words, variables);
  if (first === "stop") return cutStop(words, variables);
  if (first === BURY_COMMAND) return cutBury(words);
  if (first === LOCK_PROBE_COMMAND) return cutLockProbe(words);
  return undefined;
}

function cutStatus(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 1, table.STATUS_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "status" };
  if (asked.kind === "problem") return asked;
  const { isJson, isWatching, stateDir, configFile } = asked.options;
  if (isJson && isWatching) {
    return problem("--watch draws a picture, found --json, which answers once, beside it", [
      { words: words.filter((word) => word !== "--watch") },
      { words: words.filter((word) => word !== "--json") },
    ]);
  }
  return { kind: "status", name: asked.operand?.text, isJson, isWatching, stateDir, configFile };
}

function cutHistory(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 1, table.HISTORY_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "history" };
  if (asked.kind === "problem") return asked;
  const { isJson, limit, stateDir, configFile } = asked.options;
  return { kind: "history", name: asked.operand?.text, isJson, limit, stateDir, configFile };
}

function cutReport(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 1, table.REPORT_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "report" };
  if (asked.kind === "problem") return asked;
  const { isJson, sinceMs, htmlFile, stateDir, configFile } = asked.options;
  return { kind: "report", isJson, sinceMs, htmlFile, stateDir, configFile };
}

function cutWhy(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 1, table.WHY_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "why" };
  if (asked.kind === "problem") return asked;
  const { isJson, stateDir, configFile } = asked.options;
  return { kind: "why", target: asked.operand?.text ?? "", isJson, stateDir, configFile };
}

function cutLogs(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 1, table.LOGS_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "logs" };
  if (asked.kind === "problem") return asked;
  const { stateDir, configFile } = asked.options;
  return { kind: "logs", target: asked.operand?.text ?? "", stateDir, configFile };
}

function cutStop(words: readonly string[], variables: Variables): Cut | Problem {
  const asked = cutAsked(words, 1, table.STOP_COMMAND, variables);
  if (asked.kind === "help") return { kind: "help", topic: "stop" };
  if (asked.kind === "problem") return asked;
  const { killAfterMs, stateDir, configFile } = asked.options;
  const target = asked.operand?.text ?? "";
  return { kind: "stop", target, killAfterMs, stateDir, configFile };
}

/** `__lock-probe PATH`. */
function cutLockProbe(words: readonly string[]): Cut | Problem {
  const [, path = "", ...more] = words;
  if (path.startsWith("/") && more.length === 0) return { kind: "lock-probe", path };
  return problem(`${LOCK_PROBE_COMMAND} is for watchdog doctor, expected the path of a file`);
}

/** `__bury RUN_ID STATE_DIR`, as the guard writes it and not otherwise: it kills. */
function cutBury(words: readonly string[]): Cut | Problem {
  const [, runId = "", stateDir = "", ...more] = words;
  const isRight = isRunId(runId) && stateDir.startsWith("/") && more.length === 0;
  if (isRight) return { kind: "bury", runId, stateDir };
  return problem(`${BURY_COMMAND} is for the guard of a run, expected its id and a directory`);
}
