/** What the answers of a tried lock say, for each of them: written by hand. */
import { describe, expect, test } from "bun:test";
import {
  decideLockProbe,
  LOCK_PROBE_WORDS,
  type LockAnswer,
  type LockJudgement,
} from "../../../src/core/lock-probe.ts";

const ENOLCK = 37;
const ANSWERS: readonly LockAnswer[] = ["granted", "refused", ENOLCK];

/** Of whoever was refused while its parent held the lock: while it lives, afterwards, judgement. */
const OF_REFUSED: readonly (readonly [LockAnswer, LockAnswer, LockJudgement])[] = [
  ["refused", "granted", "proven"],
  ["refused", "refused", "outlives-its-process"],
  ["refused", ENOLCK, "outlives-its-process"],
  ["granted", "granted", "ends-while-inherited"],
  ["granted", "refused", "ends-while-inherited"],
  ["granted", ENOLCK, "ends-while-inherited"],
  [ENOLCK, "granted", "ends-while-inherited"],
  [ENOLCK, "refused", "ends-while-inherited"],
  [ENOLCK, ENOLCK, "ends-while-inherited"],
];

const PAIRS = ANSWERS.flatMap((one) => ANSWERS.map((other) => [one, other] as const));

describe("a tried lock", () => {
  test.each(OF_REFUSED)("that is %p to us while it lives, then %p: %s", (...row) => {
    const [whileItLives, afterwards, judgement] = row;
    const said = LOCK_PROBE_WORDS.refused;
    expect(decideLockProbe({ said, whileItLives, afterwards })).toBe(judgement);
  });

  test("has a row for every pair of answers", () => {
    const named = OF_REFUSED.map(([one, other]) => `${one} ${other}`).toSorted();
    expect(named).toEqual(PAIRS.map((pair) => pair.join(" ")).toSorted());
  });

  test.each([
    [LOCK_PROBE_WORDS.granted, "given-to-a-second-process"],
    [LOCK_PROBE_WORDS.failed, "unanswered"],
    ["", "unanswered"],
    ["x", "unanswered"],
    ["rr", "unanswered"],
  ] as const)(
    "of which a second process says %j is that, whatever we get: %s",
    (said, judgement) => {
      for (const [whileItLives, afterwards] of PAIRS) {
        expect(decideLockProbe({ said, whileItLives, afterwards })).toBe(judgement);
      }
    },
  );
});
