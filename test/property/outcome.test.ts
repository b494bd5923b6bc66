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
const DEPENDENCIES = [
  undefined,
  ...["circuit-opened", "max-attempts", "max-elapsed"].map((because) => ({ name: "x", because })),
];
/** Whether the run was ended for its items, and whether they are too bad at the end. */
const ITEMS = [
  [undefined, undefined],
  [undefined, "too-many-failed"],
  ["too-many-failed-in-row", "too-many-failed-in-row"],
].map((pair) =>
  pair.map((because) =>
    because === undefined ? undefined : { because, failed: 9, done: 30, failedInRow: 5 },
  ),
);
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
            DEPENDENCIES.flatMap((dependency) =>
              ITEMS.flatMap(([itemsFailure, finalItemsFailure]) =>
                [0, 1, 2, 3, 4, 5].map((bits) => ({
                  end,
                  limit,
                  dependency,
                  itemsFailure,
                  finalItemsFailure,
                  stop,
                  seen,
                  successExitCodes,
                  hasLostOutput: (bits & 1) === 1,
                  hasLostLease: (bits & 2) === 2,
                  failedChecks: (bits & 4) === 4 ? ["no-output"] : [],
                })),
              ),
            ),
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
  { name: "lease_lost", applies: ({ hasLostLease }) => hasLostLease },
  { name: "dependency_down", applies: ({ dependency }) => dependency !== undefined },
  { name: "timeout", applies: ({ limit }) => limit === "timeout" || limit === "not-after" },
  { name: "idle_timeout", applies: ({ limit }) => limit === "idle" },
  { name: "bad_output", applies: ({ itemsFailure }) => itemsFailure !== undefined },
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
    name: "bad_output",
    applies: ({ end, successExitCodes, failedChecks, finalItemsFailure }) =>
      (failedChecks.length > 0 || finalItemsFailure !== undefined) &&
      end?.kind === "exited" &&
      successExitCodes.includes(end.code),
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
  const lists = [ENDS, LIMITS, STOPS, SEEN, GOOD_CODES, DEPENDENCIES, ITEMS];
  expect(FACTS.length).toBe(lists.reduce((count, list) => count * list.length, 6));
  const wrong = FACTS.filter(
    (facts) =>
      decideOutcome(facts).name !== (RULES.find((rule) => rule.applies(facts))?.name as never),
  );
  expect(wrong).toEqual([]);
});

const OURS: Readonly<Record<string, number>> = {
  wrapper_error: 125,
  lease_lost: 76,
  dependency_down: 69,
  timeout: 124,
  idle_timeout: 124,
  bad_output: 65,
};

test("the status is the command's own, untouched, unless the outcome is watchdog's", () => {
  for (const facts of FACTS) {
    const { name, statusOf, leaving } = decideOutcome(facts);
    const isOurs = name in OURS;
    expect(statusOf).toBe(isOurs ? "watchdog" : "command");
    const shown = leaving.kind === "status" ? leaving.code : 128 + leaving.signal;
    if (isOurs) expect(shown).toBe(Number(OURS[name]));
    else expect(shown).toBe(Number(shownOf(facts)));
    if (!isOurs) expect(leaving.kind === "signal").toBe(facts.end?.kind === "signaled");
  }
});

test("the reason is one that belongs to the outcome", () => {
  const reasons: Readonly<Record<string, readonly string[]>> = {
    lease_lost: ["lease-not-ours"],
    dependency_down: ["circuit-opened", "max-attempts", "max-elapsed"],
    bad_output: ["too-many-failed", "too-many-failed-in-row", "no-output"],
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
    if (name === "dependency_down") expect(because).toBe(facts.dependency?.because as never);
    if (name === "stopped" && facts.stop !== undefined) expect(because).toBe(facts.stop);
  }
});
