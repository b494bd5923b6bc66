/**
 * Every combination of the facts of an end, against the order of precedence as the README states
 * it.
 */
import { expect, test } from "bun:test";
import { decideOutcome, type OutcomeFacts } from "../../src/core/outcome.ts";

const ENDS = [
  undefined,
  ...[0, 1, 9, 124, 125, 128, 129, 130, 131, 143, 255].map((code) => ({ kind: "exited", code })),
  ...[1, 2, 3, 9, 15, 34, 64].map((signal) => ({ kind: "signaled", signal })),
];
const LIMITS = [undefined, "timeout", "idle", "not-after"];
const STOPS = [undefined, "terminated", "interrupted", "quit", "hung-up"];
const SEEN = [[], [2], [3], [1], [2, 3], [1, 2], [20]];
const GOOD_CODES = [[0], [0, 1], [0, 130]];

function listFacts(): OutcomeFacts[] {
  const all = ENDS.flatMap((end) =>
    LIMITS.flatMap((limit) =>
      STOPS.flatMap((stop) =>
        SEEN.flatMap((seen) =>
          GOOD_CODES.flatMap((successExitCodes) =>
            [false, true].map((hasLostOutput) => ({
              end,
              limit,
              stop,
              seen,
              successExitCodes,
              hasLostOutput,
            })),
          ),
        ),
      ),
    ),
  );
  return all as unknown as OutcomeFacts[];
}

/** What a shell would show for the command itself. */
function shownOf({ end }: OutcomeFacts): number | undefined {
  if (end === undefined) return undefined;
  return end.kind === "exited" ? end.code : 128 + end.signal;
}

/** The first rule that applies, top down. */
const RULES: readonly { name: string; applies: (facts: OutcomeFacts) => boolean }[] = [
  { name: "timeout", applies: ({ limit }) => limit === "timeout" || limit === "not-after" },
  { name: "idle_timeout", applies: ({ limit }) => limit === "idle" },
  { name: "wrapper_error", applies: ({ end }) => end === undefined },
  { name: "stopped", applies: ({ stop }) => stop !== undefined },
  {
    name: "stopped",
    applies: (facts) =>
      [1, 2, 3].some((key) => facts.seen.includes(key) && shownOf(facts) === 128 + key),
  },
  { name: "signaled", applies: ({ end }) => end?.kind === "signaled" },
  {
    name: "wrapper_error",
    applies: ({ end, successExitCodes, hasLostOutput }) =>
      hasLostOutput && end?.kind === "exited" && successExitCodes.includes(end.code),
  },
  {
    name: "ok",
    applies: ({ end, successExitCodes }) =>
      end?.kind === "exited" && successExitCodes.includes(end.code),
  },
  { name: "failed", applies: () => true },
];

const FACTS = listFacts();

test("the first rule of the README that applies names the outcome", () => {
  expect(FACTS.length).toBe(
    ENDS.length * LIMITS.length * STOPS.length * SEEN.length * GOOD_CODES.length * 2,
  );
  const wrong = FACTS.filter(
    (facts) =>
      decideOutcome(facts).name !== (RULES.find((rule) => rule.applies(facts))?.name as never),
  );
  expect(wrong).toEqual([]);
});

test("the status is the command's own, untouched, unless the outcome is watchdog's", () => {
  for (const facts of FACTS) {
    const { name, statusOf, leaving } = decideOutcome(facts);
    const isOurs = ["timeout", "idle_timeout", "wrapper_error"].includes(name);
    expect(statusOf).toBe(isOurs ? "watchdog" : "command");
    const shown = leaving.kind === "status" ? leaving.code : 128 + leaving.signal;
    if (isOurs) expect(shown).toBe(name === "wrapper_error" ? 125 : 124);
    else expect(shown).toBe(Number(shownOf(facts)));
    if (!isOurs) expect(leaving.kind === "signal").toBe(facts.end?.kind === "signaled");
  }
});

test("the reason is one that belongs to the outcome", () => {
  const reasons: Readonly<Record<string, readonly string[]>> = {
    timeout: ["timeout", "not-after"],
    idle_timeout: ["idle"],
    wrapper_error: ["tree-not-ended", "output-not-written"],
    stopped: ["terminated", "interrupted", "quit", "hung-up"],
    signaled: ["killed-by-signal"],
    ok: ["exited"],
    failed: ["exited"],
  };
  for (const facts of FACTS) {
    const { name, because } = decideOutcome(facts);
    expect(reasons[name]).toContain(because);
    if (name === "stopped" && facts.stop !== undefined) expect(because).toBe(facts.stop);
  }
});
