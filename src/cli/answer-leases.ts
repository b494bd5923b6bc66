/**
 * The answers about leases: `lease list`, `lease show`, `lease explain`.
 *
 * Asked in `inspect/`, told in words here. Always: stdout holds the answer and nothing else; an
 * answer is a success, whatever it says. A key of which nothing is known cannot be explained.
 */

import { EXIT } from "../core/errors.ts";
import { splitRunPath } from "../core/environment-entries.ts";
import { renderKey } from "../core/lease-key.ts";
import { readExplanation, showExplanation } from "../inspect/explain.ts";
import { showLease } from "../inspect/lease-facts.ts";
import { findPlaceTroubles } from "../inspect/lease-places.ts";
import { readLeases } from "../inspect/leases.ts";
import { type Answer, type AnswerContext, lookFrom } from "./answer.ts";
import type { LeaseExplainCut, LeaseListCut, LeaseShowCut } from "./cut.ts";
import { renderExplanation } from "./render-explain.ts";
import { renderLeaseList, renderLeaseShow } from "./render-lease.ts";
import { renderJson } from "./render-words.ts";

export async function answerLeaseList(cut: LeaseListCut, context: AnswerContext): Promise<Answer> {
  const { stateDirectory } = context;
  const views = await readLeases({ stateDirectory }, lookFrom(context));
  const lines = findPlaceTroubles(stateDirectory);
  const leases = views.map(showLease);
  const json = { format: 1, state_directory: stateDirectory, leases, troubles: lines };
  if (cut.isJson) return { text: renderJson(json), lines, code: EXIT.ok };
  const isEmpty = views.length === 0 && lines.length > 0;
  return { text: isEmpty ? "" : renderLeaseList(views), lines, code: EXIT.ok };
}

/** A key that nobody has ever held is free. */
export async function answerLeaseShow(cut: LeaseShowCut, context: AnswerContext): Promise<Answer> {
  const { stateDirectory } = context;
  const views = await readLeases({ stateDirectory, keys: [cut.key] }, lookFrom(context));
  const text = cut.isJson
    ? views.map((view) => renderJson({ ...showLease(view), format: 1 }))
    : views.map(renderLeaseShow);
  return { text: text.join(""), lines: [], code: EXIT.ok };
}

/** Its status where nothing is known of the key. */
const NOT_FOUND = 1;

/** The evidence, the rules, and what a newcomer and a repair may do. */
export async function answerLeaseExplain(
  cut: LeaseExplainCut,
  context: AnswerContext,
): Promise<Answer> {
  const { stateDirectory, runPath } = context;
  const question = { stateDirectory, key: cut.key, runsAround: splitRunPath(runPath) };
  const explanation = await readExplanation(question, lookFrom(context));
  if (explanation === "unknown") {
    const line = `error: no lease is known of ${renderKey(cut.key)}`;
    return { lines: [line, "hint: watchdog lease list"], code: NOT_FOUND };
  }
  const text = cut.isJson
    ? renderJson(showExplanation(explanation))
    : renderExplanation(explanation);
  return { text, lines: [], code: EXIT.ok };
}
