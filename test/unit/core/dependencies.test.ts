/**
 * What follows from where the dependencies stand: every three of them, against the sentences of the
 * contract.
 */
import { describe, expect, test } from "bun:test";
import type { CircuitState } from "../../../src/core/circuit.ts";
import {
  decideDependencies,
  type Dependency,
  type DependencyDecision,
  type DependencyState,
  stateOfCircuit,
} from "../../../src/core/dependencies.ts";
import type { DependencyFailure } from "../../../src/core/run-state.ts";
import type { MonotonicAt } from "../../../src/core/time.ts";

const KINDS = ["closed", "open", "half-open", "ready", "unready", "unknown"] as const;
const STATES: readonly DependencyState[] = [
  ...KINDS.map((kind) => ({ kind })),
  { kind: "permanent", because: "max-attempts" },
  { kind: "permanent", because: "max-elapsed" },
];
const POLICIES = ["stop", "pause", "notify"] as const;

const ONES: readonly Omit<Dependency, "name">[] = POLICIES.flatMap((policy) =>
  STATES.map((state) => ({ policy, state })),
);

type Sentence = "stops, circuit-opened" | "stops, max-attempts" | "stops, max-elapsed" | "holds";

/** One word for each that does anything; whatever is not named goes on. */
const SENTENCES: Readonly<Record<string, Sentence>> = {
  "stop open": "stops, circuit-opened",
  "stop half-open": "stops, circuit-opened",
  "stop permanent max-attempts": "stops, max-attempts",
  "stop permanent max-elapsed": "stops, max-elapsed",
  "pause open": "holds",
  "pause half-open": "holds",
  "pause unready": "holds",
  "pause permanent max-attempts": "stops, max-attempts",
  "pause permanent max-elapsed": "stops, max-elapsed",
};

const sentenceOf = ({ policy, state }: Dependency): Sentence | undefined =>
  SENTENCES[[policy, ...Object.values(state)].join(" ")];

function expected(all: readonly Dependency[]): DependencyDecision {
  const held: string[] = [];
  let failure: DependencyFailure | undefined;
  for (const one of all.toReversed()) {
    const [what, because] = sentenceOf(one)?.split(", ") ?? [];
    if (what === "stops") failure = { name: one.name, because } as DependencyFailure;
    if (what === "holds") held.unshift(one.name);
  }
  if (failure !== undefined) return { kind: "fail", failure };
  return held.length === 0 ? { kind: "go" } : { kind: "hold", names: held };
}

function listUpTo(count: number): (readonly Dependency[])[] {
  if (count === 0) return [[]];
  const shorter = listUpTo(count - 1);
  const longest = shorter.filter((all) => all.length === count - 1);
  const name = `dependency ${count}`;
  return [...shorter, ...longest.flatMap((all) => ONES.map((one) => [...all, { name, ...one }]))];
}

describe("what follows from up to three dependencies", () => {
  const all = listUpTo(3);

  test("is what the contract says, whatever their order", () => {
    expect(all.length).toBe(1 + 24 + 24 ** 2 + 24 ** 3);
    const wrong = all.filter(
      (each) => !Bun.deepEquals(decideDependencies(each), expected(each), true),
    );
    expect(wrong.slice(0, 3)).toEqual([]);
    const kinds = all.map((each) => decideDependencies(each).kind);
    expect(new Set(kinds)).toEqual(new Set(["go", "hold", "fail"] as const));
  });

  test("is nothing at all where they are only to be told of", () => {
    const told = all.filter((each) => each.every(({ policy }) => policy === "notify"));
    expect(told.length).toBe(1 + 8 + 8 ** 2 + 8 ** 3);
    for (const each of told) expect(decideDependencies(each)).toEqual({ kind: "go" });
  });

  test("is named by the first that fails, and by all that hold", () => {
    const [open, away] = [{ kind: "open" }, { kind: "unready" }] as const;
    const holding: Dependency[] = [
      { name: "a", policy: "pause", state: open },
      { name: "b", policy: "stop", state: { kind: "closed" } },
      { name: "c", policy: "pause", state: away },
    ];
    expect(decideDependencies(holding)).toEqual({ kind: "hold", names: ["a", "c"] });
    const failing: Dependency[] = [
      ...holding,
      { name: "d", policy: "stop", state: open },
      { name: "e", policy: "pause", state: { kind: "permanent", because: "max-elapsed" } },
    ];
    const failure = { name: "d", because: "circuit-opened" } as const;
    expect(decideDependencies(failing)).toEqual({ kind: "fail", failure });
  });
});

test("a circuit stands where its state says, with the bound that it has reached", () => {
  const at = 5 as MonotonicAt;
  const broken = { openedAt: at, backoff: { startedAt: at, attempts: 1, waits: 1 } };
  const states: readonly CircuitState[] = [
    { kind: "closed", consecutiveFailures: 0, window: [] },
    { kind: "open", ...broken, retryAt: at },
    { kind: "half-open", ...broken, successes: 0, isTrialOut: true },
    { kind: "permanent", ...broken, because: "max-attempts", retryAt: at },
  ];
  expect(states.map(stateOfCircuit)).toEqual([
    { kind: "closed" },
    { kind: "open" },
    { kind: "half-open" },
    { kind: "permanent", because: "max-attempts" },
  ]);
});
