/** Whose trial it is, and what a probe leaves in a shared circuit. */
import { describe, expect, test } from "bun:test";
import {
  type CircuitStep,
  type CircuitViewer,
  decideShared,
  LONGEST_TRIAL_MS,
} from "../../../src/core/circuit-change.ts";
import type { SharedCircuit, TrialHolder } from "../../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import { CIRCUIT, PROBE_NOTE, TRIAL_HOLDER } from "../../support/circuit-samples.ts";

const NOW = 70_000 as MonotonicAt;
const WALL = 1_800_000_000_000 as WallAt;

function stepOf(event: CircuitStep["event"], note?: CircuitStep["note"]): CircuitStep {
  return { event, note, nowMs: NOW, wallMs: WALL, random: 0.5 };
}

/** Half-open, with its trial out. */
function triedBy(trialBy: TrialHolder): SharedCircuit {
  const backoff = { startedAt: NOW, attempts: 1, waits: 1 };
  const state = {
    kind: "half-open",
    openedAt: NOW,
    backoff,
    successes: 0,
    isTrialOut: true,
  } as const;
  return { ...CIRCUIT, state, trialBy };
}

const { at: _at, ...HOLDER } = TRIAL_HOLDER;

function viewer(changes: Partial<CircuitViewer["self"]> = {}): CircuitViewer {
  return { self: { ...HOLDER, ...changes }, isAlive: () => true };
}

const ANOTHER = viewer({ pid: HOLDER.pid + 1 });

describe("the trial of another one that lives", () => {
  test.each([
    ["lasts as long as the longest probe", LONGEST_TRIAL_MS, false],
    ["is lost after that", LONGEST_TRIAL_MS + 1, true],
    ["lasts where a clock is behind by as much", -LONGEST_TRIAL_MS, false],
    ["is lost where it was begun later than any clock can tell", -LONGEST_TRIAL_MS - 1, true],
  ])("%s", (_, ageMs, isLost) => {
    const circuit = triedBy({ ...TRIAL_HOLDER, at: (NOW - ageMs) as MonotonicAt });
    expect(decideShared(circuit, stepOf({ kind: "due" }), ANOTHER).isTrial).toBe(isLost);
  });

  test("is ended by its own answer alone, not by that of its namesake elsewhere", () => {
    const circuit = triedBy({ ...TRIAL_HOLDER, at: NOW });
    const answer = stepOf({ kind: "probe-succeeded" });
    for (const self of [{ pid_namespace: "another" }, { boot_id: "before" }]) {
      expect(decideShared(circuit, answer, viewer(self)).circuit).toEqual(circuit);
    }
    expect(decideShared(circuit, answer, viewer()).circuit.state.kind).toBe("closed");
  });
});

describe("what a probe has found", () => {
  test("is the last good answer where it is good, and only there", () => {
    const bad = decideShared(CIRCUIT, stepOf(undefined, PROBE_NOTE), ANOTHER).circuit;
    expect(bad.lastGoodAt).toBe(CIRCUIT.lastGoodAt);
    expect([bad.probes, bad.goodProbes]).toEqual([CIRCUIT.probes + 1, CIRCUIT.goodProbes]);
    const note = { ...PROBE_NOTE, because: "good" } as const;
    const good = decideShared(CIRCUIT, stepOf(undefined, note), ANOTHER).circuit;
    expect(good.lastGoodAt).toBe(note.at);
    expect(good.goodProbes).toBe(CIRCUIT.goodProbes + 1);
  });
});
