/**
 * The answer of `watchdog probe`: each target is asked once, and what came of it is told stage by
 * stage.
 *
 * Asked in `run/`, told in words here. Always: stdout holds the answer and nothing else; an answer
 * is a success, whatever it says, unless --check was given.
 */

import { EXIT } from "../core/errors.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { readProbeFiles } from "../probe/given-values.ts";
import { askEach } from "../run/dependencies/ask-each.ts";
import type { Answer } from "./answer.ts";
import type { ProbeCut } from "./cut.ts";
import { renderProbes, showProbe } from "./render-probe.ts";
import { renderJson } from "./render-words.ts";
import { isOptionVariable } from "./variables-table.ts";

export interface ProbeAround {
  /** Of probe/probe-worker.ts. */
  readonly probeUrl: URL;
  readonly inherited: Inheritance;
}

/** @throws WatchdogError "config.refused" (78): a file that a probe is told by cannot be used */
export async function answerProbe(cut: ProbeCut, around: ProbeAround): Promise<Answer> {
  const { isJson, isCheck } = cut;
  const settings = readProbeFiles(cut.probes);
  const asked = await askEach({ ...around, settings, isOptionVariable });
  const areGood = asked.every(({ result }) => result.isGood);
  const json = { format: 1, is_good: areGood, probes: asked.map(showProbe) };
  const text = isJson ? renderJson(json) : renderProbes(asked);
  return { text, lines: [], code: isCheck && !areGood ? EXIT.dependency_down : EXIT.ok };
}
