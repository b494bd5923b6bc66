/** What each check means for each promise: one check after the other by hand, then all pairs. */
import { describe, expect, test } from "bun:test";
import {
  type CheckName,
  CHECKS,
  type CheckState,
  type CheckStates,
  decidePromises,
  PROMISES,
} from "../../../src/core/promises.ts";

const STATES: readonly CheckState[] = ["ok", "note", "finding", "unknown"];
const BAD = ["note", "finding", "unknown"] as const;

function states(changes: Partial<Record<CheckName, CheckState>>): CheckStates {
  const all = Object.fromEntries(CHECKS.map((check) => [check, "ok"]));
  return { ...all, ...changes } as CheckStates;
}

function answer(changes: Partial<Record<CheckName, CheckState>>): string[] {
  return decidePromises(states(changes)).map(({ state }) => state);
}

/**
 * Exclusion, generation, fence, recovery, no harm: `B` it does not hold any more, `P` a part of it,
 * `.` nothing changes. Written by hand.
 */
const TABLE: Readonly<Record<CheckName, string>> = {
  ffi: "BBBB.",
  "state-directory": "BBBB.",
  room: "....P",
  files: ".B.B.",
  locks: "B.BB.",
  journal: ".....",
  "repair-files": ".P.P.",
  owners: "...P.",
  processes: "P..P.",
  pidfd: "....P",
  namespaces: "P..P.",
  cgroup: "...P.",
  clocks: ".....",
  guard: "...P.",
  workers: "...B.",
  limits: "...PP",
  variables: "....P",
  configuration: ".....",
  rights: ".....",
};

const ORDER = ["does-not-hold", "unproven", "holds-in-part", "holds"];

/** What one check alone makes of a promise. */
function alone(check: CheckName, state: CheckState, at: number): string {
  const letter = TABLE[check][at];
  if (state === "ok" || letter === ".") return "holds";
  if (state === "unknown") return "unproven";
  if (letter === "P") return "holds-in-part";
  return state === "finding" ? "does-not-hold" : "holds";
}

describe("the promises", () => {
  test("all hold where nothing was found", () => {
    expect(decidePromises(states({}))).toEqual(
      PROMISES.map((promise) => ({ promise, state: "holds", because: [] })),
    );
  });

  test.each(CHECKS.map((check) => [check]))("follow from %s as the table says", (check) => {
    for (const state of BAD) {
      const expected = PROMISES.map((_, at) => alone(check, state, at));
      expect([state, ...answer({ [check]: state })]).toEqual([state, ...expected]);
    }
  });

  test("of two checks the worse one counts", () => {
    let pairs = 0;
    for (const one of CHECKS) {
      for (const other of CHECKS.slice(CHECKS.indexOf(one) + 1)) {
        for (const [first, second] of STATES.flatMap((a) => STATES.map((b) => [a, b] as const))) {
          const expected = PROMISES.map((_, at) => {
            const both = [alone(one, first, at), alone(other, second, at)];
            return ORDER.find((state) => both.includes(state)) ?? "";
          });
          const found = answer({ [one]: first, [other]: second });
          expect([one, first, other, second, ...found]).toEqual([
            one,
            first,
            other,
            second,
            ...expected,
          ]);
          pairs += 1;
        }
      }
    }
    expect(pairs).toBe(((CHECKS.length * (CHECKS.length - 1)) / 2) * STATES.length ** 2);
  });

  test("name the checks that they fail for, and no others", () => {
    const found = decidePromises(states({ locks: "finding", guard: "finding", files: "unknown" }));
    expect(found.map(({ because }) => because)).toEqual([
      ["locks"],
      ["files"],
      ["locks"],
      ["locks"],
      [],
    ]);
  });
});
