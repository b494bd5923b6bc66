/**
 * The answers about runs: `status`, `history`, `logs`, and the one command that ends a run, `stop`.
 *
 * Asked in `inspect/`, told in words here. Always: stdout holds the answer and nothing else.
 */

import { EXIT } from "../core/errors.ts";
import { DEFAULT_KILL_AFTER_MS } from "../core/run-options.ts";
import { readHistoryView, showHistory } from "../inspect/history.ts";
import { isGoingOn, viewAnswer } from "../inspect/journal-runs.ts";
import { closeLog, copyLog, openLog } from "../inspect/log-parts.ts";
import { findLog, type LogFinding } from "../inspect/logs.ts";
import { readStatus, showStatus } from "../inspect/status.ts";
import { stopRun } from "../inspect/stop.ts";
import { findRun, type JournalRun } from "../journal/queries.ts";
import { say, type AnswerEnd, writeAnswerBytes } from "../os/say.ts";
import { type Answer, type AnswerContext, lookFrom, UNANSWERED } from "./answer.ts";
import type { HistoryCut, LogsCut, StatusCut, StopCut } from "./cut.ts";
import { renderHistory } from "./render-run.ts";
import { renderStatus } from "./render-status.ts";
import { type LastRun, renderStopEnd, renderStopStep } from "./render-stop.ts";
import { renderInstant, renderJson } from "./render-words.ts";
import { hintAtRun } from "./unknown-run.ts";
import { showWord } from "./shown-words.ts";

/** There is no such run, or nothing was kept of it. */
const NOTHING_KEPT = 1;

export async function answerStatus(cut: StatusCut, context: AnswerContext): Promise<Answer> {
  const { stateDirectory } = context;
  const question = { stateDirectory, name: cut.name, treeLook: lookFrom(context) };
  if (cut.isWatching) {
    const { watchStatus } = await import("./watch-status.ts");
    return watchStatus({ question, ...context });
  }
  const view = await readStatus(question);
  const text = cut.isJson ? renderJson(showStatus(view)) : renderStatus(view);
  return { text, lines: view.troubles, code: EXIT.ok };
}

export async function answerHistory(cut: HistoryCut, context: AnswerContext): Promise<Answer> {
  const { stateDirectory } = context;
  const view = readHistoryView({ stateDirectory, target: cut.name, limit: cut.limit });
  const text = cut.isJson ? renderJson(showHistory(view)) : renderHistory(view);
  return { text, lines: view.troubles, code: view.isReadable ? EXIT.ok : UNANSWERED };
}

/** Streams to stdout by itself. */
export async function answerLogs(cut: LogsCut, context: AnswerContext): Promise<Answer> {
  const found = findLog(context.stateDirectory, cut.target);
  const log = found.kind === "found" ? openLog(found.path) : undefined;
  if (found.kind === "none" || log === undefined) {
    const answer = describeNoLog(cut.target, found);
    const isKnown = found.kind === "found" || found.run !== undefined;
    const hints = isKnown ? [] : hintAtRun(context.stateDirectory, cut.target, "logs");
    return { ...answer, lines: [...answer.lines, ...hints] };
  }
  const { runId, silentLast } = found;
  let end = "written" as AnswerEnd;
  try {
    copyLog(log, (bytes) => {
      end = writeAnswerBytes(bytes);
      return end === "written";
    });
  } finally {
    closeLog(log);
  }
  return {
    lines: describeSilence(runId, silentLast),
    code: end === "failed" ? UNANSWERED : EXIT.ok,
  };
}

/** Output of an earlier run must not pass for that of the last one. */
function describeSilence(
  runId: string,
  last: Extract<LogFinding, { kind: "found" }>["silentLast"],
): string[] {
  if (last === undefined) return [];
  const started = renderInstant(last.startedAt);
  return [`nothing was kept of the last run (${last.runId}, ${started}): this is run ${runId}`];
}

function describeNoLog(target: string, found: LogFinding): Answer {
  const code = NOTHING_KEPT;
  if (found.kind === "none" && found.run === undefined) {
    return { lines: [...found.troubles, `no run is known of ${showWord(target)}`], code };
  }
  const why = found.kind === "none" && found.run !== undefined ? whyNothing(found.run) : undefined;
  const line = `nothing was kept of ${showWord(target)}`;
  const lines =
    why === undefined ? [line, "hint: watchdog run --log on -- COMMAND"] : [`${line}: ${why}`];
  return { lines, code };
}

/** Undefined: no log was asked for, or it cannot be told. */
function whyNothing({ state, record }: JournalRun): string | undefined {
  if (state !== "ended") return "its last run has not ended, as far as is known";
  if (record === undefined) return undefined;
  if (record.child_pid === null) return "its last run was not started";
  const { log, output } = record;
  const isSilent = output.stdout_bytes === 0 && output.stderr_bytes === 0;
  return log !== null && isSilent ? "its last run has printed nothing" : undefined;
}

export async function answerStop(cut: StopCut, context: AnswerContext): Promise<Answer> {
  const { stateDirectory } = context;
  const { target, killAfterMs = DEFAULT_KILL_AFTER_MS } = cut;
  const { troubles, ...end } = stopRun({
    stateDirectory,
    target,
    killAfterMs,
    onStep: (step, run) => say(`watchdog: ${renderStopStep(step, run)}`),
  });
  const last = end.kind === "not-running" ? findLast(stateDirectory, target) : undefined;
  const said = renderStopEnd(target, end, last);
  return { ...said, lines: [...troubles, ...said.lines] };
}

/** Of a run that has ended in this very moment its row may still say that it runs. */
function findLast(stateDirectory: string, target: string): LastRun | undefined {
  const run = viewAnswer(findRun(stateDirectory, target), undefined).value;
  return run === undefined ? undefined : { run, isGoingOn: isGoingOn(run) };
}
