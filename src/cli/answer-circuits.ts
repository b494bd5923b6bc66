/**
 * The answers about circuits: `circuit list`, `circuit show`, and the one command that changes one,
 * `circuit reset`.
 *
 * Asked in `inspect/`, told in words here. Always: stdout holds the answer and nothing else. A
 * circuit of which nothing is known can neither be shown nor reset.
 */

import { EXIT } from "../core/errors.ts";
import { showCircuit } from "../inspect/circuit-facts.ts";
import {
  type CircuitFinding,
  readCircuit,
  readCircuits,
  resetCircuit,
} from "../inspect/circuits.ts";
import { type Answer, type AnswerContext, UNANSWERED } from "./answer.ts";
import type { CircuitListCut, CircuitResetCut, CircuitShowCut } from "./cut.ts";
import { renderCircuitList, renderCircuitShow, renderReset, sayUnknown } from "./render-circuit.ts";
import { renderJson } from "./render-words.ts";

/** Its status where nothing is known of the circuit. */
const NOT_FOUND = 1;

export function answerCircuitList(cut: CircuitListCut, { stateDirectory }: AnswerContext): Answer {
  const { circuits, isReadable, troubles } = readCircuits(stateDirectory);
  const code = isReadable ? EXIT.ok : UNANSWERED;
  const shown = circuits.map(showCircuit);
  const json = { format: 1, state_directory: stateDirectory, circuits: shown, troubles };
  if (cut.isJson) return { text: renderJson(json), lines: troubles, code };
  return { text: isReadable ? renderCircuitList(circuits) : "", lines: troubles, code };
}

export function answerCircuitShow(cut: CircuitShowCut, { stateDirectory }: AnswerContext): Answer {
  const found = readCircuit(stateDirectory, cut.name);
  if (found.kind !== "found") return describeNone(cut.name, found);
  const { view } = found;
  const text = cut.isJson
    ? renderJson({ ...showCircuit(view), format: 1 })
    : renderCircuitShow(view);
  return { text, lines: [], code: EXIT.ok };
}

export function answerCircuitReset(
  cut: CircuitResetCut,
  { stateDirectory }: AnswerContext,
): Answer {
  const found = resetCircuit(stateDirectory, cut.name);
  if (found.kind !== "reset") return describeNone(cut.name, found);
  return { text: renderReset(cut.name, found), lines: found.troubles, code: EXIT.ok };
}

function describeNone(name: string, found: Exclude<CircuitFinding, { kind: "found" }>): Answer {
  if (found.kind === "unknown") return { lines: sayUnknown(name), code: NOT_FOUND };
  return { lines: [found.reason], code: UNANSWERED };
}
