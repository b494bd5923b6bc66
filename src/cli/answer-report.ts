/**
 * The answers of a morning: `report` and `why`.
 *
 * Asked in `inspect/`, told in words here. Loaded only for an answer. Always: stdout holds the
 * answer and nothing else; a page is written as a whole or not at all.
 */

import { EXIT, WatchdogError } from "../core/errors.ts";
import type { Need } from "../core/run-report.ts";
import { readReport, showReport } from "../inspect/report.ts";
import { readWhy, showWhy } from "../inspect/why.ts";
import { wallNow } from "../os/clock.ts";
import { deliverFile } from "../os/files.ts";
import { findToTell } from "../patrol/telling.ts";
import { type Answer, type AnswerContext, UNANSWERED } from "./answer.ts";
import type { ReportCut, WhyCut } from "./cut.ts";
import { renderReport } from "./render-report.ts";
import { describeJob } from "./render-patrol.ts";
import { renderJson } from "./render-words.ts";
import { hintAtRun } from "./unknown-run.ts";
import { renderWhy } from "./render-why.ts";
import { renderPage } from "./report-page.ts";

/** No such run is known. */
const UNKNOWN_RUN = 1;
/** Names and reasons of jobs are for whoever may see the state directory. */
const PAGE_MODE = 0o600;

/** @throws WatchdogError "answer.unwritable" where the page cannot be written */
export function answerReport(cut: ReportCut, { stateDirectory }: AnswerContext): Answer {
  const now = wallNow();
  const others = findOverdue(stateDirectory);
  const view = readReport({ stateDirectory, since: now - cut.sinceMs, now, others });
  const code = view.isReadable ? EXIT.ok : UNANSWERED;
  const answer = { lines: view.troubles, code };
  if (cut.htmlFile !== undefined) {
    writePage(cut.htmlFile, renderPage(view));
    return cut.isJson ? { ...answer, text: renderJson(showReport(view)) } : answer;
  }
  return { ...answer, text: cut.isJson ? renderJson(showReport(view)) : renderReport(view) };
}

/** Where it cannot be told, nothing is: a patrol says why. */
function findOverdue(stateDirectory: string): Need[] {
  const told = findToTell(stateDirectory);
  if (told === undefined) return [];
  return told.overdue.map((sight) => ({
    job: sight.schedule.job,
    because: "overdue",
    text: describeJob(sight, told.now),
  }));
}

function writePage(path: string, page: string): void {
  try {
    deliverFile(path, page, PAGE_MODE);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const reason = text.replace(/, \w+ '.*$/s, "");
    throw new WatchdogError("answer.unwritable", `${path} cannot be written: ${reason}`, {
      hint: "watchdog report",
      cause,
    });
  }
}

export function answerWhy(cut: WhyCut, { stateDirectory }: AnswerContext): Answer {
  const view = readWhy({ stateDirectory, target: cut.target });
  const text = cut.isJson ? renderJson(showWhy(view)) : renderWhy(view);
  const lines = view.troubles;
  if (!view.isReadable) return { text, lines, code: UNANSWERED };
  if (view.newest !== undefined) return { text, lines, code: EXIT.ok };
  const hints = hintAtRun(stateDirectory, cut.target, "why");
  return { text, lines: [...lines, ...hints], code: UNKNOWN_RUN };
}
