/** Ready and unready by answers in a row. */
import { expect, test } from "bun:test";
import { decideReadiness, FIRST_READINESS } from "../../../src/core/readiness.ts";

const THRESHOLDS = { failureThreshold: 3, successThreshold: 2 };

/** `R` ready, `u` unready, after each answer; and why it changed. */
function follow(answers: string): { readonly shown: string; readonly reasons: string[] } {
  let [state, shown] = [FIRST_READINESS, ""];
  const reasons: string[] = [];
  for (const sign of answers) {
    const decision = decideReadiness(state, sign === "+", THRESHOLDS);
    if (decision.kind === "changed") reasons.push(decision.because);
    state = decision.state;
    shown += state.isReady ? "R" : "u";
  }
  return { shown, reasons };
}

test("it is ready until the failures in a row reach their threshold, then the other way", () => {
  const { shown, reasons } = follow("--+---+-++-");
  expect(shown).toBe("RRRRRuuuuRR");
  expect(reasons).toEqual(["failure-threshold", "success-threshold"]);
});

test("every short history is as a reader of the whole of it would say", () => {
  let count = 0;
  for (let bits = 0; bits < 2 ** 12; bits += 1) {
    const answers = bits.toString(2).padStart(12, "0").replaceAll("0", "+").replaceAll("1", "-");
    // From the outside: the last place where one of the two runs was complete.
    const model = Array.from(answers, (_, index) => {
      const seen = answers.slice(0, index + 1);
      const [bad, good] = [seen.lastIndexOf("---"), seen.lastIndexOf("++")];
      return bad === -1 || good > bad ? "R" : "u";
    });
    if (follow(answers).shown === model.join("")) count += 1;
  }
  expect(count).toBe(2 ** 12);
});
